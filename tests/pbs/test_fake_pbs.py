"""The fake site: jobs really run, as pbs_mom runs them; nodes fill up; limits bite; every fault can be provoked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sites import processes
from sites.pbs.site import FakePbs


def output(site: FakePbs, name: str) -> str:
    """A job's delivered output, waited for: it comes when the job has ended."""
    path = site.home / name
    assert processes.wait_until(path.exists, 90), f"{path} does not appear: {list(site.home.iterdir())}"
    return path.read_text()


@contextmanager
def given_up(site: FakePbs) -> Iterator[None]:
    """A qsub that is killed, still unanswered, at the end of the block."""
    words = ["qsub", "-N", "ghost"]
    with subprocess.Popen(words, env=site.environment, cwd=site.home, stdin=subprocess.PIPE, text=True) as caller:
        assert caller.stdin is not None
        caller.stdin.write("true")
        caller.stdin.close()
        try:
            yield
            assert caller.poll() is None
        finally:
            caller.kill()


def test_inside_a_job(fake_pbs: FakePbs) -> None:
    script = (
        "#!/bin/bash\n#PBS -N inside\n#PBS -l select=2:ncpus=4:mpiprocs=2 -l place=scatter\n#PBS -j oe\n"
        'echo "$PBS_JOBID|$(pwd)|$0|$(umask)|$TMPDIR|$NCPUS|$OMP_NUM_THREADS|$PBS_O_WORKDIR|$PBS_ENVIRONMENT"\n'
        'paste -sd, "$PBS_NODEFILE"\n'
    )
    workdir = fake_pbs.base / "a dir"
    workdir.mkdir()
    fake_pbs.wait(fake_pbs.qsub(script, cwd=workdir))
    base, home = fake_pbs.base, fake_pbs.home
    facts, nodes = (workdir / "inside.o1").read_text().splitlines()
    assert facts.split("|") == [
        "1.pbshost",
        str(home),
        f"{base}/spool/1.pbshost.SC",
        "0077",
        f"{base}/tmp/pbs.1.pbshost",
        "4",
        "4",
        str(workdir),
        "PBS_BATCH",
    ]
    assert nodes == "pbsn1,pbsn1,pbsn2,pbsn2"


def test_inside_a_subjob(fake_pbs: FakePbs) -> None:
    script = '#!/bin/bash\n#PBS -j oe\n[ -d "$TMPDIR" ] && echo "$PBS_JOBID $PBS_ARRAY_ID $PBS_ARRAY_INDEX $TMPDIR"\n'
    array = fake_pbs.qsub(script, "-J", "0-4", "-r", "y", "-N", "arr")
    assert array == "1[].pbshost"
    fake_pbs.wait("1[4].pbshost")
    temporary = f"{fake_pbs.base}/tmp/pbs.1[4].pbshost"
    assert output(fake_pbs, "arr.o1.4") == f"1[4].pbshost 1[].pbshost 4 {temporary}\n"


def test_an_array_reports_success_though_a_subjob_failed(fake_pbs: FakePbs) -> None:
    array = fake_pbs.qsub("exit $((PBS_ARRAY_INDEX == 1))", "-J", "0-2", "-N", "arr")
    for index in range(3):
        fake_pbs.wait(f"1[{index}].pbshost")
    found = json.loads(fake_pbs.run("qstat", "-x", "-t", "-f", "-F", "json", array).stdout)["Jobs"]
    statuses = {job: attributes["Exit_status"] for job, attributes in found.items()}
    assert statuses == {"1[].pbshost": 0, "1[0].pbshost": 0, "1[1].pbshost": 1, "1[2].pbshost": 0}


def test_an_ended_subjob_of_a_living_array_is_x(fake_pbs: FakePbs) -> None:
    fake_pbs.qsub("[ $PBS_ARRAY_INDEX = 0 ] || sleep 300", "-J", "0-1", "-N", "arr")
    fake_pbs.wait("1[0].pbshost")
    found = json.loads(fake_pbs.run("qstat", "-t", "-f", "-F", "json", "1[]").stdout)["Jobs"]
    assert [attributes["job_state"] for attributes in found.values()] == ["B", "X", "R"]


def test_a_throttled_array_runs_so_many_at_once(fake_pbs: FakePbs) -> None:
    fake_pbs.qsub("sleep 0.2", "-J", "0-5%2", "-N", "arr")
    for index in range(6):
        fake_pbs.wait(f"1[{index}].pbshost")
    running, most = 0, 0
    for record in fake_pbs.audit():
        running += {"started": 1, "ended": -1}.get(record["event"], 0)
        most = max(most, running)
    assert most == 2


def test_nodes_fill_up(fake_pbs: FakePbs) -> None:
    jobs = [fake_pbs.qsub("sleep 300", "-l", "select=1:ncpus=16") for _ in range(3)]
    fake_pbs.wait(jobs[0], "R")
    fake_pbs.wait(jobs[1], "R")
    assert fake_pbs.unit(jobs[2])["state"] == "Q"
    fake_pbs.run("qdel", jobs[0], check=True)
    assert fake_pbs.wait(jobs[0])["exit_status"] == 271
    fake_pbs.wait(jobs[2], "R")


