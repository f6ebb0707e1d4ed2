"""Arrays and packs driven against the simulated scheduler: one job, many attempts, each with a fate of its own."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulation_support import Crash, Killer, World, campaign

from harness import files
from harness.jobs import attempts, submission
from harness.jobs.causes import cause_of
from harness.jobs.drive import Driver
from harness.jobs.ledger import Ledger
from harness.jobs.submission import Batch, Kind
from harness.jobs.tasks import missing_tasks
from harness.jobs.watch import NEVER_BEGAN
from harness.model.campaign import Task
from harness.model.job import JobState, Observation
from harness.model.ledger import AttemptKey

Batching = Callable[[Sequence[Task]], list[Batch]]


#: the functions by which attempts and groups come to the disk
WRITERS = {"write_atomically", "write_new", "sync", "sync_directory", "sync_file_system"}


def grouped(kind: Kind, size: int) -> Batching:
    """Groups of ``size`` tasks, the last perhaps smaller; one task alone is a single."""

    def batching(tasks: Sequence[Task]) -> list[Batch]:
        chunks = [tuple(tasks[i : i + size]) for i in range(0, len(tasks), size)]
        return [Batch(kind if len(chunk) > 1 else "single", chunk) for chunk in chunks]

    return batching


def world_of(root: Path, kind: Kind, size: int = 6, points: int = 6) -> World:
    world = World(root, campaign(points=points))
    world.batching = grouped(kind, size)
    return world


def run_missing(driver: Driver) -> None:
    driver.run(missing_tasks(driver.workshop.campaign.tasks, driver.ledger.statuses))


def submit_missing(driver: Driver) -> None:
    driver.submit_all(missing_tasks(driver.workshop.campaign.tasks, driver.ledger.statuses))


def states(ledger: Ledger) -> Counter[str]:
    return Counter(status.state.value for status in ledger.statuses.values())


def is_attempt(world: World, number: int) -> Callable[[str], bool]:
    """Whether a simulated job's name is that of the first attempt at the n-th task."""
    return lambda name: name.endswith(f"/{world.plan.tasks[number].point_id}/r0a1")


@pytest.mark.parametrize("kind", ["array", "pack"])
def test_one_submission_measures_every_task_once(kind: Kind, tmp_path: Path) -> None:
    world = world_of(tmp_path, kind)
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 6}
    assert len(world.scheduler.offered) == 1
    assert sorted(world.scheduler.executed.values()) == [1] * 6
    assert len({status.job_id for status in ledger.statuses.values()}) == {"array": 6, "pack": 1}[kind]
    assert {status.group for status in ledger.statuses.values()} == {"g1"}
    assert world.scheduler.most_active == {"array": 6, "pack": 1}[kind]


def test_elements_of_an_array_end_each_in_its_way(tmp_path: Path) -> None:
    world = world_of(tmp_path, "array")
    fails, vanishes = is_attempt(world, 1), is_attempt(world, 4)
    world.scheduler.fate = lambda name: "fail" if fails(name) else "vanish" if vanishes(name) else "ok"
    ledger = world.session(run_missing)
    by_task = {key.point_id: status.state.value for key, status in ledger.statuses.items()}
    assert [by_task[task.point_id] for task in world.plan.tasks] == [
        *("SUCCEEDED", "FAILED", "SUCCEEDED", "SUCCEEDED", "LOST", "SUCCEEDED")
    ]


def test_a_pack_goes_on_after_a_failure_and_only_the_failure_is_tried_again(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack")
    fails = is_attempt(world, 2)
    world.scheduler.fate = lambda name: "fail" if fails(name) else "ok"
    assert states(world.session(run_missing)) == {"SUCCEEDED": 5, "FAILED": 1}
    assert states(world.session(run_missing)) == {"SUCCEEDED": 6, "FAILED": 1}
    assert len(world.scheduler.offered) == 2


def test_what_a_stopped_pack_did_not_begin_is_submitted_again_and_has_not_failed(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack")
    stopped = is_attempt(world, 2)
    world.scheduler.fate = lambda name: "timeout" if stopped(name) else "ok"
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 5, "TIMED_OUT": 1, "LOST": 3}
    assert {status.reason for status in ledger.statuses.values() if status.state is JobState.LOST} == {NEVER_BEGAN}
    assert sorted(world.scheduler.executed.values()) == [1] * 6


def test_a_pack_that_was_stopped_while_nobody_looked_is_completed_once(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack")
    stopped = is_attempt(world, 2)
    world.scheduler.fate = lambda name: "timeout" if stopped(name) else "ok"
    world.session(submit_missing)
    world.clock.sleep(1)
    for _ in range(5):
        world.clock.sleep(100)
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 6, "TIMED_OUT": 1, "LOST": 3}
    assert sorted(world.scheduler.executed.values()) == [1, 1, 1, 1, 1, 2]


@pytest.mark.parametrize("kind", ["array", "pack"])
def test_a_new_group_never_takes_the_name_of_one_whose_directory_is_gone(kind: Kind, tmp_path: Path) -> None:
    world = world_of(tmp_path, kind, size=3)
    first = world.plan.tasks[:3]
    world.session(lambda driver: driver.submit_all(first))
    shutil.rmtree(world.layout.groups)
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 6}
    assert sorted({status.group for status in ledger.statuses.values()}) == ["g1", "g2"]
    assert len(set(world.scheduler.offered)) == 2


