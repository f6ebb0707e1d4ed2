"""Looking at a campaign changes nothing and sees what has happened since the last line of the ledger."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from jobs_support import make_cluster, make_placement, make_spec
from rich.console import Console
from simulation_support import World, campaign

from harness.cli import status_view
from harness.cli.outcome import Outcome, outcome_of, show
from harness.cli.rate import rough_images_per_s
from harness.files import json_line
from harness.jobs.drive import Driver
from harness.jobs.packs import WAITS
from harness.jobs.render import render_job
from harness.jobs.submission import Batch
from harness.jobs.view import Late, Rarely, present
from harness.layout import AttemptLayout, CampaignLayout
from harness.model.job import JobState
from harness.model.ledger import AttemptStatus


def test_evidence_counts_before_anybody_has_recorded_it(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=3), limit=2)

    def submit_only(driver: Driver) -> None:
        driver.submit_all(list(world.plan.tasks)[:2])

    world.session(submit_only)
    site: Any = world.scheduler
    before = world.layout.ledger.read_bytes()
    assert Counter(s.state.value for s in present(world.plan, world.layout, site).values()) == {"QUEUED": 2}
    world.clock.sleep(1)
    assert Counter(s.state.value for s in present(world.plan, world.layout).values()) == {"RUNNING": 2}
    world.clock.sleep(world.scheduler.lasts_s)
    statuses = present(world.plan, world.layout, site)
    outcome = outcome_of(world.plan, world.layout, world.plan.tasks, statuses)
    assert (outcome.counts, outcome.untried, outcome.exit_code) == ({JobState.SUCCEEDED: 2}, 1, 0)
    assert world.layout.ledger.read_bytes() == before
    assert [run["state"] for run in outcome.as_json()["runs"]] == ["SUCCEEDED", "SUCCEEDED"]


def test_the_deciding_attempt_is_the_success_even_if_a_later_one_failed(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.session(lambda driver: driver.run(world.plan.tasks))
    world.scheduler.fate = lambda _name: "fail"
    ledger = world.session(lambda driver: driver.run(world.plan.tasks))
    assert Counter(s.state.value for s in ledger.statuses.values()) == {"SUCCEEDED": 1, "FAILED": 1}
    outcome = outcome_of(world.plan, world.layout, world.plan.tasks, ledger.statuses)
    assert (outcome.counts, outcome.exit_code) == ({JobState.SUCCEEDED: 1}, 0)


def test_a_cancelled_runs_log_explains_nothing_and_is_not_shown(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=2))
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    keys = sorted(present(world.plan, world.layout))
    for key in keys:
        world.layout.attempt(*key).stderr.write_text("PRTE has lost communication\n")
    states = zip(keys, (JobState.CANCELLED, JobState.FAILED), strict=True)
    statuses = {key: AttemptStatus(state=state, reason="why it ended") for key, state in states}
    shown = StringIO()
    show(outcome_of(world.plan, world.layout, world.plan.tasks, statuses), Console(file=shown, width=200))
    lines = shown.getvalue().splitlines()
    cancelled = next(number for number, line in enumerate(lines) if line.startswith("cancelled"))
    assert "why it ended" in lines[cancelled]
    assert shown.getvalue().count("PRTE has lost communication") == 1
    assert not lines[cancelled + 1].startswith(" ")


def steps(begin_s: list[float], end_s: list[float], fresh: list[int]) -> str:
    """Each image is used twice, as with ``echo: 2``: the rate is that of the fresh ones, as in the table."""
    used = [2 * count for count in fresh]
    return json_line({"event": "steps", "begin_s": begin_s, "end_s": end_s, "fresh": fresh, "consumed": used})


def test_the_first_quarter_is_left_out_of_the_rough_rate(tmp_path: Path) -> None:
    """A slow first step of 9 s, then three of 1 s with 30 images each, told in two events, on two ranks."""
    paths = AttemptLayout(tmp_path)
    text = steps([0.0, 9.0], [9.0, 10.0], [30, 30]) + steps([10.0, 11.0], [11.0, 12.0], [30, 30])
    paths.events(0).write_text(text)
    assert rough_images_per_s(paths, 1) == 30.0
    assert rough_images_per_s(paths, 2) is None
    paths.events(1).write_text(text)
    assert rough_images_per_s(paths, 2) == 60.0


def test_a_packs_running_says_nothing_of_those_that_wait_in_it(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=3))
    world.batching = lambda tasks: [Batch("pack", tuple(tasks))] if tasks else []
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    site: Any = world.scheduler
    world.clock.sleep(1)
    seen = Counter((s.state.value, s.reason) for s in present(world.plan, world.layout, site).values())
    assert seen[("QUEUED", WAITS)] == 2
    assert sum(count for (state, _), count in seen.items() if state == "RUNNING") == 1


def test_why_a_job_waits_is_shown_although_its_state_is_known(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    world.scheduler.fate = lambda _name: "stuck"
    site: Any = world.scheduler
    (status,) = present(world.plan, world.layout, site).values()
    assert (status.state, status.reason) == (JobState.QUEUED, "Can Never Run")


@pytest.mark.parametrize("kind", ["single", "array", "pack"])
def test_a_campaign_moved_under_its_jobs_is_said_to_be(tmp_path: Path, kind: Any) -> None:
    (tmp_path / "it's here").mkdir()
    world = World(tmp_path / "it's here", campaign(points=2))
    if kind != "single":
        world.batching = lambda tasks: [Batch(kind, tuple(tasks))] if tasks else []
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    if kind == "single":  # the world's own scripts are no job bodies
        for script in world.layout.root.glob("runs/*/*/job.sh"):
            script.write_text(render_job(make_cluster("slurm"), make_spec(make_placement()), script.parent, tmp_path))

    def said(layout: CampaignLayout) -> list[str]:
        return outcome_of(world.plan, layout, world.plan.tasks, present(world.plan, layout)).next_steps()

    assert said(world.layout) == []
    moved = CampaignLayout(world.layout.root.rename(tmp_path / "moved"))
    (line,) = said(moved)
    assert line.startswith(f"moved: jobs were written to look for their runs in {world.layout.root}, and ")
    assert f"the campaign lies in {moved.root} now" in line
    moved_later = {key: replace(status, state=JobState.CANCELLED) for key, status in present(world.plan, moved).items()}
    assert outcome_of(world.plan, moved, world.plan.tasks, moved_later).moved_from() is None

    def moved_from(layout: CampaignLayout) -> object:
        outcome = outcome_of(world.plan, layout, world.plan.tasks, present(world.plan, layout))
        return outcome.as_json()["moved_from"]

    assert moved_from(moved) == str(world.layout.root)
    assert moved_from(CampaignLayout(moved.root.rename(world.layout.root))) is None


def test_a_site_is_made_once_and_only_where_something_is_under_way(tmp_path: Path) -> None:
    world, made = World(tmp_path, campaign(points=1)), list[str]()

    def make() -> Any:
        made.append("site")
        return world.scheduler

    late = Late(make)
    assert present(world.plan, world.layout, late) == {}
    assert made == []
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    for _ in range(2):
        assert [status.state for status in present(world.plan, world.layout, late).values()] == [JobState.QUEUED]
    assert made == ["site"]
    world.clock.sleep(1)
    world.clock.sleep(world.scheduler.lasts_s)
    before = world.scheduler.questions
    assert [status.state for status in present(world.plan, world.layout, late).values()] == [JobState.SUCCEEDED]
    assert world.scheduler.questions == before


def test_who_looks_on_for_hours_asks_ever_more_rarely(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    world.scheduler.lasts_s, asked = 7200.0, world.scheduler.questions
    rarely = Rarely(world.scheduler, world.clock.now, first_s=5.0)
    for _ in range(1000):
        world.clock.sleep(5)
        present(world.plan, world.layout, rarely)
    assert 5000 / 60 <= world.scheduler.questions - asked < 5000 / 60 + 15


@pytest.mark.parametrize("is_terminal", [False, True])
def test_watching_tells_each_change_until_nothing_goes_on(is_terminal: bool, tmp_path: Path) -> None:
    stream = StringIO()
    console = Console(file=stream, width=200, force_terminal=is_terminal, highlight=False, _environ={"TERM": "xterm"})
    world = World(tmp_path, campaign(points=2))
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    keys = sorted(present(world.plan, world.layout))
    states = [
        [JobState.RUNNING] * 2,
        [JobState.RUNNING] * 2,
        [JobState.FAILED, JobState.RUNNING],
        [JobState.FAILED] * 2,
    ]

    def look() -> Outcome:
        statuses = {key: AttemptStatus(state=s, reason="why") for key, s in zip(keys, states.pop(0), strict=True)}
        return outcome_of(world.plan, world.layout, world.plan.tasks, statuses)

    outcome = status_view.watch(look, console, False, 0.0)
    assert (states, outcome.exit_code) == ([], 1)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", stream.getvalue())
    said = [line.partition(": ")[2].partition(";")[0] for line in shown.splitlines() if "evidence in" in line]
    if is_terminal:
        assert [said.count(words) for words in ("2 running", "1 running, 1 failed")] == [
            2,
            2,
        ]  # the last, to be cleared
        assert shown.count("reason") == 4
    else:
        assert said == ["2 running", "1 running, 1 failed"]


def test_on_a_screen_what_runs_comes_first_and_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=9))
    world.session(lambda driver: driver.submit_all(world.plan.tasks))
    keys = sorted(present(world.plan, world.layout))
    statuses = {key: AttemptStatus(state=JobState.QUEUED, job_id=f"{n}.server") for n, key in enumerate(keys)}
    statuses[keys[7]] = AttemptStatus(state=JobState.RUNNING, job_id="7.server")
    outcome = outcome_of(world.plan, world.layout, world.plan.tasks, statuses)
    shown = StringIO()
    Console(file=shown, width=200).print(status_view.live_view(outcome, False, height=10))
    lines = [line.strip("│ ") for line in shown.getvalue().splitlines()]
    assert (lines[3].split()[0], lines[3].split()[-1]) == ("running", "7.server")
    assert [line.split()[0] for line in lines[4:8]] == ["queued"] * 4
    assert lines[9] == "… and 4 more"
    assert lines[10].startswith(f"{world.plan.name}: 8 queued, 1 running; evidence in ")
