"""Never twice, never lost: campaigns driven against a simulated scheduler that fails in every way we know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from simulation_support import Crash, Job, Killer, World, campaign

from harness import files
from harness.errors import HarnessError
from harness.jobs import attempts
from harness.jobs.causes import cause_of
from harness.jobs.drive import Driver
from harness.jobs.ledger import Ledger
from harness.jobs.schedulers.interface import Submitted
from harness.jobs.session import ELSEWHERE_S, give_up_elsewhere
from harness.jobs.tasks import missing_tasks
from harness.jobs.watch import NEVER_QUEUED
from harness.model.job import JobState, Observation


def run_missing(driver: Driver) -> None:
    driver.run(missing_tasks(driver.workshop.campaign.tasks, driver.ledger.statuses))


def states(ledger: Ledger) -> Counter[str]:
    return Counter(status.state.value for status in ledger.statuses.values())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path, campaign(points=3, repeats=2))


def test_every_task_is_measured_once(world: World) -> None:
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 6}
    assert sorted(world.scheduler.executed.values()) == [1] * 6
    again = world.session(run_missing)
    assert states(again) == {"SUCCEEDED": 6}
    assert len(world.scheduler.offered) == 6


def test_fresh_measures_everything_again_beside_the_old(world: World) -> None:
    world.session(run_missing)
    ledger = world.session(lambda d: d.run(missing_tasks(d.workshop.campaign.tasks, d.ledger.statuses, fresh=True)))
    assert Counter(key.attempt for key in ledger.statuses) == {1: 6, 2: 6}
    assert set(world.scheduler.executed.values()) == {2}


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_jobs_than_allowed_at_a_time(limit: int, world: World) -> None:
    world.limit = limit
    assert states(world.session(run_missing)) == {"SUCCEEDED": 6}
    assert world.scheduler.most_active == limit


def test_a_failed_job_is_tried_again_only_when_wished(world: World) -> None:
    world.scheduler.fate = lambda name: "fail" if name.endswith("r0a1") else "ok"
    assert states(world.session(run_missing)) == {"FAILED": 3, "SUCCEEDED": 3}
    assert states(world.session(run_missing)) == {"FAILED": 3, "SUCCEEDED": 6}


def test_retries_are_counted_per_task(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=2), retries=2)
    world.scheduler.fate = lambda _name: "fail"
    ledger = world.session(run_missing)
    assert Counter(key.attempt for key in ledger.statuses) == {1: 2, 2: 2, 3: 2}


def test_a_forgotten_job_without_evidence_is_lost_and_never_a_success(world: World) -> None:
    world.scheduler.fate = lambda name: {"r0a1": "vanish", "r1a1": "silent"}.get(name[-4:], "ok")
    ledger = world.session(run_missing)
    assert states(ledger) == {"LOST": 6}
    reasons = Counter(status.reason for status in ledger.statuses.values())
    assert reasons == {
        "the scheduler does not know the job any more, and it left no exit record": 3,
        "the scheduler reports success, but the run left no exit record": 3,
    }


def test_what_we_cancelled_before_it_began_is_cancelled_though_the_scheduler_forgot_it(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.scheduler.delay_s = lambda _name: 1e9

    def cancel(driver: Driver) -> None:
        driver.submit_all(driver.workshop.campaign.tasks)
        for job in world.scheduler.known.values():
            job.forgotten = True
        driver.cancel_active(patience_s=30.0)

    (status,) = world.session(cancel).statuses.values()
    assert (status.state, status.reason) == (JobState.CANCELLED, "cancelled before it began")


def test_a_cancellation_that_is_refused_is_said_before_its_end_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.scheduler.delay_s = lambda _name: 1e9
    world.scheduler.cancel = lambda _ids: ["scancel: error: Access/permission denied"]  # type: ignore[method-assign]
    said_s: list[float] = []

    def cancel(driver: Driver) -> None:
        driver.submit_all(driver.workshop.campaign.tasks)
        driver.say = lambda text: (world.said.append(text), said_s.append(world.clock.now()))  # type: ignore[assignment,return-value]
        begin = world.clock.now()
        driver.cancel_active(patience_s=60.0)
        assert (world.said[0], said_s[0]) == ("scancel: error: Access/permission denied", begin)

    assert states(world.session(cancel)) == {"QUEUED": 1}


@pytest.mark.parametrize(("has_begun", "expected"), [(False, "CANCELLED"), (True, "LOST")])
def test_a_word_on_jobs_that_never_began_counts_for_no_other(tmp_path: Path, has_begun: bool, expected: str) -> None:
    world = World(tmp_path, campaign(points=1))
    world.scheduler.fate = lambda _name: "vanish"
    world.scheduler.delay_s = lambda _name: 0.0 if has_begun else 1e9
    word = {"state": JobState.CANCELLED, "native_state": "CANCELLED", "if_unbegun": True}
    world.scheduler.observe = lambda ids: {i: Observation(job_id=i, **word) for i in ids}  # type: ignore[method-assign]
    assert states(world.session(run_missing)) == {expected: 1}


@pytest.mark.parametrize(
    ("word", "is_local", "said"),
    [
        ("OUT_OF_MEMORY", False, "; the scheduler says OUT_OF_MEMORY"),
        ("FAILED", False, ""),
        ("OUT_OF_MEMORY", True, ""),
    ],
)
def test_a_run_that_fails_by_itself_is_explained_where_the_scheduler_knows_more(
    tmp_path: Path, word: str, is_local: bool, said: str
) -> None:
    """A worker killed for the job's memory fails its rank with an exit code of its own."""
    world = World(tmp_path, campaign(points=1))
    world.scheduler.fate, world.scheduler.is_local = lambda _name: "fail", is_local
    seen = world.scheduler._seen
    world.scheduler._seen = lambda job: seen(job).model_copy(update={"native_state": word})  # type: ignore[method-assign]
    (status,) = world.session(run_missing).statuses.values()
    assert (status.state, status.reason) == (JobState.FAILED, f"exit code 1{said}")


