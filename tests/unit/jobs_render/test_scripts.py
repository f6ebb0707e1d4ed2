"""The scripts of a whole campaign: what some have in common is made once, and each is as if it were the only one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jobs_support import make_cluster, make_placement, make_spec

from harness.jobs import launchers
from harness.jobs.render import Scripts, lost_log, package_root, render_job, render_shared

ROOT = package_root()
STAGED = {"data_path": "/scratch/mnist", "data_scope": "node", "stage_from": "/hpctmp/mnist"}
SPECS = [
    make_spec(make_placement(**placement), campaign=campaign, **axes)
    for campaign in ("one", "two")
    for placement in ({}, STAGED, {"nodes": 2}, {"walltime_s": 60})
    for axes in ({}, {"dataset": None, "workload": "replay"})
]


@pytest.mark.parametrize("scheduler", ["pbs", "slurm", "local"])
def test_each_script_is_as_if_it_were_the_only_one(scheduler: str) -> None:
    cluster = make_cluster(scheduler)
    scripts = Scripts(cluster, ROOT)
    for number, spec in enumerate([*SPECS, *reversed(SPECS)]):
        attempt = Path(f"/results/it's {number}/r0a1")
        assert scripts.job(spec, attempt) == render_job(cluster, spec, attempt, ROOT)
        assert scripts.shared(spec, f"g{number}") == render_shared(cluster, spec, f"g{number}", ROOT)


def test_what_equal_requests_have_in_common_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[object] = []
    launch = launchers.launch_argv

    def noted(*words: Any) -> list[str]:
        launched.append(words)
        return launch(*words)

    monkeypatch.setattr(launchers, "launch_argv", noted)
    scripts = Scripts(make_cluster(), ROOT)
    texts = {scripts.job(spec, Path(f"/results/{number}")) for number, spec in enumerate(SPECS)}
    assert len(texts) == len(SPECS)
    assert len(launched) == len({(spec.placement, spec.axes.dataset) for spec in SPECS}) == 8


@pytest.mark.parametrize(
    ("scheduler", "folder", "is_lost"),
    [
        ("pbs", "/home/me/results/c", False),
        ("pbs", "/home/my files/c", True),
        ("torque", "/home/müller/c", True),
        ("slurm", "/home/my files/c", False),
        ("slurm", "/home/my\\files/c", True),
        ("local", "/home/my files/c", False),
    ],
)
def test_a_log_that_a_directive_cannot_name_is_told_of(scheduler: str, folder: str, is_lost: bool) -> None:
    said = lost_log(make_cluster(scheduler), make_placement(), Path(folder))
    assert said.startswith(f"{folder} cannot be written in a line of #") if is_lost else said == ""
