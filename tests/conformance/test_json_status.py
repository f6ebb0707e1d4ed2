"""Status asked for in JSON first: what is whole is believed, what is broken or left out is asked as text, and a server
that was caught once is asked as text from then on. Never more than one question too many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from jobs_support import make_cluster

from harness import catalog
from harness.jobs.schedulers.interface import Answer
from harness.jobs.site import Site


class Server:
    """Plays qstat: ``jobs`` by number, and what is wrong with its JSON."""

    def __init__(self, jobs: dict[str, dict[str, Any]], trouble: str = ""):
        self.jobs, self.trouble, self.asked = jobs, trouble, list[list[str]]()

    def __call__(self, argv: Sequence[str]) -> Answer:
        self.asked.append(list(argv))
        ids = [word.partition(".")[0] for word in argv if word[0].isdigit()]
        found = {number: self.jobs[number] for number in ids if number in self.jobs}
        if "-t" in argv:
            found = {
                n: job for n, job in self.jobs.items() if n.partition("[")[0] in {i.partition("[")[0] for i in ids}
            }
        errors = "".join(f"qstat: Unknown Job Id {number}.srv\n" for number in ids if number not in self.jobs)
        code = 153 if errors else 0
        if self.trouble == "away":
            return Answer(255, '{"pbs_server": "srv"}', "qstat: cannot connect to server srv (errno=15010)")
        if "json" in argv:
            return self._json(found, errors, code)
        if self.trouble == "no history" and "-x" in argv:
            return Answer(0, "", "qstat: PBS is not configured to maintain job history\n")
        return Answer(code, "".join(map(as_text, found.items())), errors)

    def _json(self, found: dict[str, dict[str, Any]], errors: str, code: int) -> Answer:
        if self.trouble == "first only":
            found = dict(list(found.items())[:1])
        if self.trouble == "no history":
            return Answer(0, '{"pbs_server": "srv"}', "qstat: PBS is not configured to maintain job history\n")
        if self.trouble == "too old":
            return Answer(2, "", "qstat: invalid option -- 'F'\nusage: qstat")
        if self.trouble == "hangs":
            return Answer(None, "", "")
        text = json.dumps({"Jobs": {f"{number}.srv": job for number, job in found.items()}})
        broken = {"backslash": '"a\\q"', "nan": "nan", "NaN": "NaN", "number": "1.", "comma": '"a",'}
        if self.trouble in broken:
            text = text.replace('"job_state"', f'"project": {broken[self.trouble]}, "job_state"', 1)
        if self.trouble == "cut":
            text = text[: len(text) * 2 // 3]
        if self.trouble == "no table":
            text = '{"Jobs": ["7.srv"]}'
        return Answer(code, text, errors)

    def kinds(self) -> str:
        """J for a question in JSON, t for one of text."""
        return "".join("J" if "json" in argv else "t" for argv in self.asked)


def as_text(job: tuple[str, dict[str, Any]]) -> str:
    return f"Job Id: {job[0]}.srv\n" + "".join(f"    {key} = {value}\n" for key, value in job[1].items()) + "\n"


def running(count: int, first: int = 1) -> dict[str, dict[str, Any]]:
    return {
        str(number): {"Job_Name": number, "job_state": "R", "substate": 42} for number in range(first, first + count)
    }


ENDED = {"Job_Name": "h1", "job_state": "F", "Exit_status": 3, "substate": 92}


def site(server: Server, complaints: list[str] | None = None, **options: Any) -> Site:
    return Site(
        make_cluster("pbs"), server, give_up_json=[].append if complaints is None else complaints.append, **options
    )


def states(place: Site, *numbers: str) -> dict[str, str]:
    seen = place.observe([f"{number}.srv" for number in numbers])
    assert all(key == job.job_id for key, job in seen.items())
    return {key.partition(".")[0]: f"{job.state.value if job.state else None}" for key, job in seen.items()}


def test_one_question_answers_for_waiting_running_and_ended() -> None:
    server = Server(running(2) | {"3": ENDED, "4": {"job_state": "Q", "comment": "Can Never Run: ncpus"}})
    found = site(server).observe([f"{number}.srv" for number in (1, 2, 3, 4)])
    assert [found[f"{n}.srv"].native_state for n in (1, 2, 3, 4)] == ["R", "R", "F", "Q"]
    assert (found["3.srv"].exit_status, found["4.srv"].never_runnable) == (3, True)
    assert server.kinds() == "J"


TROUBLES = ["backslash", "nan", "NaN", "number", "comma", "cut", "no table", "too old", "hangs"]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_is_no_json_is_asked_as_text_from_then_on(trouble: str) -> None:
    server, complaints = Server(running(3), trouble), list[str]()
    place = site(server, complaints)
    assert states(place, "1", "2", "3") == dict.fromkeys("123", "RUNNING")
    assert server.kinds() == "Jtt"
    assert states(place, "1", "2", "3") == dict.fromkeys("123", "RUNNING")
    assert server.kinds() == "Jtttt"
    assert len(complaints) == 1


def test_jobs_left_out_are_asked_as_text_and_the_server_is_found_out() -> None:
    server, complaints = Server(running(3), "first only"), list[str]()
    place = site(server, complaints)
    assert states(place, "1", "2", "3") == dict.fromkeys("123", "RUNNING")
    assert server.kinds() == "Jtt"
    assert all("1.srv" not in argv for argv in server.asked[1:])
    states(place, "1", "2", "3")
    assert server.kinds() == "Jtttt"
    assert complaints == ["qstat -F json told nothing of 2.srv, though the server knows it"]


def test_a_site_without_history_is_found_out_by_its_running_jobs() -> None:
    server = Server(running(1), "no history")
    place = site(server)
    assert states(place, "1") == states(place, "1") == {"1": "RUNNING"}
    assert server.kinds() == "Jtttt"


def test_a_job_that_is_unknown_in_both_says_nothing_against_json() -> None:
    server, complaints = Server(running(1)), list[str]()
    place = site(server, complaints)
    for _ in range(2):
        assert states(place, "1", "7") == {"1": "RUNNING", "7": "None"}
    assert server.kinds() == "JttJtt"
    assert complaints == []


def test_a_server_that_is_away_is_asked_once_and_in_json_again() -> None:
    server, complaints = Server(running(2), "away"), list[str]()
    place = site(server, complaints)
    assert states(place, "1", "2") == {}
    server.trouble = ""
    assert states(place, "1", "2") == dict.fromkeys("12", "RUNNING")
    assert server.kinds() == "JJ"
    assert complaints == []


def test_what_an_earlier_harness_found_out_is_not_tried_again() -> None:
    server = Server(running(1))
    assert states(site(server, as_text=True), "1") == {"1": "RUNNING"}
    assert server.kinds() == "tt"


def test_many_jobs_cost_one_question_too_many_and_not_one_for_each_group() -> None:
    server = Server(running(120), "nan")
    assert len(states(site(server), *server.jobs)) == 120
    assert server.kinds() == "J" + "t" * 6
    whole = Server(running(120))
    assert len(states(site(whole), *whole.jobs)) == 120
    assert whole.kinds() == "JJJ"


def test_elements_of_an_array_are_read_from_their_own_records() -> None:
    jobs = {
        "9[]": {"job_state": "B", "array": "True", "Exit_status": 0},
        "9[0]": {"job_state": "X", "Exit_status": -29, "substate": 93},
        "9[1]": {"job_state": "R"},
    }
    server = Server(jobs)
    assert states(site(server), "9[0]", "9[1]") == {"9[0]": "TIMED_OUT", "9[1]": "RUNNING"}
    assert server.kinds() == "J"
    assert server.asked[0] == ["qstat", "-x", "-f", "-F", "json", "-t", "9[].srv"]


def test_an_element_without_a_record_is_asked_as_text() -> None:
    server = Server({"9[]": {"job_state": "F", "array": "True", "Exit_status": 0}})
    assert states(site(server), "9[0]") == {"9[0]": "None"}
    assert server.kinds() == "Jtt"


@pytest.mark.parametrize("name", sorted(catalog.SCHEDULERS))
def test_only_pbs_is_asked_in_json(name: str) -> None:
    module = catalog.load(catalog.SCHEDULERS[name])
    first = module.FIRST_QUESTION.argv(["7.srv"]) if module.FIRST_QUESTION else []
    asked = ["json" in argv for argv in first + module.status_argv(["7.srv"])]
    assert asked == ([True, False, False] if name == "pbs" else [False] * len(asked))
    assert module.FIRST_QUESTION is None or module.FIRST_QUESTION.argv([]) == []
