"""Job scripts executed for real, with a stand-in for mpirun and for the program: claim, evidence, signals, staging."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jobs_support import make_cluster, make_placement, make_spec
from sites.processes import wait_until

from harness.datasets.manifest import LISTING
from harness.errors import UserError
from harness.jobs import render
from harness.jobs.render import CLAIMED_CODE, UNWRITABLE_CODE, render_job
from harness.model.cluster import Cluster, Mpi
from harness.model.job import ExitRecord, Placement

HOSTILE = "a b'c\"d$(touch evil)`touch evil`;touch evil;*?[x]\\é\n{{ x }}%Y~"
NODE = os.uname().nodename
#: a job that has not ended by then never will
HANGS_S = 180

# Leaves out its own arguments, as mpirun would, and runs the program once.
LAUNCHER = """#!/bin/bash
while [ "$1" != env ]; do shift; done
exec "$@"
"""

# Plays harness.runtime: notes what it was given, then does what the test asks.
PROGRAM = """
import json, os, signal, sys, time
directory = os.path.dirname(sys.argv[1])
names = ("HARNESS_DATA_DIR", "OMP_NUM_THREADS", "SITE")
seen = {"argv": sys.argv[1:], "cwd": os.getcwd(), "env": {n: os.environ.get(n) for n in names}}
data = os.environ.get("HARNESS_DATA_DIR")
walk = os.walk(data) if data else ()
seen["files"] = sorted(os.path.relpath(os.path.join(d, f), data) for d, _, fs in walk for f in fs)
with open(os.path.join(directory, "seen.json"), "w") as stream:
    json.dump(seen, stream)
