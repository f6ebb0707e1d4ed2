"""The harness where something is missing that everybody has: a home, a UTF-8 terminal, its own results."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sites.processes import wait_for

from harness.jobs.ledger import read_statuses
from harness.jobs.local_registry import STATE_VARIABLE
from harness.layout import CampaignLayout

pytestmark = pytest.mark.mpi
ROOT = Path(__file__).resolve().parents[2]
SWEEP = """\
name: "größe – 日本"
base: {workload: replay, options.clock: CLOCK, options.consume_s: 0.01}
steps: {warmup: 0, timed: STEPS}
walltime: "00:02:00"
"""


def command(root: Path, clock: str = "virtual", steps: int = 5) -> list[str]:
    (root / "sweep.yml").write_text(SWEEP.replace("CLOCK", clock).replace("STEPS", str(steps)), encoding="utf-8")
    return [sys.executable, "-m", "harness", "run", str(root / "sweep.yml"), "--results", str(root / "results")]


def bare(root: Path, **variables: str) -> dict[str, str]:
    """An environment with nothing but what is named."""
    return {"PATH": os.environ["PATH"], STATE_VARIABLE: str(root / "state"), **variables}


def layout(root: Path) -> CampaignLayout:
    [campaign] = (root / "results").iterdir()
    return CampaignLayout(campaign)


def states(root: Path) -> list[str]:
    return [status.state.value for status in read_statuses(layout(root).ledger).values()]


@pytest.mark.parametrize(
    "variables",
    [
        {},  # as from cron, or in a bare container
        {"HOME": "/proc/no-such-home", "LANG": "C"},
        {"HOME": "/", "PYTHONIOENCODING": "ascii"},  # a terminal that shows no dash
    ],
    ids=["nothing", "no home", "ascii"],
)
def test_a_sweep_runs_to_its_plots(variables: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        command(tmp_path), cwd=ROOT, env=bare(tmp_path, **variables), capture_output=True, timeout=240, check=False
    )
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert done.returncode == 0, said
    assert "Traceback" not in said
    assert states(tmp_path) == ["SUCCEEDED"]
    assert layout(tmp_path).runs_csv.is_file()


def test_results_that_vanish_under_a_run_are_told_in_words(tmp_path: Path) -> None:
    process = subprocess.Popen(
        command(tmp_path, "real", 1000),
        cwd=ROOT,
        env={**os.environ, STATE_VARIABLE: str(tmp_path / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for(lambda: any('"RUNNING"' in path.read_text() for path in tmp_path.glob("results/*/ledger.jsonl")))
    # at once, so that nothing is added where something is being removed
    (tmp_path / "results").rename(tmp_path / "gone")
    shutil.rmtree(tmp_path / "gone", ignore_errors=True)
    said, _ = process.communicate(timeout=240)
    assert process.returncode != 0
    assert "Traceback" not in said
    again = subprocess.run(
        command(tmp_path), cwd=ROOT, env=bare(tmp_path), capture_output=True, text=True, timeout=240, check=False
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert states(tmp_path) == ["SUCCEEDED"]


def test_a_path_that_is_no_text_is_refused_in_words(tmp_path: Path) -> None:
    words = [*command(tmp_path)[:-1], os.fsdecode(os.fsencode(tmp_path) + b"/\xff")]
    done = subprocess.run(words, cwd=ROOT, env=bare(tmp_path), capture_output=True, timeout=240, check=False)
    assert done.returncode == 2
    assert b"no UTF-8 text; rename it" in done.stderr and b"Traceback" not in done.stderr
