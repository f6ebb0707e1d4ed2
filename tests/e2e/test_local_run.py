"""``harness run`` on this machine, for real: mpirun, kills at odd moments, interruptions, hostile names."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sites.gate import Gate
from sites.processes import wait_for

from harness.jobs import engine
from harness.jobs.ledger import read_statuses
from harness.jobs.local_registry import STATE_VARIABLE, Registry
from harness.layout import CampaignLayout
from harness.model.ledger import AttemptKey, AttemptStatus

pytestmark = pytest.mark.mpi
ROOT = Path(__file__).resolve().parents[2]
SWEEP = """\
name: {name}
base:
  workload: replay
  options.clock: {clock}
  options.consume_s: {consume_s}
matrix:
  prefetch: {prefetch}
steps: {{warmup: 0, timed: {steps}}}
walltime: "00:02:00"
"""


class Project:
    """A sweep, a results directory, a registry of local jobs, and the command."""

    def __init__(self, root: Path, state: Path):
        self.root, self.state = root, state
        root.mkdir(parents=True, exist_ok=True)
        self.name = "replay"
        self.registry = Registry(state)
        self.cluster: tuple[str, ...] = ()

    @property
    def layout(self) -> CampaignLayout:
        return CampaignLayout(self.root / "results" / self.name)

    def sweep(
        self, points: int = 2, steps: int = 5, clock: str = "virtual", consume_s: float = 0.01, name: str = "replay"
    ) -> Path:
        self.name = name
        path = self.root / "sweep.yml"
        text = SWEEP.format(
            name=json.dumps(name, ensure_ascii=False),
            clock=clock,
            consume_s=consume_s,
            prefetch=list(range(1, points + 1)),
            steps=steps,
        )
        path.write_text(text)
        return path

    def gate(self) -> Gate:
        """From now on ranks wait until it is opened."""
        gate, path = Gate(self.root / "gate"), self.root / "gated.yml"
        text = (ROOT / "configs/clusters/local.yml").read_text()
        text = text.replace("python: auto", f"python: {json.dumps(gate.interpreter)}")
        mpirun = json.dumps(str(Path(sys.executable).parent / "mpirun"))
        path.write_text(text.replace("flavour: openmpi5", f"flavour: openmpi5\n  command: {mpirun}"))
        self.cluster = ("--cluster", str(path))
        return gate

    def start(self, *words: str, **kwargs: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "harness", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, STATE_VARIABLE: str(self.state), "COLUMNS": "200"},
            **kwargs,
        )

    def harness(self, verb: str, *words: str, code: int = 0) -> str:
        """Run a verb to its end; returns what it said."""
        process = self.start(verb, "--results", str(self.root / "results"), *words)
        out, err = process.communicate(timeout=400)
        assert process.returncode == code, out + err
        assert "Traceback" not in out + err
        return out + err

    def run(self, *words: str, code: int = 0) -> str:
        return self.harness("run", str(self.root / "sweep.yml"), "--no-report", *self.cluster, *words, code=code)

    def start_run(self, *words: str) -> subprocess.Popen[str]:
        sweep, results = str(self.root / "sweep.yml"), str(self.root / "results")
        return self.start("run", sweep, "--no-report", *self.cluster, *words, "--results", results)

    def statuses(self) -> dict[AttemptKey, AttemptStatus]:
        return read_statuses(self.layout.ledger)

    def states(self) -> Counter[str]:
        return Counter(status.state.value for status in self.statuses().values())

    def executions(self) -> Counter[str]:
        """How often each task's program has really begun, by the run_start events it wrote."""
        found: Counter[str] = Counter()
        for path in self.layout.runs.glob("*/*/events.r0.jsonl"):
            task = f"{path.parent.parent.name}/{path.parent.name.partition('a')[0]}"
            found[task] += sum('"event":"run_start"' in line.replace(" ", "") for line in path.open())
        return found


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "p", tmp_path / "state")
    yield project
    for job in project.registry.all():
        engine.cancel(project.registry, job.id)


def json_in(text: str) -> dict[str, Any]:
    """The JSON object that stands in the text."""
    found: dict[str, Any] = json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    return found


def first_of(project: Project, state: str) -> Callable[[], Any]:
    return lambda: next((key for key, s in project.statuses().items() if s.state.value == state), None)