def test_a_pack_that_was_put_back_goes_on_where_it_was(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack")
    requeued = is_attempt(world, 2)
    world.scheduler.fate = lambda name: "requeue" if requeued(name) else "ok"
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 5, "FAILED": 1}
    assert {cause_of(status) for status in ledger.statuses.values()} == {"", "rerun"}
    assert (len(world.scheduler.offered), world.scheduler.cancelled) == (1, [])
    assert sorted(world.scheduler.executed.values()) == [1] * 6


def test_a_pack_that_was_begun_again_while_nobody_looked_was_cancelled_by_nobody(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack")
    requeued = is_attempt(world, 2)
    world.scheduler.fate, world.scheduler.back_s = lambda name: "requeue" if requeued(name) else "ok", 10.0
    world.session(submit_missing)
    for _ in range(30):
        world.clock.sleep(10)
    ledger = world.session(lambda driver: driver.run([]))
    assert states(ledger) == {"SUCCEEDED": 5, "FAILED": 1}
    assert {cause_of(status) for status in ledger.statuses.values()} == {"", "rerun"}


@pytest.mark.parametrize("kind", ["array", "pack"])
def test_nodes_that_do_not_see_the_campaign_are_told_of_once(kind: Kind, tmp_path: Path) -> None:
    world = world_of(tmp_path, kind)
    world.scheduler.fate = lambda _name: "unwritable"
    ledger = world.session(run_missing)
    assert states(ledger) == {"FAILED": 6}
    assert {cause_of(status) for status in ledger.statuses.values()} == {"unwritable"}
    assert len(world.scheduler.offered) == 1


def test_a_forgotten_pack_loses_the_run_it_was_in_and_repeats_the_others(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack")
    vanishes = is_attempt(world, 3)
    world.scheduler.fate = lambda name: "vanish" if vanishes(name) else "ok"
    ledger = world.session(run_missing)
    reasons = Counter(status.reason for status in ledger.statuses.values() if status.state is JobState.LOST)
    gone = "the scheduler does not know the job any more, and it left no exit record"
    assert (states(ledger)["SUCCEEDED"], reasons) == (5, {NEVER_BEGAN: 2, gone: 1})
    assert sorted(world.scheduler.executed.values()) == [1] * 6


def test_an_attempt_waits_in_its_pack_until_it_begins(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack")

    def act(driver: Driver) -> None:
        submit_missing(driver)
        for _ in range(4):
            driver.pause()
            driver.look()
        by_state = Counter((s.state.value, s.reason) for s in driver.ledger.statuses.values())
        assert by_state[("RUNNING", "its script has started")] == 1
        assert by_state[("QUEUED", "")] == 5

    world.session(act)


@pytest.mark.parametrize("kind", ["array", "pack"])
def test_a_group_that_can_never_run_is_cancelled_as_a_whole(kind: Kind, tmp_path: Path) -> None:
    world = world_of(tmp_path, kind)
    world.scheduler.fate = lambda _name: "stuck"
    ledger = world.session(run_missing)
    assert {(s.state.value, s.reason) for s in ledger.statuses.values()} == {("FAILED", "can never run: Can Never Run")}
    assert world.scheduler.cancelled == ["0.far"]


def test_a_busy_queue_is_offered_the_same_array_again(tmp_path: Path) -> None:
    world = world_of(tmp_path, "array")
    began = world.clock.now()
    world.scheduler.answers = lambda _name: "busy" if world.clock.now() < began + 100 else "accepted"
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 6}
    assert {key.attempt for key in ledger.statuses} == {1}
    assert len(set(world.scheduler.offered)) == 1 < len(world.scheduler.offered)


def test_cancelling_a_whole_array_takes_one_id(tmp_path: Path) -> None:
    world = world_of(tmp_path, "array", points=3)
    world.scheduler.lasts_s = 1000

    def act(driver: Driver) -> None:
        submit_missing(driver)
        driver.cancel_active(60)

    assert states(world.session(act)) == {"CANCELLED": 3}
    assert world.scheduler.cancelled == ["0.far"]


def test_cancelling_one_element_leaves_the_others(tmp_path: Path) -> None:
    world = world_of(tmp_path, "array", points=3)

    def act(driver: Driver) -> None:
        submit_missing(driver)
        driver.cancel_active(60, [driver.watcher.active()[1]])
        assert world.scheduler.cancelled == ["0.far_1"]
        driver.run([])

    assert states(world.session(act)) == {"CANCELLED": 1, "SUCCEEDED": 2}


def test_one_attempt_is_taken_out_of_its_pack(tmp_path: Path) -> None:
    world = world_of(tmp_path, "pack", points=4)

    def act(driver: Driver) -> None:
        submit_missing(driver)
        keys = list(driver.ledger.statuses)
        world.clock.sleep(1)  # the first begins
        driver.cancel_active(60, [keys[0], keys[2]])
        assert (driver.ledger.statuses[keys[2]].state, world.scheduler.cancelled) == (JobState.CANCELLED, [])
        driver.run([])

    assert states(world.session(act)) == {"CANCELLED": 1, "SUCCEEDED": 3}
    assert len(world.scheduler.executed) == 3


def test_the_users_other_jobs_count_and_so_does_each_element(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=6), quota=10)
    world.batching = grouped("array", 3)
    other = Observation(job_id="99[].far", state=JobState.QUEUED, job_name="train", elements=6)
    world.scheduler.others = [other, other.model_copy(update={"state": JobState.SUCCEEDED})]
    assert states(world.session(run_missing)) == {"SUCCEEDED": 6}
    assert world.scheduler.most_active == 3
    (tmp_path / "alone").mkdir()
    world = World(tmp_path / "alone", campaign(points=6), quota=10)
    world.batching = grouped("array", 3)
    assert states(world.session(run_missing)) == {"SUCCEEDED": 6}
    assert world.scheduler.most_active == 6


def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=2), quota=5)
    world.scheduler.others = [Observation(job_id="1.far", state=JobState.RUNNING, job_name="train", elements=5)]
    empty_at = world.clock.now() + 500
    world.clock.on_tick.append(lambda: world.clock.now() > empty_at and world.scheduler.others.clear())
    assert states(world.session(run_missing)) == {"SUCCEEDED": 2}
    assert world.clock.now() > empty_at
    assert world.said == [
        "waiting for room in the queue: 0 jobs of this campaign and 5 others of yours, 5 in all; see --max-queued"
    ]