print("to stdout")
print("to stderr", file=sys.stderr)
exec(open(os.path.join(os.path.dirname(__file__), "behaviour.py")).read())
"""


@dataclass
class Bench:
    """A place to run scripts in, with names as bad as a file system allows."""

    root: Path
    python: str = sys.executable
    changes: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        runtime = self.source / "harness" / "runtime"
        runtime.mkdir(parents=True)
        (self.source / "harness" / "__init__.py").touch()
        (runtime / "__init__.py").touch()
        (runtime / "__main__.py").write_text(PROGRAM)
        self.behave("sys.exit(0)")
        self.launcher.write_text(LAUNCHER)
        self.launcher.chmod(0o755)
        self.attempt.mkdir(parents=True)

    @property
    def source(self) -> Path:
        return self.root / "source $(touch evil) 'x"

    @property
    def launcher(self) -> Path:
        return self.root / "my $(touch evil) 'mpirun"

    @property
    def attempt(self) -> Path:
        return self.root / HOSTILE / "r0a1"

    def behave(self, code: str) -> None:
        (self.source / "harness" / "runtime" / "behaviour.py").write_text(code)

    def script(self, placement: Placement | None = None, **axes: Any) -> Path:
        cluster: Cluster = make_cluster(
            **{"scheduler": "slurm", "mpi": Mpi(command=str(self.launcher)), "python": self.python, **self.changes}
        )
        spec = make_spec(placement or make_placement(ranks_per_node=2), campaign=HOSTILE, **axes)
        text = render_job(cluster, spec, self.attempt, self.root, source_root=self.source)
        path = self.root / "job.sh"
        path.write_text(text)
        return path

    def start(self, placement: Placement | None = None, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", str(self.script(placement))],
            cwd=self.root,
            env={**os.environ, "SLURM_JOB_ID": 'j"\\1', **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, placement: Placement | None = None, **environment: str) -> tuple[int, str]:
        process = self.start(placement, **environment)
        out, err = process.communicate(timeout=HANGS_S)
        return process.returncode, out + err

    def wait_for(self, condition: Callable[[], bool]) -> None:
        assert wait_until(condition, HANGS_S, 0.01), f"never happened; stderr of the job: {self.log('stderr')}"

    @property
    def exit(self) -> ExitRecord:
        return ExitRecord.model_validate_json((self.attempt / "exit.json").read_bytes())

    @property
    def seen(self) -> Mapping[str, Any]:
        return json.loads((self.attempt / "seen.json").read_text())  # type: ignore[no-any-return]

    def log(self, name: str) -> str:
        path = self.attempt / name
        return path.read_text() if path.exists() else ""

    def evil(self) -> list[Path]:
        return list(self.root.rglob("evil"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_job_runs_whatever_the_names(bench: Bench) -> None:
    before = time.time()
    code, said = bench.run(OMP_NUM_THREADS="40")
    assert (code, said) == (0, ""), bench.log("stderr")
    record = bench.exit
    assert (record.code, record.cause, record.message) == (0, "exit", "")
    assert (record.host, record.job_id) == (NODE, 'j"\\1')
    assert before - 1 < record.started_unix_s < record.ended_unix_s < time.time() + 1
    assert bench.seen["argv"] == [str(bench.attempt / "point.json")]
    assert bench.seen["cwd"] == str(bench.attempt)
    assert bench.seen["env"]["OMP_NUM_THREADS"] is None
    assert (bench.log("stdout"), bench.log("stderr")) == ("to stdout\n", "to stderr\n")
    assert bench.evil() == []


@pytest.mark.parametrize("code", [1, 3, 213])
def test_the_launchers_code_is_the_jobs(bench: Bench, code: int) -> None:
    bench.behave(f"sys.exit({code})")
    assert bench.run()[0] == code
    assert (bench.exit.code, bench.exit.cause) == (code, "exit")


def test_a_killed_launcher_is_no_success(bench: Bench) -> None:
    bench.behave("os.kill(os.getpid(), signal.SIGKILL)")
    assert bench.run()[0] == 137
    assert (bench.exit.code, bench.exit.cause) == (137, "exit")


def test_a_claimed_attempt_is_left_alone(bench: Bench) -> None:
    assert bench.run()[0] == 0
    before = {path: path.read_bytes() for path in bench.attempt.rglob("*") if path.is_file()}
    bench.behave("sys.exit(5)")
    assert bench.run() == (CLAIMED_CODE, "")
    assert {path: path.read_bytes() for path in bench.attempt.rglob("*") if path.is_file()} == before


def test_of_two_jobs_of_one_attempt_one_runs(bench: Bench) -> None:
    bench.behave("time.sleep(0.5)")
    jobs = [bench.start(), bench.start()]
    for job in jobs:
        job.communicate(timeout=HANGS_S)
    assert sorted(job.returncode for job in jobs) == [0, CLAIMED_CODE]


def test_an_attempt_directory_that_is_not_there(bench: Bench) -> None:
    bench.attempt.rmdir()
    code, said = bench.run()
    assert code == UNWRITABLE_CODE
    assert "cannot be written on" in said
    assert not bench.attempt.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_reaches_the_program_and_is_recorded(bench: Bench, number: signal.Signals) -> None:
    bench.behave(
        "def leave(*_):\n    open('told', 'w').close(); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, leave)\nopen('ready', 'w').close()\ntime.sleep(60)"
    )
    job = bench.start()
    bench.wait_for((bench.attempt / "ready").exists)
    os.kill(job.pid, number)
    job.communicate(timeout=HANGS_S)
    assert (bench.attempt / "told").exists()
    # The program left with 0, but a job that was told to stop has not finished.
    assert (bench.exit.cause, bench.exit.code) == ("term", 1)
    assert bench.exit.message == f"told to stop by {number.name}"
    assert job.returncode == 1


def test_a_second_signal_does_not_lose_the_evidence(bench: Bench) -> None:
    bench.behave(
        "signal.signal(signal.SIGTERM, lambda *_: None)\n"
        "open('ready', 'w').close()\nwhile not os.path.exists('leave'):\n    time.sleep(0.01)\nsys.exit(9)"
    )
    job = bench.start()
    bench.wait_for((bench.attempt / "ready").exists)
    for _ in range(3):
        os.kill(job.pid, signal.SIGTERM)
        time.sleep(0.1)
    (bench.attempt / "leave").touch()
    job.communicate(timeout=HANGS_S)
    assert (bench.exit.cause, bench.exit.code) == ("term", 9)


def evidence(bench: Bench) -> str:
    """What is left of a job that was told to stop: nothing that was claimed, or a whole record of it."""
    if not (bench.attempt / "started").exists():
        assert not (bench.attempt / "exit.json").exists()
        return "not begun"
    record = bench.exit
    assert 0 < record.started_unix_s <= record.ended_unix_s
    assert (record.host, record.job_id) == (NODE, 'j"\\1')
    assert {path.name for path in bench.attempt.iterdir()} >= {"stdout", "stderr", "exit.json"}
    return record.cause


@pytest.mark.parametrize("whom", ["script", "all processes"])
def test_a_signal_in_a_jobs_first_moments(bench: Bench, whom: str) -> None:
    """Whenever it comes: the attempt is either not claimed, or its record says that it was told to stop."""
    bench.behave("time.sleep(600)")
    bench.script()
    seen = []
    for number in range(40):
        shutil.rmtree(bench.attempt)
        bench.attempt.mkdir()
        job = bench.start()
        if number:
            time.sleep(number * 0.004)
        else:
            bench.wait_for((bench.attempt / "started").exists)
        (os.kill if whom == "script" else os.killpg)(job.pid, signal.SIGTERM)
        job.communicate(timeout=HANGS_S)
        assert job.returncode not in (0, CLAIMED_CODE)
        seen.append(evidence(bench))
    assert set(seen) <= {"not begun", "term"}
    assert "term" in seen


def test_a_signal_while_the_claim_is_made(bench: Bench) -> None:
    """To all processes, mkdir among them, after it has made the directory: the claim is known to be the job's own."""
    tools = bench.root / "tools"
    tools.mkdir()
    (tools / "mkdir").write_text(
        f'#!/bin/bash\n{shutil.which("mkdir")} "$@" || exit\ntouch "{tools}/made"\n'
        f'until [ -e "{tools}/told" ]; do sleep 0.02; done\n'
    )
    (tools / "mkdir").chmod(0o755)
    job = bench.start(PATH=f"{tools}:{os.environ['PATH']}")
    bench.wait_for((tools / "made").exists)
    os.killpg(job.pid, signal.SIGTERM)
    (tools / "told").touch()
    job.communicate(timeout=HANGS_S)
    assert (job.returncode, evidence(bench)) == (143, "term")
    assert bench.exit.message == "told to stop by SIGTERM"