def test_late_evidence_lifts_a_lost_run(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.scheduler.fate = lambda _name: "vanish"
    assert states(world.session(run_missing)) == {"LOST": 1}
    job = next(iter(world.scheduler.known.values()))
    world.scheduler._finish(job, 0, "exit")  # the file server comes back
    assert states(world.session(run_missing)) == {"SUCCEEDED": 1}
    assert len(world.scheduler.offered) == 1


def test_evidence_within_the_grace_is_waited_for(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.scheduler.fate = lambda _name: "silent"

    def show_late() -> None:
        for job in world.scheduler.known.values():
            if job.state.ended and world.clock.now() > job.ends_s + 80 and not job.paths.exit.exists():
                world.scheduler._finish(job, 0, "exit")

    world.clock.on_tick.append(show_late)
    assert states(world.session(run_missing)) == {"SUCCEEDED": 1}


def test_a_server_that_is_down_proves_nothing(world: World) -> None:
    began = world.clock.now()
    world.scheduler.is_down = lambda: world.clock.now() < began + 5000
    world.scheduler.fate = lambda _name: "silent"
    ledger = world.session(run_missing)
    assert states(ledger) == {"LOST": 6} and world.clock.now() > began + 5000


def test_questions_grow_rare(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=3))
    world.scheduler.lasts_s = 7200
    assert states(world.session(run_missing)) == {"SUCCEEDED": 3}
    assert world.scheduler.questions < 7200 / 60 + 20


def test_a_job_that_can_never_run_is_cancelled_and_named(world: World) -> None:
    world.scheduler.fate = lambda name: "stuck" if name.endswith("r1a1") else "ok"
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 3, "FAILED": 3}
    assert {s.reason for s in ledger.statuses.values() if s.reason} >= {"can never run: Can Never Run"}
    assert all(job.state.ended for job in world.scheduler.known.values())


def test_a_busy_queue_is_offered_the_job_again(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=2))
    began = world.clock.now()
    world.scheduler.answers = lambda _name: "busy" if world.clock.now() < began + 100 else "accepted"
    ledger = world.session(run_missing)
    assert states(ledger)["SUCCEEDED"] == 2
    assert 3 <= len(world.scheduler.offered) <= 8


def test_refusals_in_a_row_end_the_submission(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=20))
    world.scheduler.answers = lambda _name: "refused"
    with pytest.raises(HarnessError, match="3 jobs in a row were refused, 17 were not offered: the queue says no"):
        world.session(run_missing)
    assert len(world.scheduler.offered) == 3