def test_a_packs_own_canary_is_nobodys_task(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=2), retries=1)
    extra = Task(point_id=world.plan.tasks[0].point_id, repeat=1)
    world.batching = lambda tasks: [Batch("pack", (*tasks, extra), (0, 2), extra=1)] if tasks else []
    world.scheduler.fate = lambda name: "fail" if name.endswith("/r1a1") else "ok"
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 2, "FAILED": 1}
    assert missing_tasks(world.plan.tasks, ledger.statuses) == []


@pytest.mark.parametrize("kind", ["array", "pack"])
def test_a_ledger_lost_while_a_group_runs_costs_nothing(kind: Kind, tmp_path: Path) -> None:
    world = world_of(tmp_path, kind)
    world.session(submit_missing)
    world.clock.sleep(1)
    world.layout.ledger.unlink()
    assert states(world.session(run_missing)) == {"SUCCEEDED": 6}
    assert len(world.scheduler.offered) == 1


@given(
    crashes=st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=5),
    answers=st.lists(st.sampled_from(["accepted", "accepted", "lost", "swallowed"]), max_size=6),
    delays=st.lists(st.sampled_from([0.0, 0.0, 30.0, 400.0]), max_size=6),
    kind=st.sampled_from(["array", "pack"]),
    size=st.sampled_from([2, 3, 6]),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whenever_the_harness_is_killed_each_task_of_a_group_is_executed_once(
    crashes: list[tuple[int, bool]],
    answers: list[str],
    delays: list[float],
    kind: Kind,
    size: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    world = world_of(tmp_path_factory.mktemp("crash"), kind, size, points=5)
    given_answers, given_delays = iter(answers), iter(delays)
    world.scheduler.answers = lambda _name: next(given_answers, "accepted")
    world.scheduler.delay_s = lambda _name: next(given_delays, 0.0)
    for at, after in crashes:
        with pytest.MonkeyPatch.context() as patch:
            killer = Killer(at, after)
            patch.setattr(files.Appender, "append", killer.around(files.Appender.append))
            for module in (attempts, submission):
                for name in WRITERS & vars(module).keys():
                    patch.setattr(module, name, killer.around(getattr(module, name)))
            for call in ("submit", "observe", "jobs"):
                patch.setattr(world.scheduler, call, killer.around(getattr(world.scheduler, call)))
            try:
                world.session(run_missing)
            except Crash:
                world.clock.sleep(17)  # jobs go on while nobody looks
    ledger = world.session(run_missing)
    world.clock.sleep(1000)  # time for the latest of late submissions
    assert sorted(world.scheduler.executed.values()) == [1] * 5
    assert missing_tasks(world.plan.tasks, ledger.statuses) == []


@given(cut=st.integers(0, 4000), kind=st.sampled_from(["array", "pack"]))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_ledger_cut_at_any_byte_costs_nothing(cut: int, kind: Kind, tmp_path_factory: pytest.TempPathFactory) -> None:
    world = world_of(tmp_path_factory.mktemp("cut"), kind, points=4)
    world.session(submit_missing)
    world.layout.ledger.write_bytes(world.layout.ledger.read_bytes()[:cut])
    world.clock.sleep(1)
    ledger = world.session(run_missing)
    assert sorted(world.scheduler.executed.values()) == [1] * 4
    assert all(isinstance(key, AttemptKey) for key in ledger.statuses)
    assert missing_tasks(world.plan.tasks, ledger.statuses) == []
