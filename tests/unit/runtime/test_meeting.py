from __future__ import annotations

import threading
from pathlib import Path

from harness.runtime.interfaces import Ranks
from harness.runtime.meeting import Meeting, launch_session


def ranks(local_rank: int, node: str = "n1", local_world: int = 3) -> Ranks:
    return Ranks(rank=local_rank, world=6, local_rank=local_rank, local_world=local_world, node=node)


def test_all_ranks_of_a_node_hear_each_other_and_leave_nothing(tmp_path: Path) -> None:
    meetings = [Meeting(tmp_path, ranks(local), "s") for local in range(3)]
    heard: dict[int, list[object]] = {}

    def tell(local: int) -> None:
        heard[local] = meetings[local].tell("cpus", {"cpus": [local]})

    threads = [threading.Thread(target=tell, args=(local,)) for local in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(heard.values()) == [[{"cpus": [0]}, {"cpus": [1]}, {"cpus": [2]}]] * 3
    for meeting in meetings:
        meeting.clear()
    assert list(tmp_path.iterdir()) == []


def test_a_rank_that_does_not_come_is_none(tmp_path: Path) -> None:
    assert Meeting(tmp_path, ranks(1), "s").tell("x", "here", patience_s=0.05) == [None, "here", None]


def test_other_nodes_launches_and_subjects_are_not_heard(tmp_path: Path) -> None:
    for node, session, name in (("n2", "s", "x"), ("n1", "old", "x"), ("n1", "s", "y")):
        Meeting(tmp_path, ranks(0, node, 2), session).tell(name, "wrong", patience_s=0.0)
    assert Meeting(tmp_path, ranks(1, "n1", 2), "s").tell("x", "right", patience_s=0.05) == [None, "right"]


def test_hostile_node_and_session_names_stay_inside_the_directory(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path, ranks(0, "../n", 2), "a/b $(x)\n")
    meeting.tell("x", 1, patience_s=0.0)
    assert [path.parent for path in tmp_path.iterdir()] == [tmp_path]
    assert not (tmp_path.parent / "n").exists()


def test_a_rank_alone_writes_nothing(tmp_path: Path) -> None:
    assert Meeting(tmp_path, ranks(0, local_world=1), "s").tell("x", 1) == [1]
    assert list(tmp_path.iterdir()) == []


def test_a_launch_is_named_by_the_most_specific_word() -> None:
    assert launch_session({"PMIX_NAMESPACE": "prterun-1@1", "PBS_JOBID": "7.s"}, 5) == "prterun-1@1"
    assert launch_session({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "2"}, 5) == "7.2"
    assert launch_session({"PBS_JOBID": "7.s"}, 5) == "7.s"
    assert launch_session({}, 5) == "5"
