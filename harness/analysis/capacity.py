"""From measured points to what the capacity model is fitted to: observations, in groups that differ in knobs alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from scipy.special import digamma

from harness.analysis import arrays, findings
from harness.analysis.capacity_lanes import Setting
from harness.analysis.points import PointResult, failed_and_ended, like_jobs, sort_key
from harness.analysis.scaling import label
from harness.catalog import FRAMEWORKS

#: Axes that a user may turn to get more rate from the same training; all others say what is trained.
KNOBS = ("cpu_cores", "workers", "parallel_threads", "prefetch", "storage", "nodes", "ranks_per_node")
#: What all points of a question must have run with. Not among them: the MPI library, which names itself in another way
#: where one process runs alone, and the cache's state, which is an outcome of the axis ``cache``.
ALIKE = (
    "framework_version",
    "device",
    "cpu_model",
    "gpu_model",
    "gpu_driver",
    "dataset_origin",
    "dataset_digest",
    "parameters",
)
#: For how many degrees of freedom of its own the scatter usual among points counts beside that of one.
PRIOR_FREEDOM = 4.0
#: A setting of whose repeats this share failed is not recommended.
TOO_OFTEN = 0.5
#: Axes that do not change what a rate means.
BESIDE = frozenset({*KNOBS, "seed", "steps_warmup", "steps_timed", "interval_percent", "profile", "comm"})


@dataclass(frozen=True)
class Observation:
    """A rate measured at a setting: ``se_log`` is the standard error of its logarithm, NaN where unknown.

    ``wait_share``: of the time in which training waited for data there, NaN where not recorded. ``runs``: how many
    there were, 0 where unknown; with one, ``se_log`` does not know how runs differ.
    """

    setting: Setting
    rate: float
    se_log: float
    wait_share: float = math.nan
    runs: int = 0


@dataclass(frozen=True)
class LeftOut:
    """A point that no conclusion may rest on. ``code``: unsteady, binding, failed, conditions or doubtful."""

    point: str
    code: str
    reason: str


@dataclass(frozen=True)
class Group:
    """Points that differ in knobs alone.

    ``axes`` are those of its first point. ``computes_on_cores``: there is no accelerator, so the training itself runs
    on the CPU cores. ``loads_inline``: workers 0 means loading in the training's own time. ``other_variants`` counts
    results of the same points under other conditions, which are not merged. ``failures``: how many attempts failed, and
    how many failed or succeeded, of each setting. ``broken``: settings of whose repeats half or more
    have failed and not been tried again with success.
    """

    key: Mapping[str, Any]
    axes: Mapping[str, Any]
    observations: tuple[Observation, ...]
    left_out: tuple[LeftOut, ...]
    computes_on_cores: bool
    loads_inline: bool
    other_variants: int = 0
    point_ids: tuple[str, ...] = ()
    failures: Mapping[Setting, tuple[int, int]] = field(default_factory=dict)
    broken: tuple[Setting, ...] = ()

    @property
    def label(self) -> str:
        return label(self.key)

    @property
    def settings(self) -> list[Setting]:
        return [o.setting for o in self.observations]

    def values(self, knob: str) -> list[Any]:
        """The values measured of a field of :class:`Setting`, sorted."""
        found = {getattr(s, knob) for s in self.settings}
        return sorted(found, key=lambda value: sort_key((value,)))


def setting_of(axes: Mapping[str, Any], scopes: Mapping[str, str] | None = None) -> Setting:
    """The setting that a point's axes describe; ``scopes`` tells which storages are node-local."""
    ranks_per_node = int(axes.get("ranks_per_node") or 1)
    storage = str(axes.get("storage") or "")
    threads, prefetch = axes.get("parallel_threads"), axes.get("prefetch")
    return Setting(
        cores=float(axes.get("cpu_cores") or 1) / ranks_per_node,
        workers=int(axes.get("workers") or 0),
        threads=None if threads is None else int(threads),
        prefetch=None if prefetch is None else int(prefetch),
        storage=storage,
        nodes=int(axes.get("nodes") or 1),
        ranks_per_node=ranks_per_node,
        readers_share="node" if (scopes or {}).get(storage) == "node" else "job",
    )


def groups_of(
    results: Sequence[PointResult], varied: Sequence[str], scopes: Mapping[str, str] | None = None
) -> list[Group]:
    """The groups, each to be answered on its own. Axes other than knobs tell them apart; names come from ``varied``."""
    results = like_jobs(results)
    named = [name for name in varied if results and name in _apart(results)] or ["workload", "framework"]
    return [_group(members, named, scopes) for members in comparable(results)]


def comparable(results: Sequence[PointResult]) -> list[list[PointResult]]:
    """Results that differ in knobs alone, together."""
    found: dict[tuple[Any, ...], list[PointResult]] = {}
    for result in results:
        found.setdefault(tuple(_hashable(result.axes.get(name)) for name in _apart(results)), []).append(result)
    return list(found.values())


def _apart(results: Sequence[PointResult]) -> list[str]:
    return [name for name in results[0].axes if name not in BESIDE]


