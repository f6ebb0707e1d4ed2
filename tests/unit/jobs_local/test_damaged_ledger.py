"""A ledger with lines cut, flipped or gone while jobs are under way: nothing is measured twice, and it is said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulation_support import World, campaign

from harness.cli.main import cli
from harness.cli.retrying import Which, tasks_in
from harness.errors import UserError
from harness.jobs.causes import UNTOLD, next_step
from harness.jobs.drive import Driver
from harness.jobs.ledger import read_statuses
from harness.jobs.local_registry import STATE_VARIABLE
from harness.jobs.submission import Batch, Kind
from harness.jobs.tasks import missing_tasks
from harness.layout import CampaignLayout
from harness.model.axes import Axes
from harness.model.campaign import Task
from harness.model.cluster import Cluster, NodeType
from harness.model.job import JobState
from harness.model.ledger import LOOKED_FOR, NOT_SHOWN, damage_text

TASKS = 2
JOB_S = 500.0
GARBAGE = b"\x00\xff{garbage\n"


def world_of(root: Path, kind: Kind) -> World:
    """Jobs that outlast every patience of the harness."""
    root.mkdir(parents=True, exist_ok=True)
    world = World(root, campaign(points=TASKS))
    world.scheduler.lasts_s = JOB_S

    def batching(tasks: Sequence[Task]) -> list[Batch]:
        one_job = kind != "single" and len(tasks) > 1
        return [Batch(kind, tuple(tasks))] if one_job else [Batch("single", (task,)) for task in tasks]

    world.batching = batching
    return world


def run_missing(driver: Driver) -> None:
    driver.run(missing_tasks(driver.workshop.campaign.tasks, driver.ledger.statuses))


def submit_missing(driver: Driver) -> None:
    driver.submit_all(missing_tasks(driver.workshop.campaign.tasks, driver.ledger.statuses))


def under_way(root: Path, kind: Kind, looks: int) -> World:
    """A campaign whose jobs were submitted and looked at so many times."""
    world = world_of(root, kind)

    def act(driver: Driver) -> None:
        driver.submit_all(driver.workshop.campaign.tasks)
        for _ in range(looks):
            driver.pause()
            driver.look()

    world.session(act)
    return world


def assert_once(world: World) -> None:
    ledger = world.session(run_missing)
    assert sorted(world.scheduler.executed.values()) == [1] * TASKS
    assert missing_tasks(world.plan.tasks, ledger.statuses) == []


@pytest.mark.parametrize("looks", [0, 3])
@pytest.mark.parametrize("kind", ["single", "array", "pack"])
def test_any_two_lines_lost_cost_nothing(kind: Kind, looks: int, tmp_path: Path) -> None:
    lines = under_way(tmp_path / "x", kind, looks).layout.ledger.read_bytes().splitlines(keepends=True)
    for number, lost in enumerate(combinations(range(len(lines)), 2)):
        world = under_way(tmp_path / str(number), kind, looks)
        left = world.layout.ledger.read_bytes().splitlines(keepends=True)
        world.layout.ledger.write_bytes(b"".join(GARBAGE if n in lost else line for n, line in enumerate(left)))
        assert_once(world)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=5),
    kind=st.sampled_from(["single", "array", "pack"]),
    looks=st.sampled_from([0, 3]),
)
def test_flipped_bits_cost_nothing(
    flips: list[tuple[float, int]], kind: Kind, looks: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = under_way(tmp_path_factory.mktemp("flip"), kind, looks)
    data = bytearray(world.layout.ledger.read_bytes())
    for place, bit in flips:
        data[int(place * len(data))] ^= 1 << bit
    world.layout.ledger.write_bytes(data)
    assert_once(world)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    begin=st.floats(0, 1),
    share=st.floats(0, 1),
    kind=st.sampled_from(["single", "array", "pack"]),
    looks=st.sampled_from([0, 3]),
)
def test_a_piece_cut_out_anywhere_costs_nothing(
    begin: float, share: float, kind: Kind, looks: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = under_way(tmp_path_factory.mktemp("cut"), kind, looks)
    data = world.layout.ledger.read_bytes()
    first = int(begin * len(data))
    world.layout.ledger.write_bytes(data[:first] + data[first + int(share * (len(data) - first)) :])
    assert_once(world)


def test_two_lines_with_a_flipped_digit_are_damage_and_no_other_attempt(tmp_path: Path) -> None:
    world = under_way(tmp_path, "single", 3)
    ledger = world.layout.ledger
    lines = ledger.read_bytes().splitlines(keepends=True)
    places = [n for n, line in enumerate(lines) if b'"RUNNING"' in line]
    for place in places:  # good JSON all the same
        lines[place] = lines[place].replace(b'"attempt":1', b'"attempt":3')
    ledger.write_bytes(b"".join(lines))
    damaged: list[int] = []
    assert {key.attempt for key in read_statuses(ledger, damaged)} == {1}
    assert damaged == [place + 1 for place in places]
    assert world.session(run_missing).damaged == tuple(damaged)


def finished(root: Path) -> CampaignLayout:
    """A campaign that was measured, on this machine, with two damaged lines in its ledger."""
    fake = FakeCampaign(root)
    fake.add(Axes(workload="replay", framework="none", steps_timed=40), FakeRun([[0.2] * 40]))
    fake.tasks = fake.tasks[:1]
    fake.save()
    cluster = Cluster(name="local", scheduler="local", node=NodeType(cores_per_socket=2), storage={})
    layout: CampaignLayout = fake.layout
    layout.cluster.write_text(cluster.model_dump_json())
    layout.ledger.write_bytes(b"\n" + GARBAGE + b'{"record":"submitted"')
    return layout


@pytest.mark.parametrize("verb", ["status", "table", "plot", "report", "recommend", "stalls", "check", "collect"])
def test_who_looks_is_told_once_of_damaged_lines(verb: str, tmp_path: Path) -> None:
    layout = finished(tmp_path)
    done = CliRunner().invoke(cli, [verb, layout.root.name, "--results", str(tmp_path)])
    assert done.stderr.count(f"harness: {damage_text(layout.ledger, [2, 3], NOT_SHOWN)}\n") == 1, done.output


@pytest.mark.parametrize("verb", ["wait", "cancel", "retry", "resume"])
def test_who_acts_is_told_once_of_damaged_lines(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    layout = finished(tmp_path)
    done = CliRunner().invoke(cli, [verb, layout.root.name, "--results", str(tmp_path)])
    assert done.stderr.count(f"harness: {damage_text(layout.ledger, [2, 3], LOOKED_FOR)}\n") == 1, done.output
    assert done.exit_code == 0


def test_damaged_lines_are_told_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path / "state"))
    layout = finished(tmp_path)
    for verb in ("status", "wait", "cancel", "resume"):
        done = CliRunner().invoke(cli, [verb, layout.root.name, "--results", str(tmp_path), "--json"])
        assert json.loads(done.stdout)["damaged_ledger_lines"] == [2, 3]
    done = CliRunner().invoke(cli, ["collect", layout.root.name, "--results", str(tmp_path), "--json"])
    assert json.loads(done.stdout)["damage"] == [damage_text(layout.ledger, [2, 3], NOT_SHOWN)]


def test_a_directory_beside_the_groups_costs_nothing(tmp_path: Path) -> None:
    world = world_of(tmp_path, "array")
    (world.layout.groups / "g7 (copy)").mkdir(parents=True)
    assert_once(world)


def test_a_campaign_that_cannot_be_read_is_told_with_what_the_system_said(tmp_path: Path) -> None:
    layout = finished(tmp_path)
    layout.meta.unlink()
    layout.meta.mkdir()
    done = CliRunner().invoke(cli, ["status", layout.root.name, "--results", str(tmp_path)])
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == f"{layout.meta}: Is a directory"


def damage_all(world: World) -> None:
    """The ledger gone, and every group.json with it."""
    world.layout.ledger.write_bytes(GARBAGE)
    for meta in world.layout.groups.glob("*/group.json"):
        meta.write_bytes(GARBAGE)


@pytest.mark.parametrize("kind", ["array", "pack"])
@pytest.mark.parametrize("looks", [0, 3])
def test_a_damaged_group_under_a_damaged_ledger_costs_nothing(kind: Kind, looks: int, tmp_path: Path) -> None:
    world = under_way(tmp_path, kind, looks)
    damage_all(world)
    assert_once(world)


@pytest.mark.parametrize("kind", ["array", "pack"])
def test_what_else_is_left_of_a_group_tells_its_attempts_jobs(kind: Kind, tmp_path: Path) -> None:
    world = under_way(tmp_path, kind, 3)
    before = read_statuses(world.layout.ledger)
    damage_all(world)
    ledger = world.session(lambda _driver: None)
    assert {key: (status.job_id, status.index) for key, status in ledger.statuses.items()} == {
        key: (status.job_id, status.index) for key, status in before.items()
    }


@pytest.mark.parametrize("kind", ["array", "pack"])
def test_a_wrong_job_name_in_group_json_costs_nothing(kind: Kind, tmp_path: Path) -> None:
    world = under_way(tmp_path, kind, 3)
    world.layout.ledger.write_bytes(GARBAGE)
    meta = world.layout.group("g1").meta
    meta.write_text(meta.read_text().replace('"job_name": "h', '"job_name": "i'))
    assert_once(world)


@pytest.mark.parametrize("lost", ["group", "map"])
def test_an_element_of_which_only_its_group_is_known_is_waited_for(lost: str, tmp_path: Path) -> None:
    """Which element of the array it is nobody knows: while any of them is alive, it may be."""
    world = under_way(tmp_path, "array", 3)
    damage_all(world)
    group = world.layout.group("g1")
    if lost == "group":
        shutil.rmtree(group.root)
    else:
        group.map.write_bytes(GARBAGE)
    first, *_ = world.scheduler.known.values()
    first.ends_s += JOB_S  # the end of another element is not its own
    assert_once(world)


def test_an_element_of_which_only_its_group_is_known_is_lost_with_it(tmp_path: Path) -> None:
    world = under_way(tmp_path, "array", 3)
    damage_all(world)
    world.layout.group("g1").map.write_bytes(GARBAGE)
    world.scheduler.fate = lambda _name: "vanish"
    ledger = world.session(lambda driver: driver.run([]))
    assert {status.state for status in ledger.statuses.values()} == {JobState.LOST}
    assert missing_tasks(world.plan.tasks, ledger.statuses) == list(world.plan.tasks)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=3),
    file=st.sampled_from(["group.json", "attempts", "job.sh"]),
    kind=st.sampled_from(["array", "pack"]),
)
def test_bits_flipped_in_a_groups_files_under_a_damaged_ledger_cost_nothing(
    flips: list[tuple[float, int]], file: str, kind: Kind, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = under_way(tmp_path_factory.mktemp("flip"), kind, 3)
    world.layout.ledger.write_bytes(GARBAGE)
    group = world.layout.group("g1")
    if file != "group.json":
        group.meta.write_bytes(GARBAGE)
    path = group.root / file
    if path.exists():
        data = bytearray(path.read_bytes())
        for place, bit in flips:
            data[int(place * len(data))] ^= 1 << bit
        path.write_bytes(data)
    assert_once(world)


@pytest.mark.parametrize("kind", ["single", "array", "pack"])
def test_what_may_still_run_and_cannot_be_looked_for_is_submitted_by_retry_alone(kind: Kind, tmp_path: Path) -> None:
    world = under_way(tmp_path, kind, 3)
    damage_all(world)
    begun = [path.parent for path in world.layout.runs.glob("*/*/started")]
    for root in begun:
        (root / "job.sh").unlink()
    shutil.rmtree(world.layout.groups, ignore_errors=True)
    offered = len(world.scheduler.offered)
    for _ in range(2):
        ledger = world.session(submit_missing)
        withheld = [s for s in ledger.statuses.values() if s.reason.startswith(UNTOLD)]
        assert len(withheld) == len(begun)
        assert all(world.said.count(status.reason) for status in withheld)
        assert any(str(begun[0] / "job.sh") in status.reason for status in withheld)
        assert {next_step(status, "slurm", "c") for status in withheld} == {
            "see that no job works in its directory any more, then harness retry c"
        }
    assert len(world.scheduler.offered) == offered
    retried = tasks_in(world.plan, ledger.statuses, Which(frozenset({JobState.LOST})))
    assert len(retried) == len(begun)
    world.session(lambda driver: driver.run(retried))
    assert missing_tasks(world.plan.tasks, read_statuses(world.layout.ledger)) == []


@pytest.mark.parametrize("kind", ["single", "array", "pack"])
def test_evidence_lifts_what_could_not_be_looked_for(kind: Kind, tmp_path: Path) -> None:
    world = under_way(tmp_path, kind, 3)
    damage_all(world)
    for started in world.layout.runs.glob("*/*/started"):
        (started.parent / "job.sh").unlink()
    shutil.rmtree(world.layout.groups, ignore_errors=True)
    world.session(submit_missing)
    world.clock.sleep(JOB_S * TASKS)
    world.clock.sleep(JOB_S * TASKS)
    assert_once(world)
