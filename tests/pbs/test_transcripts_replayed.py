"""The fake answers as the real OpenPBS did: its recorded qsub calls are made again, and its qstat answers compared.

What is not made again stands in :data:`NOT_REPLAYED` with the reason.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest
from sites.pbs import answers, options
from sites.pbs.site import FakePbs
from sites.pbs.site import fake_pbs as running_pbs

NOT_REPLAYED = {
    "qsub_server_down": "needs a server that is down: test_faults.py",
    "qsub_root_refused": "needs a site that rejects root: test_root_is_refused",
    "qsub_limit_3_rejected": "needs two jobs before it: test_limit_of_a_user",
    "qsub_ngpus_undefined_resource": "needs a server without ngpus: test_undefined_resource",
    "qsub_block_ok": "waits for a run: test_block_returns_the_jobs_status",
    "qsub_block_fail3": "waits for a run: test_block_returns_the_jobs_status",
    "qsub_mpi2": "waits for a run that needs OpenPBS's tmrsh",
}


def shape(text: str) -> str:
    """A text with what differs between two sites taken out: job numbers and the letter after an option."""
    return re.sub(r"^\d+(\[\])?\.pbshost$", r"N\1.pbshost", text, flags=re.MULTILINE)


@pytest.fixture(scope="module")
def idle_site() -> Iterator[FakePbs]:
    """A site that queues and never starts a job."""
    with running_pbs(scheduling=False) as site:
        yield site
        log = site.log()
    assert not log, f"the fake itself failed:\n{log}"


def make_again(site: FakePbs, record: dict[str, Any]) -> Any:
    """The recorded command, in a directory that holds its script."""
    cwd = site.base / record["name"]
    cwd.mkdir()
    argv = [re.sub(r"^/home/pbsuser/", f"{cwd}/", word) for word in record["argv"]]
    argv[0] = argv[0].rpartition("/")[2]
    scripts = [word for word in argv if word.endswith(".pbs") and not word.startswith("nosuch")]
    if record.get("script") is not None and scripts:
        path = cwd / scripts[-1].rpartition("/")[2]
        path.write_bytes(record["script"].encode("utf-8", "surrogateescape"))
    return site.run(*argv, cwd=cwd, input=record["stdin"], errors="surrogateescape")


def test_every_submission_is_answered_as_recorded(idle_site: FakePbs, transcripts: dict[str, dict[str, Any]]) -> None:
    recorded = {name: t for name, t in transcripts.items() if t["argv"][0].endswith("qsub")}
    assert set(NOT_REPLAYED) <= set(recorded)
    wrong = {}
    for name, record in recorded.items():
        if name in NOT_REPLAYED:
            continue
        idle_site.set(scheduling=False)
        done = make_again(idle_site, record)
        got = (done.returncode, shape(done.stdout), done.stderr)
        expected = (record["returncode"], shape(record["stdout"]), record["stderr"])
        if got != expected:
            wrong[name] = {"argv": record["argv"], "got": got, "expected": expected}
    assert not wrong, json.dumps(wrong, indent=1)


# qstat: a job in the same situation, and its attributes, their order and what they say


def normal(value: Any) -> Any:
    """An attribute without dates, hosts, users and job numbers."""
    if isinstance(value, dict):
        return {key: cell for key, cell in value.items() if key != "walltime"}
    if not isinstance(value, str):
        return value
    value = re.sub(r"\w{3} \w{3} \d+ (at \d\d:\d\d|\d\d:\d\d:\d\d \d{4})", "DATE", value)
    value = re.sub(r"pbsn\d", "NODE", value)
    value = re.sub(r"(afterok):\d+", r"\1:N", value)
    return re.sub(r"(by|held by) \S+@", r"\1 USER@", value)


COMPARED = (
    "Job_Name",
    "job_state",
    "substate",
    "Exit_status",
    "Hold_Types",
    "Join_Path",
    "Keep_Files",
    "Rerunable",
    "Resource_List",
    "Stageout_status",
    "comment",
    "depend",
    "exec_vnode",
    "array",
    "array_index",
    "array_indices_submitted",
    "array_indices_remaining",
    "array_state_count",
    "project",
    "Account_Name",
)
#: written only where the job lived long enough for mom to tell: present or absent from one run to the next
SOMETIMES = {"session_id"}
JOINED = "#!/bin/bash\n#PBS -j oe\n"
KILLED = JOINED + "kill -9 $$\n"
SLEEP = JOINED + "sleep 300\n"
TRAP = JOINED + "trap '' TERM; sleep 300 & wait; wait; sleep 300\n"
#: transcript → (script, options, what is done with the job, flags of qstat)
SITUATIONS = {
    "qstat_json_hist_ok": (JOINED + "true\n", ["-N", "ok"], "end", "-x"),
    "qstat_json_hist_f3": (JOINED + "exit 3\n", ["-N", "fail3"], "end", "-x"),
    "qstat_json_hist_k9": (KILLED, ["-N", "kill9"], "end", "-x"),
    "qstat_json_hist_sg": (KILLED.replace("-9", "-SEGV"), ["-N", "segv"], "end", "-x"),
    "qstat_json_hist_wtt": (TRAP, ["-l", "walltime=1", "-N", "wtimetrap"], "end", "-x"),
    "qstat_json_hist_dr": (SLEEP, ["-N", "delrun"], "qdel", "-x"),
    "qstat_json_hist_drt": (TRAP, ["-N", "delruntrap"], "qdel", "-x"),
    "qstat_json_hist_run": (SLEEP, ["-N", "running"], "qdel -W force", "-x"),
    "qstat_json_hist_dq": (JOINED, ["-h", "-N", "delq"], "qdel held", "-x"),
    "qstat_x_bad_interpreter": ("#!/no/such\n#PBS -j oe\n", ["-N", "badint"], "end", "-x"),
    "qstat_json_stageout_failed": (JOINED, ["-o", "/no/such/out.txt", "-N", "nodirout"], "end", "-x"),
    "qstat_json_running": (SLEEP, ["-N", "running"], "run", ""),
    "qstat_json_can_never_run": (JOINED, ["-l", "select=1:ncpus=99", "-N", "toomany"], "queue", ""),
    "qstat_x_qsub_dep_afterok_bad": (JOINED, ["-W", "depend=afterok:99", "-N", "d2"], "end", "-x"),
}


# a script that ignores TERM is killed after the delay
@pytest.mark.parametrize("fake_pbs", [{"kill_delay_s": 1.0}], indirect=True, ids=[""])
@pytest.mark.parametrize("name", SITUATIONS)
def test_a_job_is_described_as_recorded(fake_pbs: FakePbs, transcripts: dict[str, dict[str, Any]], name: str) -> None:
    script, more, act, flag = SITUATIONS[name]
    select = [] if "select=1:ncpus=99" in more else ["-l", "select=1:ncpus=1"]
    job_id = fake_pbs.qsub(script, *select, *more)
    if act.startswith("qdel") and "held" not in act:
        fake_pbs.wait(job_id, "R")
    if act.startswith("qdel"):
        fake_pbs.run("qdel", *act.removesuffix(" held").split()[1:], job_id, check=True)
    fake_pbs.wait(job_id, {"run": "R", "queue": "Q"}.get(act, "F"))
    answer = fake_pbs.run("qstat", *flag.split(), "-f", "-F", "json", job_id)
    (got,) = json.loads(answer.stdout)["Jobs"].values()
    (expected,) = json.loads(transcripts[name]["stdout"])["Jobs"].values()
    assert [k for k in got if k not in SOMETIMES] == [k for k in expected if k not in SOMETIMES]
    different = {
        key: (normal(got.get(key)), normal(expected.get(key)))
        for key in COMPARED
        if normal(got.get(key)) != normal(expected.get(key))
    }
    assert not different


def recorded_attributes(record: dict[str, Any]) -> dict[str, Any]:
    return json.loads(record["stdout"])["Jobs"]


def test_an_array_is_described_as_recorded(fake_pbs: FakePbs, transcripts: dict[str, dict[str, Any]]) -> None:
    script = "#!/bin/bash\n#PBS -l select=1:ncpus=1\n#PBS -l walltime=00:05:00\nsleep 300\n"
    array = fake_pbs.qsub(script, "-J", "0-9", "-N", "arr", "-v", "SLP=8")
    for index in range(10):
        fake_pbs.wait(f"{array.partition('[')[0]}[{index}].pbshost", "R")
    got = json.loads(fake_pbs.run("qstat", "-t", "-f", "-F", "json", array).stdout)["Jobs"]
    expected = recorded_attributes(transcripts["qstat_array_json_t"])
    assert [re.sub(r"^\d+", "N", job) for job in got] == [re.sub(r"^\d+", "N", job) for job in expected]
    for mine, theirs in zip(got.values(), expected.values(), strict=True):
        assert list(mine) == list(theirs)
        assert {k: normal(mine[k]) for k in COMPARED if k in mine} == {
            k: normal(theirs[k]) for k in COMPARED if k in theirs
        }
        assert mine["Variable_List"]["SLP"] == 8


@pytest.mark.parametrize("name", ["qstat_json_full_ok", "qstat_json_running", "qstat_array_json_t", "qstat_json_v_13"])
def test_json_is_laid_out_as_the_current_version_does(transcripts: dict[str, dict[str, Any]], name: str) -> None:
    text = transcripts[name]["stdout"]
    document = json.loads(text)
    laid_out = answers.as_json(document["Jobs"], "new")
    assert re.sub(r"\d{10}", "T", laid_out.split("\n", 2)[2]) == re.sub(r"\d{10}", "T", text.split("\n", 2)[2])


def test_broken_json_is_broken_as_the_old_version_broke_it(transcripts: dict[str, dict[str, Any]]) -> None:
    whole = recorded_attributes(transcripts["qstat_qsub_A_number"])
    got = answers.as_json(whole, "old")
    expected = transcripts["old_qstat_qsub_A_number"]["stdout"]
    assert got.split("\n")[2:] == expected.split("\n")[2:]


def test_text_is_folded_as_recorded(transcripts: dict[str, dict[str, Any]]) -> None:
    text = transcripts["qstat_f_plain"]["stdout"]
    logical = re.sub(r"\n\t", "", text)
    for line in logical.split("\n")[1:]:
        if " = " in line:
            name, _, value = line.strip().partition(" = ")
            assert answers.fold(name, value) in text


# commands on jobs


def test_limit_of_a_user(fake_pbs: FakePbs, transcripts: dict[str, dict[str, Any]]) -> None:
    for _ in range(2):
        fake_pbs.qsub(JOINED, "-h", "-q", "limitq")
    third = fake_pbs.run("qsub", "-h", "-q", "limitq", input=JOINED)
    record = transcripts["qsub_limit_3_rejected"]
    assert (third.returncode, third.stderr) == (record["returncode"], record["stderr"])


def test_undefined_resource(transcripts: dict[str, dict[str, Any]]) -> None:
    record = transcripts["qsub_ngpus_undefined_resource"]
    with running_pbs(labels=["system"]) as site:
        done = make_again(site, record)
    assert (done.returncode, done.stderr) == (record["returncode"], record["stderr"])


def test_root_is_refused(transcripts: dict[str, dict[str, Any]]) -> None:
    record = transcripts["qsub_root_refused"]
    with running_pbs(reject_root=True) as site:
        site.control("set", {"reject_root": True})
        done = make_again(site, record)
    if os.getuid() == 0:
        assert (done.returncode, done.stderr) == (record["returncode"], record["stderr"])
    else:
        assert done.returncode == 0


@pytest.mark.parametrize(("script", "status"), [("true", 0), ("exit 3", 3)])
def test_block_returns_the_jobs_status(fake_pbs: FakePbs, script: str, status: int) -> None:
    done = fake_pbs.run("qsub", "-W", "block=true", input=script)
    assert (done.returncode, done.stdout) == (status, "1.pbshost\n")


@pytest.fixture
def one_ended(fake_pbs: FakePbs) -> FakePbs:
    """A site whose job 1 has ended and whose job 2 is held."""
    fake_pbs.wait(fake_pbs.qsub("true"))
    fake_pbs.qsub("true", "-h")
    return fake_pbs


@pytest.mark.parametrize(
    ("argv", "name", "renumber"),
    [
        (["qstat", "-f", "-F", "json", "99999"], "qstat_unknown", {}),
        (["qstat", "-x", "-f", "-F", "json", "99999.pbshost"], "qstat_unknown_x", {}),
        (["qstat", "-f", "-F", "json", "1.pbshost"], "qstat_json_nohist_ok", {"94": "1"}),
        (["qstat", "1.pbshost"], "qstat_finished_no_x", {"95": "1"}),
        (["qstat", "-x", "-f", "-F", "json", "94,95"], "qstat_json_comma_ids", {}),
        (["qstat", "-f", "-F", "json", "5.otherserver"], "qstat_badserver", {}),
        (["qstat", "-f", "-F", "json", "1[77].pbshost"], "qstat_subjob_out_of_range", {"109": "1"}),
        (["qdel", "foo"], "qdel_bad_id", {}),
        (["qdel", "1.pbshost"], "qdel_finished", {"94": "1"}),
        (["qdel", "-x", "1.pbshost"], "qdel_x_finished", {}),
        (["qdel", "2.pbshost"], "qdel_held", {}),
        (["qrls", "2.pbshost"], "qrls", {}),
    ],
)
def test_refusals_are_worded_as_recorded(
    one_ended: FakePbs, transcripts: dict[str, dict[str, Any]], argv: list[str], name: str, renumber: dict[str, str]
) -> None:
    record, done = transcripts[name], one_ended.run(*argv)
    expected = record["stderr"]
    for old, new in renumber.items():
        expected = expected.replace(old, new, 1)
    assert (done.returncode, done.stderr) == (record["returncode"], expected)
    if record["stdout"].startswith("{") and "Jobs" not in record["stdout"]:
        assert re.sub(r"\d{10}", "T", done.stdout) == re.sub(r"\d{10}", "T", record["stdout"])


def test_directives_are_understood_as_recorded(transcripts: dict[str, dict[str, Any]]) -> None:
    spaced = options.from_script(transcripts["qsub_space_directive"]["script"])
    assert spaced.values == {"N": "glued"}
    late = options.from_script(transcripts["qsub_directive_after_command"]["script"])
    assert late.values == {"N": "late1"}