def _group(members: Sequence[PointResult], named: Sequence[str], scopes: Mapping[str, str] | None) -> Group:
    first = members[0].axes
    usual = [r for r in members if r.variant == 0]
    unlike = unlike_most([r for r in usual if r.trusted and r.rate.value > 0])
    good = [r for r in usual if r.trusted and r.rate.value > 0 and r.point_id not in unlike]
    told = [name for name in KNOBS if len({r.axes.get(name) for r in usual}) > 1] or list(KNOBS)
    return Group(
        key=key_of(first, named),
        axes=first,
        observations=pooled([_observation(r, scopes) for r in good]),
        left_out=tuple(_left_out(r, told, unlike.get(r.point_id, "")) for r in usual if r not in good),
        computes_on_cores=not first.get("gpus_per_rank") and first.get("framework") in FRAMEWORKS,
        loads_inline=first.get("framework") != "tensorflow",
        other_variants=len(members) - len(usual),
        point_ids=tuple(r.point_id for r in usual),
        failures={setting_of(r.axes, scopes): failed_and_ended(r.attempts) for r in usual},
        broken=tuple(setting_of(r.axes, scopes) for r in usual if _broken(*failed_and_ended(r.states))),
    )


def _broken(failed: int, ended: int) -> bool:
    """One failure among two repeats is not enough: any node breaks once."""
    return failed > 0 and failed >= TOO_OFTEN * ended and (failed, ended) != (1, 2)


def unlike_most(results: Sequence[PointResult]) -> dict[str, str]:
    """Points that ran with something else than most, in :data:`ALIKE`: id → with what. Unknown is like anything."""
    found: dict[str, str] = {}
    for name in ALIKE:
        values = {r.point_id: r.conditions.get(name) for r in results}
        known = Counter(value for value in values.values() if value is not None)
        if len(known) > 1:
            usual = known.most_common(1)[0][0]
            said = {point: f"{name} was {value}, where most have {usual}" for point, value in values.items()}
            found = {p: said[p] for p, value in values.items() if value not in (None, usual)} | found
    return found


def _observation(result: PointResult, scopes: Mapping[str, str] | None) -> Observation:
    waited = result.means.get("wait_share", math.nan)
    return Observation(setting_of(result.axes, scopes), result.rate.value, result.rate.se_log, waited, result.runs)


def key_of(axes: Mapping[str, Any], named: Sequence[str]) -> dict[str, Any]:
    """What a group is called by; a framework that there is not says nothing."""
    return {name: axes.get(name) for name in named if not (name == "framework" and axes.get(name) == "none")}


def pooled(observations: Sequence[Observation]) -> tuple[Observation, ...]:
    """Observations whose errors are drawn towards that of all, as :data:`PRIOR_FREEDOM` says.

    The scatter of two or three runs tells that of a point to a factor of two or worse: weights that follow it rest a
    fit on the points that agreed by luck. So each variance is averaged with the one usual here: the geometric mean of
    all, corrected for its bias (Smyth, Stat. Appl. Genet. Mol. Biol. 3 (2004) 3), which one disturbed point does not
    move far. A point run once is taken to scatter as is usual, by Student's t the more so the fewer repeats tell what
    is: those of one point alone do, where there are no others.
    """
    repeated = [(o.runs - 1, o.runs * o.se_log**2) for o in observations if o.runs > 1 and o.se_log > 0]
    if not repeated:
        return tuple(observations)
    logs = [df * (math.log(variance) - float(digamma(df / 2)) + math.log(df / 2)) for df, variance in repeated]
    freedom = sum(df for df, _ in repeated)
    usual = math.exp(sum(logs) / freedom) if len(repeated) > 1 else repeated[0][1]
    surer = arrays.t_quantile(0.975, freedom) / arrays.t_quantile(0.975, math.inf)
    return tuple(_drawn_towards(usual, surer, o) for o in observations)


def _drawn_towards(usual: float, surer: float, seen: Observation) -> Observation:
    """With its error from its own runs' variance and the ``usual`` one, times ``surer`` where that is all there is."""
    if not seen.runs:
        return seen
    if seen.runs == 1 or not math.isfinite(seen.se_log):
        own = seen.se_log if math.isfinite(seen.se_log) else 0.0
        return replace(seen, se_log=max(own, surer * math.sqrt(usual / seen.runs)))
    df, variance = seen.runs - 1, seen.runs * seen.se_log**2
    together = (PRIOR_FREEDOM * usual + df * variance) / (PRIOR_FREEDOM + df)
    return replace(seen, se_log=math.sqrt(together / seen.runs))


def _left_out(result: PointResult, told: Sequence[str], unlike: str) -> LeftOut:
    point = label({name: result.axes.get(name) for name in told if result.axes.get(name) is not None})
    codes = {finding.code for finding in result.findings}
    if unlike:
        return LeftOut(point, "conditions", unlike)
    if not result.runs:
        states = ", ".join(sorted(result.states)) or "not run"
        return LeftOut(point, "failed", f"no run succeeded ({states})")
    if codes & {*findings.CORES, "cores_not_achieved"}:
        return LeftOut(point, "binding", "the cores that ranks could use are not those asked for")
    if result.unsteady or "not_steady" in codes:
        return LeftOut(point, "unsteady", f"{result.unsteady or 1} of {result.runs} runs did not become steady")
    reasons = [f.message for f in result.findings if f.severity == "error"]
    return LeftOut(point, "doubtful", "; ".join(reasons) or "no rate")


def _hashable(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    return tuple(value) if isinstance(value, list) else value
