"""A recommendation in words, and as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness.analysis.capacity import Group
from harness.analysis.capacity_lanes import Setting
from harness.analysis.recommend import Answer, Choice, Range, Refused, core_hours
from harness.report.numbers import bracketed, digits, number, percents

_CPU_LANES = {
    "compute": "the model's own computing",
    "shared cores": "the CPU cores, which train and prepare images at the same time",
}


def headline(group: Group) -> str:
    """What was trained, and on how many points the answer rests."""
    used, left = len(group.observations), len(group.left_out)
    beside = f", {left} left out" if left else ""
    return f"{group.label} ({used} point{'s' * (used != 1)}{beside})"


def answer_lines(answer: Answer, group: Group) -> list[str]:
    """The recommendation, a line for each thing to know."""
    whose = "as measured" if answer.measured else "by the model"
    lines = [
        f"Ask for: {request(answer.setting, group, answer.ranges)}",
        f"Expect: {span(answer.rate)} images/s {whose}, {_of_ceiling(answer)}",
        f"Limited by: {_limits(answer)}",
        f"Cost: {span(_cost(answer.setting, answer.rate))} core-hours for a million images",
    ]
    lines += [f"Not used: {left.point}: {left.reason}" for left in answer.left_out]
    lines.append(f"Trust: {_trust(answer)}")
    lines += [f"Note: {note}" for note in answer.notes]
    return lines


def _of_ceiling(answer: Answer) -> str:
    if span(answer.rate) == span(answer.ceiling):
        return "which is the ceiling"
    return f"{answer.share_of_ceiling:.0%} of the ceiling of {span(answer.ceiling)}"


def _cost(setting: Setting, rate: Range) -> Range:
    """Core-hours for a million images: as uncertain as the rate."""
    value, low, high = (core_hours(setting, one, 1e6) for one in (rate.value, rate.high, rate.low))
    return Range(value, low, high)


def refusal_lines(refused: Refused, group: Group) -> list[str]:
    """Why there is no recommendation, what was fastest all the same, and what to do."""
    lines = [f"No recommendation: {refused.reason}"]
    if refused.best is not None:
        at = request(refused.best.setting, group, {})
        lines.append(f"Fastest measured: {number(refused.best.rate, 3)} images/s with {at}")
    lines += [f"Not used: {left.point}: {left.reason}" for left in refused.left_out]
    lines.append(f"Next: {refused.advice}")
    return lines


def request(setting: Setting, group: Group, ranges: Mapping[str, tuple[float, float]]) -> str:
    """``8 CPU cores per GPU (7 to 9), 6 workers, prefetch 2, data on scratch, 2 nodes with 4 ranks each``."""
    gpus = int(group.axes.get("gpus_per_rank") or 0)
    unit, cores = ("GPU", setting.cores / gpus) if gpus else ("rank", setting.cores)
    gauged = {
        name: (low / gpus, high / gpus) if name == "cores" and gpus > 1 else (low, high)
        for name, (low, high) in ranges.items()
    }
    parts = [f"{cores:g} CPU core{'s' * (cores != 1)} per {unit}{_within(gauged, 'cores', cores)}"]
    if setting.workers or len(group.values("workers")) > 1:
        word = f"{setting.workers} worker{'s' * (setting.workers != 1)} per rank" if setting.workers else "no workers"
        parts.append(word + _within(gauged, "workers", setting.workers))
    if setting.threads is not None:
        word = f"{setting.threads} thread{'s' * (setting.threads != 1)} per rank"
        parts.append(word + _within(gauged, "threads", setting.threads))
    if setting.prefetch is not None:
        parts.append(f"prefetch {setting.prefetch}{_within(gauged, 'prefetch', setting.prefetch)}")
    if setting.storage:
        parts.append(f"data on {setting.storage}")
    layout = f"{setting.nodes} node{'s' * (setting.nodes != 1)}{_within(gauged, 'nodes', setting.nodes)}"
    ranks = f"{setting.ranks_per_node} rank{'s' * (setting.ranks_per_node != 1)}"
    ranks += " each" * (setting.nodes != 1) + _within(gauged, "ranks_per_node", setting.ranks_per_node)
    return ", ".join([*parts, f"{layout} with {ranks}"])


def _within(ranges: Mapping[str, tuple[float, float]], name: str, asked: float) -> str:
    """`` (7 to 9)``; nothing where all fits ask for the same."""
    low, high = ranges.get(name, (math.nan, math.nan))
    if not math.isfinite(low) or low == high == asked:
        return ""
    return f" ({low:g} to {high:g})" if low != high else f" ({low:g} by the fits to redrawn data)"


def _limits(answer: Answer) -> str:
    """What sets the pace by the model's lanes, and what was recorded of it where this setting was measured."""
    shares = sorted(answer.lane_shares.items(), key=lambda item: -item[1])
    names = [_CPU_LANES.get(name, name) for name, _ in shares]
    told = [
        names[0],
        *(f"{name} takes {share:.0%} as long" for name, (_, share) in zip(names[1:], shares[1:], strict=True)),
    ]
    if answer.in_turns and len(shares) > 1:
        inline = answer.model.best.form.inline and not answer.setting.workers
        told = [f"loading and training take turns {'without workers' if inline else 'by the model, without prefetch'}"]
    if math.isfinite(answer.wait_share):
        told.append(f"training waited for data {answer.wait_share:.0%} of the time when this was measured")
    return ", ".join(told)