def test_a_sweep_runs_once_and_says_so(project: Project) -> None:
    project.sweep(points=2)
    text = project.run()
    assert re.search(r"2 runs; 2 to run, at most 4 min 00 s by their time limits", text)
    assert re.search(r"2/2 succeeded  prefetch=\d; [\d.]+ s; about 1600 images/s", text)
    assert "replay: 2 succeeded" in text
    again = project.run()
    assert "2 measured already, nothing to run; --fresh measures again" in again
    for verb in ("retry", "resume"):  # which have no such option
        told = project.harness(verb, "replay")
        assert "nothing to run\n" in told and ": ;" not in told
    assert project.executions() == dict.fromkeys(project.executions(), 1) and len(project.executions()) == 2
    fresh = project.run("--fresh")
    assert "attempt 2" in fresh and set(project.executions().values()) == {2}


def test_a_widened_sweep_runs_only_what_is_new(project: Project) -> None:
    project.sweep(points=1)
    project.run()
    project.sweep(points=2)
    assert "2 runs; 1 measured already, 1 to run" in project.run()
    assert project.states() == {"SUCCEEDED": 2}


def test_a_campaign_belongs_to_its_cluster(project: Project, tmp_path: Path) -> None:
    project.sweep(points=1)
    project.run()
    other = tmp_path / "other.yml"
    other.write_text((ROOT / "configs/clusters/local.yml").read_text().replace("name: local", "name: other"))
    text = project.run("--cluster", str(other), code=2)
    assert "holds measurements on cluster 'local', not 'other'" in text and "--campaign" in text


NAMES = ["a b", "it's $(touch pwned) `touch pwned`", 'q"uo"te; touch pwned', "ünï-日本", "-rf", "$HOME & co"]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_names_are_only_names(name: str, tmp_path: Path) -> None:
    project = Project(tmp_path / f"x {name}", tmp_path / f"state {name}")
    project.sweep(points=1)
    project.harness("run", str(project.root / "sweep.yml"), "--no-report", f"--campaign={name}")
    project.name = name
    assert project.states() == {"SUCCEEDED": 1}
    status = project.harness("status", "--json", "--", name)
    assert json_in(status)["states"] == {"SUCCEEDED": 1}
    assert not list(tmp_path.rglob("pwned")) and not (ROOT / "pwned").exists()


def test_a_path_with_newlines_and_quotes_runs(tmp_path: Path) -> None:
    project = Project(tmp_path / "new\nline 'and' \"quotes\" \\ $(touch pwned) ü", tmp_path / "state")
    project.sweep(points=1)
    project.run()
    assert project.states() == {"SUCCEEDED": 1}
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_harness_is_taken_up_where_it_stood(seed: int, project: Project) -> None:
    """kill -9 at moments drawn by chance, until a run comes through; no program was started twice."""
    project.sweep(points=3, steps=30, clock="real", consume_s=0.01)
    draw = random.Random(seed)
    for _ in range(4):
        process = project.start_run()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=draw.uniform(0.3, 2.0))
        process.kill()
        process.communicate()
    project.run()
    assert set(project.executions().values()) == {1} and len(project.executions()) == 3
    assert Counter(s for s in project.states().elements() if s != "LOST") == {"SUCCEEDED": 3}


def test_a_killed_job_is_found_out_and_measured_anew(project: Project) -> None:
    project.sweep(points=2)
    gate = project.gate()
    process = project.start_run()
    key = wait_for(first_of(project, "RUNNING"))
    job = wait_for(lambda: project.registry.find(project.statuses()[key].job_id))
    os.kill(wait_for(lambda: job.state() and job.state().leader).pid, signal.SIGKILL)
    gate.open()
    out, err = process.communicate(timeout=240)
    assert process.returncode == 1, out + err
    assert project.states() == {"FAILED": 1, "SUCCEEDED": 1}
    assert "failed  " in out and f"log: {project.layout.attempt(*key).stderr}" in out
    assert "1 measured already, 1 to run" in project.run()
    assert project.states() == {"FAILED": 1, "SUCCEEDED": 2}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_cancels_cleanly_and_loses_nothing(number: signal.Signals, project: Project) -> None:
    project.sweep(points=2, steps=60000, clock="real")
    process = project.start_run()
    key = wait_for(first_of(project, "RUNNING"))
    wait_for(lambda: project.layout.attempt(*key).events(0).exists())
    process.send_signal(number)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, out + err
    assert "interrupted: no further job is started" in err
    assert project.states() == {"CANCELLED": 1}
    assert json.loads(project.layout.attempt(*key).exit.read_text())["cause"] == "term"
    assert not project.layout.lock.exists()
    project.sweep(points=2, steps=3000, clock="virtual")  # other points: the same, but instantaneous
    assert "2 succeeded" in project.run()