def test_gpus_fill_up(fake_pbs: FakePbs) -> None:
    jobs = [fake_pbs.qsub("sleep 300", "-l", "select=1:ncpus=1:ngpus=3") for _ in range(3)]
    fake_pbs.wait(jobs[1], "R")
    assert fake_pbs.unit(jobs[2])["state"] == "Q"


def test_bash_goes_on_after_a_walltime_kill(fake_pbs: FakePbs) -> None:
    """TERM reaches bash's child; bash with a trap runs its next command: an end marker proves nothing."""
    ready = fake_pbs.base / "ready"
    child = f"sh -c 'touch {ready}; exec sleep 300'"
    script = f"#!/bin/bash\n#PBS -j oe -N wt\ntrap 'echo told' TERM\n{child}\necho went on\n"
    job = fake_pbs.qsub(script)
    processes.wait_for(ready.exists)
    fake_pbs.expire()
    assert fake_pbs.wait(job)["exit_status"] == -29
    assert output(fake_pbs, "wt.o1").endswith("told\nwent on\n")


def test_orphans_end_with_their_job(fake_pbs: FakePbs) -> None:
    fake_pbs.wait(fake_pbs.qsub(f"sleep 3000 & echo $! > {fake_pbs.base}/orphan\n"))
    pid = int((fake_pbs.base / "orphan").read_text())
    assert processes.wait_until(lambda: not processes.alive(pid), 60)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        (["-j", "oe", "-o", "given.log"], "given.log"),
        (["-j", "oe", "-o", "logs/"], "logs/1.pbshost.OU"),
        (["-e", "given.err"], "given.err"),
        (["-j", "oe", "-J", "0-1", "-o", "log.^array_index^"], "log.1"),
        (["-j", "oe", "-o", "$PBS_JOBID.log"], "$PBS_JOBID.log"),
        (["-j", "oe", "-k", "doe", "-o", "direct.log"], "direct.log"),
    ],
)
def test_output_goes_where_pbs_puts_it(fake_pbs: FakePbs, options: list[str], path: str) -> None:
    (fake_pbs.home / "logs").mkdir()
    job = fake_pbs.qsub("echo told >&2", "-N", "named", *options)
    fake_pbs.wait(job.replace("[]", "[1]"))
    assert output(fake_pbs, path) == "told\n"


def test_output_changes_no_mode_but_that_of_a_new_file(fake_pbs: FakePbs) -> None:
    existing = fake_pbs.home / "existing.log"
    existing.touch(0o644)
    null_mode = Path("/dev/null").stat().st_mode
    for destination in (str(existing), "/dev/null", "new.log"):
        fake_pbs.wait(fake_pbs.qsub("echo told", "-j", "oe", "-o", destination))
    modes = [existing.stat().st_mode & 0o777, (fake_pbs.home / "new.log").stat().st_mode & 0o777]
    assert modes == [0o644, 0o600]
    assert Path("/dev/null").stat().st_mode == null_mode
    assert existing.read_text() == "told\n"


def test_output_appears_at_the_end_unless_kept_direct(fake_pbs: FakePbs) -> None:
    jobs = [
        fake_pbs.qsub("echo begun; sleep 300", "-j", "oe", "-N", name, *more)
        for name, more in (("spooled", []), ("direct", ["-k", "doe"]))
    ]
    for job in jobs:
        fake_pbs.wait(job, "R")
    assert output(fake_pbs, "direct.o2") in ("", "begun\n")
    assert not (fake_pbs.home / "spooled.o1").exists()


def test_jobs_are_found_by_name(fake_pbs: FakePbs) -> None:
    ended = fake_pbs.qsub("true", "-N", "one")
    held = fake_pbs.qsub("true", "-h", "-N", "one")
    fake_pbs.qsub("true", "-h", "-N", "two")
    fake_pbs.wait(ended)
    assert fake_pbs.run("qselect", "-N", "one").stdout.split() == [held]
    assert fake_pbs.run("qselect", "-x", "-N", "one").stdout.split() == [ended, held]


# faults


def test_server_down(fake_pbs: FakePbs) -> None:
    job = fake_pbs.qsub("sleep 300")
    fake_pbs.set(down=True)
    told = {
        "qsub": fake_pbs.run("qsub", input="true"),
        "qstat": fake_pbs.run("qstat", "-f", "-F", "json", job),
        "qdel": fake_pbs.run("qdel", job),
    }
    assert {name: done.returncode for name, done in told.items()} == {"qsub": 162, "qstat": 255, "qdel": 162}
    assert told["qsub"].stderr == "Connection refused\nqsub: cannot connect to server localhost (errno=15010)\n"
    assert json.loads(told["qstat"].stdout)["pbs_server"] == "pbshost"
    fake_pbs.set(down=False)
    assert fake_pbs.wait(job, "R")["run_count"] == 1