def test_a_launcher_that_is_not_there(bench: Bench) -> None:
    bench.launcher.unlink()
    assert bench.run()[0] == 1
    assert bench.exit.cause == "setup"
    assert f"no {bench.launcher} on {NODE}" in bench.exit.message
    assert "harness: no " in bench.log("stderr")


def test_modules_conda_and_prelude_come_before_the_launcher(bench: Bench) -> None:
    conda = "my 'env $(touch evil)"
    bench.changes = {
        "modules": ("open mpi/$(touch evil)", "x"),
        "conda": conda,
        "prelude": ("echo prelude $UNSET_VARIABLE", "export SITE='here'"),
    }
    tools = bench.root / "bash_env"
    tools.write_text(
        'module() { printf "module %s\\n" "$*"; }\nconda() { if [ "$1" = shell.bash ]; then echo true; '
        'else printf "conda %s\\n" "$*"; fi; }\n'
    )
    assert bench.run(BASH_ENV=str(tools))[0] == 0, bench.log("stderr")
    assert bench.log("stdout").splitlines() == [
        "module load open mpi/$(touch evil)",
        "module load x",
        f"conda activate {conda}",
        "prelude",
        "to stdout",
    ]
    assert bench.seen["env"]["SITE"] == "here"
    assert bench.evil() == []