@pytest.mark.parametrize("delay_s", [0.0, 500.0])
def test_an_unanswered_submission_is_found_by_name_or_fenced(delay_s: float, world: World) -> None:
    """The job was queued although nobody said so, perhaps only after we had asked for it."""
    world.scheduler.answers = lambda name: "lost" if name.endswith("r0a1") else "accepted"
    world.scheduler.delay_s = lambda name: delay_s if name.endswith("r0a1") else 0.0
    ledger = world.session(run_missing)
    world.clock.sleep(1000)
    assert sorted(world.scheduler.executed.values()) == [1] * 6
    lost = 3 if delay_s else 0
    assert states(ledger) == Counter({"SUCCEEDED": 6, "LOST": lost}) - Counter({"LOST": 0 if lost else 1})
    assert {s.reason for s in ledger.statuses.values() if s.state is JobState.LOST} == (
        {NEVER_QUEUED} if lost else set()
    )


def test_submissions_that_vanish_are_repeated_but_not_for_ever(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))
    world.scheduler.answers = lambda _name: "swallowed"
    assert states(world.session(run_missing)) == {"LOST": 4}


def test_a_deleted_ledger_costs_no_measurement(world: World) -> None:
    world.session(run_missing)
    world.layout.ledger.unlink()
    assert states(world.session(run_missing)) == {"SUCCEEDED": 6}
    assert len(world.scheduler.offered) == 6


def test_an_asked_stop_cancels_and_the_next_run_completes(world: World) -> None:
    world.limit = 2
    seen = []

    def act(driver: Driver) -> None:
        world.clock.on_tick.append(
            lambda: seen or (world.clock.now() > 1010 and (world.layout.stop.touch(), seen.append(1)))
        )
        run_missing(driver)
        assert driver.stop.reason == "request"
        driver.cancel_active(60)

    assert states(world.session(act)) == {"CANCELLED": 2}
    world.layout.stop.unlink()
    assert states(world.session(run_missing)) == {"CANCELLED": 2, "SUCCEEDED": 6}


