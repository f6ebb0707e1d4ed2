"""Where the time of a step goes: the differences of a ladder's rungs, and the waits that one run recorded. Pure.

A rung does one part of a step more than the one below (:mod:`harness.plan.ladder` has them), so the difference of their
step times is what that part adds. What overlaps with computing adds nothing: parts are costs, not durations.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats as distributions

from harness.analysis.points import PointResult
from harness.catalog import WORKLOADS
from harness.model.columns import AXIS_COLUMNS

ORDER = ("compute", "exchange", "copy", "preparation", "read", "fetch")
RECORDED = ("wait", "copy", "compute", "exchange")
#: Parts that a single run sees as waiting for its batch.
INPUT = ("preparation", "read", "fetch")
_BY_CACHE = {"warm": "read", "cold": "fetch"}
#: Pipelines of decoded samples in memory, which make the rung ``preparation``.
_HOLDING = frozenset({("tf_memory", "npy"), ("torch_memory", "npy")})
_RUNG_AXES = frozenset({"feed", "comm", "cache", "pipeline", "encoding"})
#: The ladder and the recorded waits agree where they differ by less than this share of the step.
AGREE_SHARE = 0.05
#: Half an interval of more than this share of the step leaves open whether they agree.
OPEN_SHARE = 0.25


@dataclass(frozen=True)
class Part:
    """Seconds per step with a 95 % interval (NaN: unknown). ``names``: what it spans, more where rungs are missing."""

    names: tuple[str, ...]
    seconds: float
    low: float
    high: float

    @property
    def label(self) -> str:
        return " + ".join(self.names)


@dataclass(frozen=True)
class Ladder:
    """A point's parts. ``measured_s``: its own step; ``residual``: that less the topmost rung.

    ``recorded`` are the parts of a step that the topmost rung recorded itself, in seconds. ``disagreement`` says where
    both views differ and why, empty where they agree. ``doubts`` are sentences on rungs that parts should not rest on.
    """

    result: PointResult
    parts: tuple[Part, ...]
    measured_s: float
    residual: Part | None
    recorded: Mapping[str, float]
    disagreement: str
    doubts: tuple[str, ...] = ()


def ladders(results: Sequence[PointResult]) -> list[Ladder]:
    """A ladder for every measured point that is fed by its pipeline and is not itself a rung of another."""
    measured = [r for r in results if r.runs and r.variant == 0 and r.means.get("step_mean_s")]
    groups: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in measured:
        groups.setdefault(_key(result), []).append(result)
    beside = {id(r): [other for other in groups[_key(r)] if _alike(other, r)] for r in measured}
    tops = [r for r in measured if r.axes.get("feed") == "pipeline" and not _is_rung(r, beside[id(r)])]
    return [_ladder(top, beside[id(top)]) for top in tops]


def _key(result: PointResult) -> tuple[Any, ...]:
    """The axes that all rungs of a point share, and the options of their workload."""
    spec = WORKLOADS.get(str(result.axes.get("workload")))
    options = (f"options.{name}" for name in (spec.options if spec else ()))
    axes = (c.name for c in AXIS_COLUMNS if c.name not in _RUNG_AXES)
    return tuple(str(result.axes.get(name)) for name in (*axes, *options))


def _alike(result: PointResult, other: PointResult) -> bool:
    """Whether they have the same options; those of a pipeline may be lost, or have another default, in another."""
    return _source(result) != _source(other) or _options(result) == _options(other)


def _options(result: PointResult) -> dict[str, Any]:
    return {n: v for n, v in result.axes.items() if n.startswith("options.") and v is not None}


def _is_rung(result: PointResult, group: Iterable[PointResult]) -> bool:
    """Whether it stands below another point of its group: held samples, or a cache that was set for the ladder."""
    others = [r for r in group if r is not result and r.axes.get("feed") == "pipeline"]
    held = any(r.axes.get("feed") != "pipeline" for r in group)
    if not held:
        return False
    if _source(result) in _HOLDING and any(_source(r) not in _HOLDING for r in others):
        return True
    same = [r for r in others if _source(r) == _source(result)]
    return result.axes.get("cache") != "unknown" and any(r.axes.get("cache") == "unknown" for r in same)


def _source(result: PointResult) -> tuple[str, str]:
    return str(result.axes.get("pipeline")), str(result.axes.get("encoding"))


def _ladder(top: PointResult, group: Sequence[PointResult]) -> Ladder:
    rungs = _rungs(top, group)
    parts, below, names = [], None, []
    for name in ORDER:
        names.append(name)
        if name not in rungs:
            if name == "exchange" and _ranks(top) == 1:
                names.remove(name)
            continue
        parts.append(_difference(tuple(names), rungs[name], below))
        below, names = rungs[name], []
    recorded_by = below if below is not None and below.axes.get("feed") == "pipeline" else top
    recorded = {name: recorded_by.means.get(f"{name}_share", 0.0) * _step_s(recorded_by) for name in RECORDED}
    # without a rung that reads files all input is one part, else what is left is the residual
    last = ("residual",) if "fetch" in rungs or "read" in rungs else ("input",)
    residual = None if below is None or below is top else _difference(last, top, below)
    steps = {**rungs, **({} if residual is None else {"the point itself": top})}
    disagreement = _disagreement(rungs, recorded, top)
    return Ladder(top, tuple(parts), _step_s(top), residual, recorded, disagreement, _doubts(steps))


def _doubts(steps: Mapping[str, PointResult]) -> tuple[str, ...]:
    once = ", ".join(name for name, result in steps.items() if result.runs == 1)
    doubtful = ", ".join(name for name, result in steps.items() if not result.trusted)
    said = [f"run once: {once}; their intervals know nothing of how runs differ"] if once else []
    return (*said, *([f"do not rely on {doubtful}: see `harness check`"] if doubtful else []))


def _rungs(top: PointResult, group: Sequence[PointResult]) -> dict[str, PointResult]:
    """The rung of each name that was measured; at the top stands the point itself where nothing is above it.

    Of several in another pipeline the one that has most of the point's options.
    """
    found: dict[str, PointResult] = {}
    own_options = _options(top)
    for result in sorted(group, key=lambda r: sum(own_options.get(n) == v for n, v in _options(r).items())):
        comm, feed, own = result.axes.get("comm"), result.axes.get("feed"), _source(result) == _source(top)
        if own and feed == "device" and (comm == "none" or _ranks(top) == 1):
            found["compute"] = result
        elif own and feed == "device" and comm == top.axes.get("comm"):
            found["exchange"] = result
        elif own and feed == "host" and comm in (top.axes.get("comm"), None):
            found["copy"] = result
        elif feed == "pipeline" and not own and _source(result) in _HOLDING and comm == top.axes.get("comm"):
            found["preparation"] = result
        elif own and feed == "pipeline" and comm == top.axes.get("comm") and result.axes.get("cache") in _BY_CACHE:
            found[_BY_CACHE[str(result.axes["cache"])]] = result
    return found


def _ranks(result: PointResult) -> int:
    return int(result.axes.get("nodes") or 1) * int(result.axes.get("ranks_per_node") or 1)


def _step_s(result: PointResult) -> float:
    return result.means["step_mean_s"]


def _difference(names: tuple[str, ...], upper: PointResult, lower: PointResult | None) -> Part:
    """What ``upper`` takes longer than ``lower``; variances add, degrees of freedom after Welch."""
    ends = [upper] if lower is None else [upper, lower]
    seconds = _step_s(upper) - (_step_s(lower) if lower is not None else 0.0)
    variances = [(_step_s(r) * r.rate.se_log) ** 2 for r in ends]
    if not all(math.isfinite(v) for v in variances):
        return Part(names, seconds, math.nan, math.nan)
    total = sum(variances)
    spread = sum(v**2 / r.rate.df for v, r in zip(variances, ends, strict=True) if v > 0)
    df = total**2 / spread if spread > 0 else math.inf
    width = float(distributions.t.ppf(0.975, df)) * math.sqrt(total)
    return Part(names, seconds, seconds - width, seconds + width)


def _disagreement(rungs: Mapping[str, PointResult], recorded: Mapping[str, float], top: PointResult) -> str:
    """Why the ladder and the recorded waits differ, where they do by more than intervals and a share of the step."""
    held = next((rungs[name] for name in reversed(ORDER) if name in rungs and name not in INPUT), None)
    if held is None:
        return "no rung with a held batch was measured, so nothing tells whether the recorded waits are what data cost"
    highest = next(rungs[name] for name in reversed(ORDER) if name in rungs)
    # over all rungs between, not part by part: what lies between two of them cancels, and so does its scatter
    own, fed = _difference(("held",), held, None), _difference(INPUT, top if highest is held else highest, held)
    step_s = _step_s(top)
    if (reach_s := max(_reach(own), _reach(fed))) > OPEN_SHARE * step_s:
        return f"intervals of ± {reach_s * 1e3:.3g} ms are too wide to say whether ladder and recorded waits agree"
    words = []
    # an exchange inside the backward pass is recorded as computing, so the step without its input is compared
    recorded_s = sum(recorded[name] for name in RECORDED if name != "wait")
    if _apart(own, recorded_s, step_s):
        change = recorded_s / own.seconds - 1
        why = "loaders take cores or memory bandwidth from it" if change > 0 else "a held batch is computed no faster"
        words.append(f"computing takes {change:+.0%} against the held batch: {why}")
    if _apart(fed, recorded["wait"], step_s):
        added_ms, waited_ms = fed.seconds * 1e3, recorded["wait"] * 1e3
        more = fed.seconds > recorded["wait"]
        rest = "the rest slows the other parts" if more else "part of the waiting replaces other time"
        words.append(f"the input adds {added_ms:.3g} ms to a step, and {waited_ms:.3g} ms are waited for; {rest}")
    return "; ".join(words)


def _apart(part: Part, seconds: float, step_s: float) -> bool:
    return abs(part.seconds - seconds) > max(_reach(part), AGREE_SHARE * step_s)


def _reach(part: Part) -> float:
    """Half the interval; 0 where it is unknown."""
    return max(part.high - part.seconds, 0.0) if math.isfinite(part.high) else 0.0