def test_what_a_sites_lines_leave_behind_costs_no_evidence(bench: Bench) -> None:
    bench.changes = {"prelude": ("set -efo pipefail", "trap 'echo bye' EXIT", "trap '' TERM", "cd /")}
    bench.behave("import pathlib; pathlib.Path('here').touch(); sys.exit(7)")
    assert bench.run()[0] == 7
    assert (bench.exit.code, bench.exit.cause) == (7, "exit")
    assert (bench.attempt / "here").exists()
    assert "bye" not in bench.log("stdout")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"modules": ("no $(touch evil)",)}, "module load failed: no $(touch evil)"),
        ({"conda": "none"}, "conda activate failed: none"),
        ({"prelude": ("exit 0",)}, "the job script ended before the launcher was started"),
        ({"prelude": ("exit 4",)}, "the job script ended before the launcher was started"),
    ],
)
def test_a_setup_that_fails_is_no_success(bench: Bench, changes: dict[str, Any], message: str) -> None:
    bench.changes = changes
    tools = bench.root / "bash_env"
    tools.write_text("module() { return 1; }\nconda() { return 1; }\n")
    code, _ = bench.run(BASH_ENV=str(tools))
    assert code in (1, 4)
    assert (bench.exit.code, bench.exit.cause, bench.exit.message) == (code, "setup", message)
    assert not (bench.attempt / "seen.json").exists()
    assert bench.evil() == []


def test_variables_of_the_site_reach_the_program_as_written(bench: Bench) -> None:
    value = "a b'c\"$(touch evil)\nd,e"
    bench.changes = {"mpi": Mpi(command=str(bench.launcher), environment={"SITE": value})}
    assert bench.run()[0] == 0
    assert bench.seen["env"]["SITE"] == value
    assert bench.evil() == []


@pytest.fixture
def staged(bench: Bench) -> Placement:
    """A data set of three files, and the placement that stages it to a directory named through a variable."""
    origin = bench.root / "shared $(touch evil)" / "mnist"
    (origin / "train é\n").mkdir(parents=True)
    (origin / "empty dir").mkdir()
    (origin / "train é\n" / "a 'b").write_bytes(b"x" * 1000)
    (origin / "-rf").write_bytes(b"y" * 24)
    (bench.root / "elsewhere").write_bytes(b"z" * 6)
    (origin / "link").symlink_to(bench.root / "elsewhere")
    return make_placement(data_path="$NODE_DISK/user data/${SUB}x/mnist", data_scope="node", stage_from="$SHARED/mnist")


def stage_environment(bench: Bench) -> dict[str, str]:
    return {
        "NODE_DISK": str(bench.root / "disk $(touch evil)"),
        "SUB": "s 's",
        "SHARED": str(bench.root / "shared $(touch evil)"),
    }


def test_data_are_staged_timed_used_and_removed(bench: Bench, staged: Placement) -> None:
    assert bench.run(staged, **stage_environment(bench))[0] == 0, bench.log("stderr")
    used = bench.seen["env"]["HARNESS_DATA_DIR"]
    home = bench.root / "disk $(touch evil)" / "user data" / "s 'sx"
    assert Path(used).parent == home
    assert Path(used).name.startswith("mnist.h")
    assert bench.seen["files"] == ["-rf", "link", "train é\n/a 'b"]
    facts = json.loads((bench.attempt / f"stage.{NODE}.json").read_text())
    assert facts.pop("seconds") > 0
    assert facts == {
        "from_path": str(bench.root / "shared $(touch evil)" / "mnist"),
        "to_path": used,
        "bytes": 1030,
        "files": 3,
        "verified": True,
    }
    assert list(home.iterdir()) == []
    assert bench.log("stderr") == "to stderr\n"
    assert bench.evil() == []


@pytest.mark.parametrize("spoilt", [False, True], ids=["same", "differs"])
@pytest.mark.parametrize("listed", [True, False], ids=["MD5 sums", "bytes"])
def test_every_byte_of_a_copy_is_compared(bench: Bench, staged: Placement, listed: bool, spoilt: bool) -> None:
    """A copying program that writes another byte over one: neither size nor number of files tells."""
    origin = bench.root / "shared $(touch evil)" / "mnist"
    if listed:
        sums = {name: hashlib.md5((origin / name).read_bytes()).hexdigest() for name in ("link", "-rf")}
        (origin / LISTING).write_text("".join(f"{md5}\t1\t{name}\n" for name, md5 in sums.items()))
    tools = bench.root / "tools"
    tools.mkdir()
    after = 'printf x | dd of="$4/-rf" conv=notrunc status=none' if spoilt else "true"
    (tools / "cp").write_text(f'#!/bin/bash\n{shutil.which("cp")} "$@" && {after}\n')
    (tools / "cp").chmod(0o755)
    environment = {**stage_environment(bench), "PATH": f"{tools}:{os.environ['PATH']}"}
    code = bench.run(staged, **environment)[0]
    facts = bench.attempt / f"stage.{NODE}.json"
    if not spoilt:
        assert (code, json.loads(facts.read_text())["verified"]) == (0, True), bench.log("stderr")
        return
    assert (code, bench.exit.message) == (1, "staging failed")
    assert "differs from" in bench.log("stderr")
    # cmp(1) says "char" in the C locale
    assert re.search("-rf: FAILED" if listed else "-rf differ: (byte|char) 1", bench.log("stderr"))
    assert not facts.exists() and not (bench.attempt / "seen.json").exists()
    assert list((bench.root / "disk $(touch evil)" / "user data" / "s 'sx").iterdir()) == []