def test_a_server_that_is_gone_is_a_server_down(fake_pbs: FakePbs) -> None:
    fake_pbs.stop()
    done = fake_pbs.run("qsub", input="true")
    assert (done.returncode, done.stdout) == (162, "")


def test_accepted_though_the_caller_timed_out(fake_pbs: FakePbs) -> None:
    fake_pbs.inject("hang_after", "qsub", seconds=300)
    with given_up(fake_pbs):
        processes.wait_for(fake_pbs.jobs)
    assert fake_pbs.run("qselect", "-x", "-N", "ghost").stdout == "1.pbshost\n"


def test_accepted_though_the_caller_died(fake_pbs: FakePbs) -> None:
    fake_pbs.inject("client_killed", "qsub")
    done = fake_pbs.run("qsub", "-N", "ghost", input="true")
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "")
    assert fake_pbs.run("qselect", "-x", "-N", "ghost").stdout == "1.pbshost\n"
    assert fake_pbs.run("qsub", input="true").returncode == 0


def test_a_submission_lands_after_the_question(fake_pbs: FakePbs) -> None:
    landed = fake_pbs.base / "landed"
    fake_pbs.inject("late", "qsub", until=str(landed))
    with given_up(fake_pbs):
        # the script is sent when the server has asked for it
        processes.wait_for(lambda: len(fake_pbs.commands("qsub")) == 2)
    assert fake_pbs.run("qselect", "-x", "-N", "ghost").stdout == ""
    landed.touch()
    processes.wait_for(lambda: fake_pbs.run("qselect", "-x", "-N", "ghost").stdout == "1.pbshost\n")


@pytest.mark.parametrize("how", ["cut", "backslash", "nan", "dot", "raw_byte"])
def test_json_that_is_none(fake_pbs: FakePbs, how: str) -> None:
    job = fake_pbs.qsub("true", "-h", "-N", "named")
    fake_pbs.inject("broken_json", "qstat", how=how)
    raw = fake_pbs.run("qstat", "-f", "-F", "json", job, errors="surrogateescape").stdout
    if how == "raw_byte":
        with pytest.raises(UnicodeEncodeError):
            raw.encode()
    else:
        with pytest.raises(ValueError, match="Expecting|Invalid|Unterminated|delimiter"):
            json.loads(raw)
    assert "Job_Name = named" in fake_pbs.run("qstat", "-f", job).stdout
    assert json.loads(fake_pbs.run("qstat", "-f", "-F", "json", job).stdout)["Jobs"]


def test_json_that_leaves_jobs_out(fake_pbs: FakePbs) -> None:
    jobs = [fake_pbs.qsub("true", "-h") for _ in range(3)]
    fake_pbs.inject("broken_json", "qstat", how="first_only")
    told = fake_pbs.run("qstat", "-x", "-f", "-F", "json", *jobs)
    assert (told.returncode, list(json.loads(told.stdout)["Jobs"])) == (0, jobs[:1])
    assert list(json.loads(fake_pbs.run("qstat", "-f", "-F", "json", *jobs).stdout)["Jobs"]) == jobs


def test_history_off(fake_pbs: FakePbs) -> None:
    job = fake_pbs.qsub("true")
    fake_pbs.wait(job)
    fake_pbs.set(history=False)
    asked = fake_pbs.run("qstat", "-x", "-f", "-F", "json", job)
    assert (asked.returncode, asked.stderr) == (0, f"qstat: PBS is not configured to maintain job history {job}\n")
    assert fake_pbs.run("qstat", "-f", "-F", "json", job).returncode == 153


def test_forgotten_jobs_run_on(fake_pbs: FakePbs) -> None:
    go = fake_pbs.base / "go"
    job = fake_pbs.qsub(f"until [ -e {go} ]; do sleep 0.1; done; exit 7")
    fake_pbs.wait(job, "R")
    fake_pbs.forget(job)
    asked = fake_pbs.run("qstat", "-x", "-f", job)
    assert (asked.returncode, asked.stderr) == (153, f"qstat: Unknown Job Id {job}\n")
    go.touch()
    assert fake_pbs.wait(job)["exit_status"] == 7


def test_running_scripts_can_be_killed(fake_pbs: FakePbs) -> None:
    ready = fake_pbs.base / "ready"
    job = fake_pbs.qsub(f"#!/bin/bash\ntouch {ready}\nsleep 300\n")
    processes.wait_for(ready.exists)
    fake_pbs.kill_running()
    assert fake_pbs.wait(job)["exit_status"] == 137


def test_nothing_is_left_when_its_user_is_killed() -> None:
    code = (
        "import time\nfrom sites.pbs.site import fake_pbs\nwith fake_pbs() as site:\n"
        "    site.wait(site.qsub('sleep 3000'), 'R')\n    print(site.base, flush=True)\n    time.sleep(300)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    holder = subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    base = Path(holder.stdout.readline().strip())
    assert processes.with_environment(f"FAKE_PBS={base}")
    holder.kill()
    holder.wait()
    assert processes.wait_until(lambda: not base.exists(), 90)
    assert not processes.with_environment(f"FAKE_PBS={base}")