def _trust(answer: Answer) -> str:
    error = answer.model.held_out_median
    return (
        f"points left out are predicted within {error:.1%} (median); "
        f"{answer.chance:.0%} of the fits to redrawn data find this setting good enough"
    )


def choice_row(choice: Choice) -> list[str]:
    """A line of the table of layouts."""
    layout, setting = choice.layout, choice.setting
    knobs = [f"{setting.cores:g}", str(setting.workers), "–" if setting.threads is None else str(setting.threads)]
    knobs += ["–" if setting.prefetch is None else str(setting.prefetch), setting.storage]
    cost = _cost(setting, choice.rate)
    numbers = [
        span(choice.rate),
        percents(choice.efficiency.value, choice.efficiency.low, choice.efficiency.high),
        digits(cost.value, cost.low, cost.high),
    ]
    return [str(layout.nodes), str(layout.ranks_per_node), *knobs, *numbers]


CHOICE_HEADER = (
    "nodes",
    "ranks/node",
    "cores/rank",
    "workers",
    "threads",
    "prefetch",
    "storage",
    "images/s",
    "efficiency",
    "core-h/1e6 images",
)


def span(quantity: Range) -> str:
    """``1230 [1200, 1270]``."""
    return bracketed(quantity.value, quantity.low, quantity.high)


def as_values(found: Answer | Refused, group: Group) -> dict[str, Any]:
    """The whole answer as JSON values; NaN becomes null."""
    shared = {"group": dict(group.key), "left_out": [asdict(left) for left in found.left_out]}
    if isinstance(found, Refused):
        best = asdict(found.best) if found.best else None
        refusal = {"code": found.code, "reason": found.reason, "advice": found.advice, "fastest_measured": best}
        return _record(shared | {"refused": refusal | {"held_out_median": found.held_out_median}})
    values = {
        name: getattr(found, name)
        for name in ("share_of_ceiling", "chance", "limited_by", "in_turns", "wait_share", "points", "notes")
    }
    values |= {
        "setting": asdict(found.setting),
        "images_per_s": asdict(found.rate),
        "ceiling": asdict(found.ceiling),
        "ranges": dict(found.ranges),
        "lane_shares": dict(found.lane_shares),
        "choices": [asdict(choice) for choice in found.choices],
        "held_out_median": found.model.held_out_median,
        "held_out": [float(error) for error in found.model.held_out],
        # ends of every low and high: of the fits to redrawn data, or of the repeats of a plateau as it was measured
        "interval": "between" if found.measured else "model",
        "points_run_once": sum(o.runs == 1 for o in group.observations),
        "core_hours_per_million_images": core_hours(found.setting, found.rate.value, 1e6),
        "form": asdict(found.model.best.form),
        "parameters": {n: found.model.best.parameter(n) for n in found.model.best.form.names},
    }
    return _record(shared | values)


def _record(values: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _record(value)
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