def test_staged_data_are_removed_after_a_failure_too(bench: Bench, staged: Placement) -> None:
    bench.behave("sys.exit(3)")
    assert bench.run(staged, **stage_environment(bench))[0] == 3
    assert not Path(bench.seen["env"]["HARNESS_DATA_DIR"]).exists()


def test_data_that_are_not_there_to_stage(bench: Bench, staged: Placement) -> None:
    environment = {**stage_environment(bench), "SHARED": str(bench.root / "nowhere")}
    assert bench.run(staged, **environment)[0] == 1
    assert (bench.exit.cause, bench.exit.message) == ("setup", "staging failed")
    assert "nowhere/mnist" in bench.log("stderr")


def test_a_disk_too_small_is_found_before_copying(bench: Bench, staged: Placement) -> None:
    tools = bench.root / "bash_env"
    tools.write_text("df() { echo head; echo disk 9 9 1 9% /; }\n")
    assert bench.run(staged, BASH_ENV=str(tools), **stage_environment(bench))[0] == 1
    assert bench.exit.message == "staging failed"
    assert "is 1030 bytes" in bench.log("stderr")
    assert "has 1 KiB free" in bench.log("stderr")


def test_a_variable_of_a_path_that_is_not_set_ends_the_job_with_its_name(bench: Bench, staged: Placement) -> None:
    environment = stage_environment(bench)
    del environment["SUB"]
    assert bench.run(staged, **environment)[0] != 0
    assert bench.exit.cause == "setup"
    assert "SUB: is not set in the job" in bench.log("stderr")


def test_a_workload_without_data_stages_nothing(bench: Bench, staged: Placement) -> None:
    axes = {"workload": "replay", "framework": "none", "dataset": None}
    assert "HARNESS_DATA_DIR" not in bench.script(staged, **axes).read_text()
    assert "HARNESS_DATA_DIR" in bench.script(staged).read_text()


def test_a_signal_while_staging_stops_the_copies_and_starts_no_launcher(bench: Bench, staged: Placement) -> None:
    tools = bench.root / "tools"
    tools.mkdir()
    (tools / "cp").write_text(
        f"#!/bin/bash\necho $$ >'{tools}/pid.new'; mv '{tools}/pid.new' '{tools}/pid'; exec sleep 600\n"
    )
    (tools / "cp").chmod(0o755)
    job = bench.start(staged, PATH=f"{tools}:{os.environ['PATH']}", **stage_environment(bench))
    bench.wait_for((tools / "pid").exists)
    os.kill(job.pid, signal.SIGTERM)
    job.communicate(timeout=HANGS_S)
    assert (bench.exit.cause, bench.exit.message) == ("term", "told to stop by SIGTERM")
    assert bench.exit.code == 1
    assert not (bench.attempt / "seen.json").exists()
    bench.wait_for(lambda: has_ended(int((tools / "pid").read_text())))
    assert list((bench.root / "disk $(touch evil)" / "user data" / "s 'sx").iterdir()) == []


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_hosts_of_a_pbs_job_stand_once_each_in_their_order(bench: Bench) -> None:
    bench.changes = {"scheduler": "pbs"}
    nodefile = bench.root / "nodefile"
    nodefile.write_text("n9\nn9\nn10\nn10\n")
    code, _ = bench.run(make_placement(nodes=2, ranks_per_node=2), PBS_NODEFILE=str(nodefile), PBS_JOBID="109[4].host")
    assert code == 0, bench.log("stderr")
    assert (bench.attempt / "hosts").read_text() == "n9 slots=2\nn10 slots=2\n"
    assert bench.exit.job_id == "109[4].host"


