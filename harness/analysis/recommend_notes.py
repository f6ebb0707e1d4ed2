"""What has to be known beside a recommendation: what was not measured, failed, or ran once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from harness.analysis.capacity import Group
from harness.analysis.capacity_fit import Fit
from harness.analysis.capacity_lanes import Setting


def notes_on(group: Group, fit: Fit, setting: Setting, limits: Mapping[str, int]) -> tuple[str, ...]:
    """Sentences on what the answer rests on, most telling first; ``limits`` as of ``recommend``."""
    notes = _cores_note(group, fit, setting, limits)
    if all(not math.isfinite(o.se_log) for o in group.observations):
        notes.append("no point has an interval of its own; the scatter about the model stands for it")
    if once := sum(o.runs == 1 for o in group.observations):
        known = "taken to scatter as others"
        if not any(o.runs > 1 and o.se_log > 0 for o in group.observations):
            known = (
                "so how runs differ is not known: intervals rest on how far points left out are missed, and hold "
                "the rate in about nine of ten campaigns, not 95 %: repeat before relying on them"
            )
        notes.append(f"{once} of {len(group.observations)} points were run once, {known}")
    if setting not in group.settings:
        notes.append("this very setting was not measured, or could not be used; the rate is predicted")
    failed, ended = group.failures.get(setting, (0, 0))
    if failed:
        notes.append(f"{failed} of {ended} runs of this very setting failed: see why with `harness check`")
    if broken := len(group.broken):
        settings = "a setting" if broken == 1 else f"{broken} settings"
        notes.append(
            f"half of the runs or more failed at {settings}: neither that nor more workers there is considered"
        )
    if group.other_variants:
        notes.append(f"{group.other_variants} results of the same points under other conditions are left aside")
    return tuple(notes)


def _cores_note(group: Group, fit: Fit, setting: Setting, limits: Mapping[str, int]) -> list[str]:
    """What more cores would bring where the setting has all there are, or all that were measured."""
    most = limits.get("cpu_cores", math.inf) // setting.ranks_per_node
    measured = max(group.values("cores"))
    has_all = setting.cores >= most
    if not has_all and setting.cores < measured:
        return []
    more = replace(setting, cores=2 * setting.cores if has_all else min(2 * setting.cores, most))
    rate, expected = fit.rates([setting, more])
    if not (gain := _percent(expected / rate - 1)):
        return []
    if has_all:
        return [f"these are all the cores it may have; with twice as many the model expects {gain} more images/s"]
    said = f"no more than {measured:g} CPU cores for each rank were measured"
    return [f"{said}; with {more.cores:g} the model expects {gain} more images/s"]


def _percent(share: float) -> str:
    """``40 %``, to the nearest five; empty below five."""
    rounded = 5 * round(20 * share)
    return f"{rounded} %" if rounded > 0 else ""