def test_two_harnesses_do_not_drive_one_campaign(project: Project) -> None:
    project.sweep(points=1)
    gate = project.gate()
    first = project.start_run()
    wait_for(project.layout.lock.exists)
    text = project.run(code=1)
    gate.open()
    assert f"is driven by harness process {first.pid} on " in text and "harness cancel" in text
    first.communicate(timeout=240)
    assert (first.returncode, project.states()) == (0, {"SUCCEEDED": 1})


def test_a_failing_run_is_named_with_its_last_words(project: Project) -> None:
    path = project.sweep(points=1)
    path.write_text(path.read_text() + "\n")
    text = project.run("--set", "options.fail_at_step=3", code=1)
    assert "failed  " in text and "log: " in text and "stderr" in text
    assert re.search(r"replay: 1 failed; evidence in ", text)
    assert "1 failed" in project.harness("status", project.name, code=1)


def test_retries_make_new_attempts(project: Project) -> None:
    project.sweep(points=1)
    project.run("--set", "options.fail_at_step=3", "--retries", "1", code=1)
    assert sorted(key.attempt for key in project.statuses()) == [1, 2]
    project.harness("retry", project.name, code=1)
    assert sorted(key.attempt for key in project.statuses()) == [1, 2, 3]


def test_missing_things_are_found_before_anything_is_written(project: Project, tmp_path: Path) -> None:
    cluster = tmp_path / "bare.yml"
    text = (ROOT / "configs/clusters/local.yml").read_text().replace("results/data", str(tmp_path / "nowhere"))
    cluster.write_text(text.replace("flavour: openmpi5", "flavour: openmpi5\n  command: no-such-mpirun"))
    project.root.joinpath("sweep.yml").write_text(
        'name: replay\nmatrix: {cpu_cores: [1]}\nwalltime: "00:01:00"\n'
        'base: {workload: resnet20_cifar10, framework: torch, dataset: "photos:cifar10"}\n'
    )
    said = project.run("--cluster", str(cluster), code=2)
    assert "nothing was started" in said
    assert "there is no no-such-mpirun" in said and "photos:cifar10 is not in" in said and "harness data make" in said
    assert not (project.root / "results").exists()


def test_submit_status_cancel_and_wait(project: Project) -> None:
    project.sweep(points=2, steps=60000, clock="real")
    sweep = str(project.root / "sweep.yml")
    said = project.harness("submit", sweep)
    assert "2 runs go on in the background" in said
    wait_for(first_of(project, "RUNNING"))
    status = project.harness("status", project.name, "--json")
    assert json_in(status)["states"] == {"RUNNING": 1}
    assert "driven by harness process" in status
    assert "asking harness process" in project.harness("cancel", project.name)
    assert project.states() == {"CANCELLED": 1}
    project.harness("wait", project.name, code=1)  # nothing is under way, one was cancelled
    again = project.harness("submit", sweep)  # how the attempt before ended is not how this one does
    assert "2 runs go on in the background" in again and "cancelled" not in again
    project.harness("cancel", project.name)


def test_wait_takes_up_what_a_killed_harness_left(project: Project) -> None:
    project.sweep(points=1)
    gate = project.gate()
    process = project.start_run()
    wait_for(first_of(project, "RUNNING"))
    process.kill()
    process.communicate()
    assert project.harness("wait", project.name, "--timeout", "1s", code=124)
    gate.open()
    assert "1 succeeded" in project.harness("wait", project.name)
    assert project.executions().total() == 1


@pytest.mark.parametrize("verb", ["status", "wait", "cancel", "retry"])
def test_an_unknown_campaign_is_said_to_be_unknown(verb: str, project: Project) -> None:
    project.sweep(points=1)
    project.run()
    said = project.harness(verb, "replai", code=2)
    assert "there is no campaign 'replai'" in said and "did you mean 'replay'?" in said
    assert not (project.root / "results/replai").exists()


def test_waiting_for_another_job_of_the_machine_is_said(project: Project, tmp_path: Path) -> None:
    project.sweep(points=1, steps=60000, clock="real")
    first = project.start_run()
    wait_for(first_of(project, "RUNNING"))
    other = Project(tmp_path / "other", project.state)
    other.sweep(points=1)
    second = other.start_run()
    assert second.stdout is not None
    assert any("waiting for CPUs: other local jobs hold them" in line for line in second.stdout)
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=240)
    second.communicate(timeout=240)
    assert (second.returncode, other.states()) == (0, {"SUCCEEDED": 1})
