"""Who waits for a campaign is told why, and each thing once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from simulation_support import World, campaign

from harness.jobs.drive import Driver
from harness.jobs.schedulers.interface import Answer
from harness.jobs.site import Site
from harness.jobs.waiting import TURN_S
from harness.model.cluster import Cluster, NodeType, Storage
from harness.model.job import JobState, Observation


def follow(world: World, seconds: float, at: Callable[[float], None] = lambda _s: None) -> list[str]:
    """What is said while all jobs wait; ``at`` is called with the seconds that have passed."""
    world.scheduler.delay_s = lambda _name: 1e9

    def watch(driver: Driver) -> None:
        driver.submit_all(driver.workshop.campaign.tasks)
        begin = world.clock.now()
        while (passed := world.clock.now() - begin) < seconds:
            at(passed)
            driver.look()
            driver.pause()

    world.session(watch)
    return world.said


def waiting_for(*reasons: str) -> Callable[[Sequence[str]], dict[str, Observation]]:
    """A scheduler's answer: the jobs wait, for these reasons in turn."""

    def observe(ids: Sequence[str]) -> dict[str, Observation]:
        pairs = zip(sorted(ids), reasons * len(ids), strict=False)
        return {
            job: Observation(job_id=job, state=JobState.QUEUED, native_state="PENDING", reason=reason)
            for job, reason in pairs
        }

    return observe


def test_held_jobs_are_told_of_at_once_with_what_frees_them(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=3))
    world.scheduler.observe = waiting_for("JobHeldUser", "Priority")  # type: ignore[method-assign]
    assert follow(world, seconds=TURN_S - 1) == [
        "2 jobs are held (JobHeldUser): somebody must let it go: scontrol release 0.far"
    ]


def test_why_nothing_begins_is_told_once_for_each_reason(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=3))

    def change(passed: float) -> None:
        amount = int(passed)
        reason = "Priority" if passed < 300 else f"Not Running: Insufficient amount of resource: ncpus (R: {amount})"
        world.scheduler.observe = waiting_for(reason)  # type: ignore[method-assign]

    priority, lacking = follow(world, 1200, change)
    assert priority == "nothing of ours runs yet; the scheduler says: Priority (3)"
    assert lacking.startswith("nothing of ours runs yet; the scheduler says: Not Running: Insufficient amount of")


def test_a_scheduler_that_is_silent_for_long_is_told_of_once_and_that_it_is_back(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=1))

    def change(passed: float) -> None:
        world.scheduler.silence = (
            "slurm_load_jobs error:\nno answer" if 100 < passed < 400 or passed < TURN_S / 2 else ""
        )

    assert follow(world, 600, change) == [
        "the scheduler does not answer: slurm_load_jobs error: no answer; it is asked until it does",
        "the scheduler answers again",
    ]


def test_a_server_that_takes_no_jobs_is_told_of_once(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=2))
    world.scheduler.answers = lambda _name: "busy" if world.clock.now() < 1200 else "accepted"
    world.session(lambda driver: driver.submit_all(driver.workshop.campaign.tasks))
    assert world.said == ["not taken for now: the queue says no; offered again every 30 s"]


def test_after_a_submission_without_an_answer_the_server_is_left_alone_for_a_while(tmp_path: Path) -> None:
    world = World(tmp_path, campaign(points=3))
    world.scheduler.answers = lambda _name: "swallowed"
    offered_s: list[float] = []
    submit = world.scheduler.submit
    world.scheduler.submit = lambda *words: (offered_s.append(world.clock.now()), submit(*words))[1]  # type: ignore
    world.session(lambda driver: driver.submit_all(driver.workshop.campaign.tasks))
    assert len(offered_s) >= 3
    assert min(later - earlier for earlier, later in zip(offered_s, offered_s[1:], strict=False)) >= 30
    assert world.said == [
        "no clear answer to a submission: server did not answer; its job is looked for by name before it is repeated"
    ]


@pytest.mark.parametrize(
    ("scheduler", "answer", "silence"),
    [
        (
            "slurm",
            Answer(1, "", "slurm_load_jobs error: Unable to contact slurm controller\n"),
            "slurm_load_jobs error",
        ),
        ("slurm", Answer(None, "", ""), "no answer in time"),
        ("slurm", Answer(1, "", "slurm_load_jobs error: Invalid job id specified\n"), ""),
        ("slurm", Answer(0, "", ""), ""),
        ("pbs", Answer(255, "", "qstat: cannot connect to server s (errno=15010)\n"), "qstat: cannot connect"),
        ("torque", Answer(111, "", "qstat: cannot connect to server s\n"), "qstat: cannot connect"),
        ("torque", Answer(153, "", "qstat: Unknown Job Id Error 7.s\n"), ""),
    ],
)
def test_a_site_tells_silence_from_an_answer(scheduler: str, answer: Answer, silence: str) -> None:
    node, storage = NodeType(cores_per_socket=8), {"s": Storage(path="/s")}
    site = Site(Cluster(name="c", scheduler=scheduler, node=node, storage=storage), run=lambda _argv: answer)
    site.observe(["7.s"] if scheduler != "slurm" else ["7"])
    assert site.silence.startswith(silence) and bool(site.silence) == bool(silence)