@given(
    crashes=st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=6),
    answers=st.lists(st.sampled_from(["accepted", "accepted", "accepted", "lost", "swallowed"]), max_size=8),
    delays=st.lists(st.sampled_from([0.0, 0.0, 30.0, 400.0]), max_size=8),
    limit=st.sampled_from([1, 2, 10]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whenever_the_harness_is_killed_each_task_is_executed_once(
    crashes: list[tuple[int, bool]],
    answers: list[str],
    delays: list[float],
    limit: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    world = World(tmp_path_factory.mktemp("crash"), campaign(points=2, repeats=2), limit=limit)
    given_answers, given_delays = iter(answers), iter(delays)
    world.scheduler.answers = lambda _name: next(given_answers, "accepted")
    world.scheduler.delay_s = lambda _name: next(given_delays, 0.0)
    for at, after in crashes:
        with pytest.MonkeyPatch.context() as patch:
            killer = Killer(at, after)
            patch.setattr(files.Appender, "append", killer.around(files.Appender.append))
            patch.setattr(attempts, "write_new", killer.around(attempts.write_new))
            for call in ("submit", "observe", "jobs"):
                patch.setattr(world.scheduler, call, killer.around(getattr(world.scheduler, call)))
            try:
                world.session(run_missing)
            except Crash:
                world.clock.sleep(17)  # jobs go on while nobody looks
    ledger = world.session(run_missing)
    world.clock.sleep(1000)  # time for the latest of late submissions
    assert sorted(world.scheduler.executed.values()) == [1] * 4
    assert missing_tasks(world.plan.tasks, ledger.statuses) == []


def test_local_jobs_of_another_host_are_left_alone_until_they_must_be_over(world: World) -> None:
    world.scheduler.fate = lambda _name: "silent"
    world.limit = 1
    ledger = world.session(lambda driver: driver.submit_all(list(world.plan.tasks)[:1]))
    key, status = next(iter(ledger.statuses.items()))

    def act(driver: Driver) -> None:
        driver.ledger.statuses[key] = replace(status, job_id="17@elsewhere", submitted_unix_s=1000.0)
        limit_s = world.plan.points[key.point_id].placement.walltime_s + ELSEWHERE_S
        give_up_elsewhere(driver, "elsewhere", 1000.0)
        with pytest.raises(HarnessError, match=r"runs on elsewhere, and this is here: .* 00:00:01, when"):
            give_up_elsewhere(driver, "here", 1000.0 + limit_s - 1)
        give_up_elsewhere(driver, "here", 1000.0 + limit_s + 1)
        assert driver.ledger.statuses[key].state is JobState.LOST

    world.session(act)


@pytest.mark.parametrize(
    ("fate", "said"),
    [
        ("requeue", "stopped after 20 s; the scheduler says X: its job was put back into the queue"),
        ("requeue_killed", "the scheduler says X; there is no exit record; its job was put back into the queue"),
    ],
)
def test_a_run_whose_job_was_put_back_has_failed_and_the_job_is_ended(fate: str, said: str, world: World) -> None:
    """The job waits for an hour; it would only find its claim."""
    world.scheduler.fate = lambda name: fate if name.endswith("r0a1") else "ok"
    ledger = world.session(run_missing)
    assert states(ledger) == {"FAILED": 3, "SUCCEEDED": 3}
    assert {status.reason for status in ledger.statuses.values() if status.state is JobState.FAILED} == {said}
    assert {cause_of(status) for status in ledger.statuses.values()} == {"", "rerun"}
    assert world.clock.now() < 1000 + world.scheduler.back_s
    assert len(world.scheduler.cancelled) == 3
    assert sorted(world.scheduler.executed.values()) == [1] * 6


def test_a_scheduler_is_not_asked_at_once_again_and_again_about_a_job_that_it_put_back(world: World) -> None:
    world.scheduler.fate = lambda _name: "requeue"
    world.session(run_missing)
    assert world.scheduler.questions < 40


def test_a_run_that_was_begun_once_more_while_nobody_looked_is_told_as_such(world: World) -> None:
    world.scheduler.fate, world.scheduler.back_s = lambda _name: "requeue", 10.0
    world.session(lambda d: d.submit_all(d.workshop.campaign.tasks))
    for _ in range(4):
        world.clock.sleep(20)
    ledger = world.session(lambda d: d.run([]))
    assert {status.reason for status in ledger.statuses.values()} == {
        "stopped after 20 s; the scheduler says X with exit status 93"
    }
    assert {cause_of(status) for status in ledger.statuses.values()} == {"rerun"}


def test_an_answer_that_is_some_moments_old_ends_no_run(world: World) -> None:
    """A site may have qstat answer from a store: what has begun is still said to wait."""
    fresh, begun_s = world.scheduler._seen, world.clock.now()

    def stale(job: Job) -> Observation:
        is_old = job.state is JobState.RUNNING and world.clock.now() < begun_s + 200
        return fresh(job).model_copy(update={"state": JobState.QUEUED}) if is_old else fresh(job)

    world.scheduler._seen, world.scheduler.lasts_s = stale, 400.0  # type: ignore[method-assign]
    assert states(world.session(run_missing)) == {"SUCCEEDED": 6}
    assert world.scheduler.cancelled == []


def limited(world: World, most: int) -> None:
    """The scheduler takes no more than so many jobs of the user's at a time."""
    submit = world.scheduler.submit

    def within_limit(script: str, job_name: str) -> Submitted:
        living = [job for job in world.scheduler.known.values() if not job.state.ended]
        if len(living) >= most:
            world.scheduler.offered.append(job_name)
            return Submitted("refused", message="MaxSubmitJobLimit", retryable=True, by_count=True)
        return submit(script, job_name)

    world.scheduler.submit = within_limit  # type: ignore[method-assign]


def test_a_full_queue_is_waited_for(world: World) -> None:
    limited(world, 2)
    ledger = world.session(run_missing)
    assert states(ledger) == {"SUCCEEDED": 6}


def test_a_limit_that_no_job_fits_is_not_waited_for(world: World) -> None:
    """As of an account that may submit nothing, or an array larger than the limit."""
    limited(world, 0)
    with pytest.raises(
        HarnessError, match="3 jobs in a row were refused, 3 were not offered: MaxSubmitJobLimit; none of"
    ):
        world.session(run_missing)
    assert len(world.scheduler.offered) == 4
    assert world.clock.now() < 1000 + 120


def test_what_waited_is_cancelled_though_another_job_had_ended_already(world: World) -> None:
    """qdel complains of the one; of the others a site without history keeps no record."""
    world.scheduler.delay_s = lambda _name: 1e6

    def cancel(ids: Sequence[str]) -> list[str]:
        for job in world.scheduler.known.values():
            job.forgotten = True
        return ["qdel: Job has finished 1.far"] if ids else []

    def act(driver: Driver) -> None:
        driver.submit_all(driver.workshop.campaign.tasks)
        driver.cancel_active(60)

    world.scheduler.cancel = cancel  # type: ignore[method-assign]
    assert states(world.session(act)) == {"CANCELLED": 6}