def test_the_interpreters_own_directory_comes_first_on_path(bench: Bench) -> None:
    folder = bench.root / "env 'x" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    launcher = folder / "mpirun"
    launcher.write_text(LAUNCHER.replace("exec", "echo own mpirun; exec"))
    launcher.chmod(0o755)
    bench.python, bench.changes = str(folder / "python"), {"mpi": Mpi()}
    assert bench.run()[0] == 0, bench.log("stderr")
    assert bench.log("stdout").startswith("own mpirun\n")


def test_a_sites_own_body_replaces_blocks_of_the_shared_one(bench: Bench) -> None:
    folder = bench.root / "jobscripts"
    folder.mkdir()
    (folder / "mine.sh.j2").write_text(
        '{% extends "body.sh.j2" %}\n{% block environment %}{{ super() }}echo mine{% endblock %}\n'
    )
    bench.changes = {"body_template": "mine.sh.j2"}
    assert bench.run()[0] == 0, bench.log("stderr")
    assert bench.log("stdout") == "mine\nto stdout\n"


@pytest.mark.parametrize("block", ["environment", "staging"])
def test_what_a_sites_own_block_leaves_behind_costs_no_evidence(bench: Bench, block: str) -> None:
    (bench.root / "jobscripts").mkdir()
    lines = "set -efo pipefail\ntrap 'echo bye' EXIT\ntrap '' TERM\ncd /\n"
    setup = "export PYTHONPATH={{ source_root }}\n{% if stage_from %}export HARNESS_DATA_DIR=/{% endif %}\n"
    (bench.root / "jobscripts" / "mine.sh.j2").write_text(
        f'{{% extends "body.sh.j2" %}}\n{{% block {block} %}}\n{setup}{lines}{{% endblock %}}\n'
    )
    bench.changes = {"body_template": "mine.sh.j2"}
    bench.behave("import pathlib; pathlib.Path('here').touch(); sys.exit(7)")
    placement = make_placement(ranks_per_node=2, stage_from="/" if block == "staging" else None)
    assert bench.run(placement)[0] == 7
    assert (bench.exit.code, bench.exit.cause) == (7, "exit")
    assert (bench.attempt / "here").exists()
    assert "bye" not in bench.log("stdout")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ attempt_dri }}", "'attempt_dri' is undefined"),
        ("{% if %}", "mine.sh.j2:1: Expected an expression"),
        (None, "no job body 'mine.sh.j2'"),
    ],
)
def test_a_bad_body_is_one_clear_message(bench: Bench, text: str | None, message: str) -> None:
    (bench.root / "jobscripts").mkdir()
    if text is not None:
        (bench.root / "jobscripts" / "mine.sh.j2").write_text(text)
    bench.changes = {"body_template": "mine.sh.j2"}
    with pytest.raises(UserError, match=message):
        bench.script()


@pytest.mark.parametrize("name", ["A B", "1A", "A;B", ""])
def test_a_bad_variable_name_is_refused(bench: Bench, name: str) -> None:
    bench.changes = {"mpi": Mpi(environment={name: "x"})}
    with pytest.raises(UserError, match="is no name of a variable"):
        bench.script()


def test_an_installed_harness_is_not_named_to_the_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It lies among the login side's packages; the ranks have their own."""
    prefix = tmp_path / "prefix"
    shipped = prefix / "share" / "dl-batch-harness" / "jobscripts"
    shipped.mkdir(parents=True)
    (shipped / "body.sh.j2").write_text((render.package_root() / "jobscripts" / "body.sh.j2").read_text())
    monkeypatch.setattr(render, "checkout", lambda: None)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    spec = make_spec(make_placement())
    text = render_job(make_cluster("slurm"), spec, tmp_path / "r0a1", tmp_path / "project")
    assert 'export PYTHONPATH="${PYTHONPATH:-}"\n' in text
    assert str(render.package_root()) not in text
