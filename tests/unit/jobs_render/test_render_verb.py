"""``harness render``: a campaign's directory with scripts that run when submitted by hand."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from harness.cli.render import render
from harness.errors import UserError
from harness.jobs import render as jobs_render
from harness.jobs.render import package_root

SWEEP = """\
name: tiny
base: {workload: replay, steps_timed: 3}
matrix: {prefetch: [1, 2]}
repeats: 2
walltime: "00:02:00"
"""
CLUSTER = """\
name: here
scheduler: SCHEDULER
node: {cores_per_socket: 2, memory: 4gb}
storage: {hpctmp: {path: /tmp}}
python: PYTHON
DIRECTIVES
"""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    sweep, cluster = tmp_path / "tiny.yml", tmp_path / "here.yml"
    sweep.write_text(SWEEP)
    write_cluster(cluster)
    return sweep, cluster


def write_cluster(path: Path, scheduler: str = "local", directives: str = "") -> None:
    text = CLUSTER.replace("SCHEDULER", scheduler).replace("PYTHON", sys.executable)
    path.write_text(text.replace("DIRECTIVES", directives))


def call(files: tuple[Path, Path], output: Path, *more: str) -> Result:
    argv = [str(files[0]), "--cluster", str(files[1]), "-o", str(output), *more]
    return CliRunner().invoke(render, argv, catch_exceptions=True)


def test_every_run_has_its_script_and_its_point(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = call(files, tmp_path / "out", "--json")
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert len(rows) == 4
    assert {row["repeat"] for row in rows} == {0, 1}
    for row in rows:
        script = Path(row["script"])
        assert script == tmp_path / "out" / "runs" / row["point_id"] / f"r{row['repeat']}a1" / "job.sh"
        assert f'#LOCAL name="{row["job_name"]}"' in script.read_text()
        assert os.access(script, os.X_OK)
        point = json.loads((script.parent / "point.json").read_text())
        assert (point["point_id"], point["repeat"], point["attempt"]) == (row["point_id"], row["repeat"], 1)
    campaign = json.loads((tmp_path / "out" / "campaign.json").read_text())
    assert sorted(campaign["points"]) == sorted({row["point_id"] for row in rows})


def test_the_paths_are_printed_one_a_line(files: tuple[Path, Path], tmp_path: Path) -> None:
    done = call(files, tmp_path / "out")
    assert sorted(done.stdout.split()) == sorted(map(str, (tmp_path / "out").glob("runs/*/*/job.sh")))
    assert "4 scripts for local on here" in done.stderr


def test_a_directory_with_a_campaign_is_not_touched(files: tuple[Path, Path], tmp_path: Path) -> None:
    call(files, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    done = call(files, tmp_path / "out")
    assert isinstance(done.exception, UserError)
    assert "holds a campaign already" in str(done.exception)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_nothing_is_written_when_a_script_cannot_be_rendered(files: tuple[Path, Path], tmp_path: Path) -> None:
    write_cluster(files[1], "pbs", 'directives: {extra: ["-k doe\\nrm"]}')
    done = call(files, tmp_path / "out")
    assert isinstance(done.exception, UserError)
    assert "is not one line" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_examples_need_neither_sweep_nor_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shipped = package_root()
    templates = [f"jobscripts/{name}.sh.j2" for name in ("body", "array", "pack")]
    for file in ("configs/clusters/generic-slurm.yml", "configs/sweeps/replay.yml", *templates):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(shipped / file, tmp_path / file)
    stale = tmp_path / "jobscripts" / "examples" / "gone" / "replay.sh"
    stale.parent.mkdir(parents=True)
    stale.touch()
    monkeypatch.setattr(jobs_render, "checkout", lambda: tmp_path)
    done = CliRunner().invoke(render, ["--examples"])
    folder = tmp_path / "jobscripts" / "examples" / "generic-slurm"
    written = [*(folder / "groups" / f"{name}.sh" for name in ("array", "attempt", "pack")), folder / "replay.sh"]
    assert (done.exit_code, done.stdout) == (0, "".join(f"{path}\n" for path in written))
    assert all("#SBATCH --no-requeue\n" in path.read_text() for path in written if path.name != "attempt.sh")
    assert not stale.exists()


MPIRUN = Path(sys.executable).parent / "mpirun"


@pytest.mark.mpi
@pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun in this environment")
def test_a_script_run_by_hand_leaves_whole_evidence_whatever_the_directory_is_called(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    output = tmp_path / 'it\'s $(touch evil) a "place"\né'
    done = call(files, output, "--only", "prefetch == 1", "--set", "repeats=1", "--json")
    (row,) = json.loads(done.stdout)
    subprocess.run([row["script"]], cwd=tmp_path, check=True, timeout=180)
    attempt = Path(row["script"]).parent
    record = json.loads((attempt / "exit.json").read_text())
    assert (record["code"], record["cause"]) == (0, "exit")
    last = json.loads((attempt / "events.r0.jsonl").read_text().splitlines()[-1])
    assert (last["event"], last["ok"]) == ("run_end", True)
    assert not list(tmp_path.rglob("evil"))


def test_an_array_is_one_script_with_a_map_of_its_attempts(files: tuple[Path, Path], tmp_path: Path) -> None:
    write_cluster(files[1], "slurm")
    done = call(files, tmp_path / "out", "--mode", "array", "--json")
    (row,) = json.loads(done.stdout)
    script = Path(row["script"])
    assert script == tmp_path / "out" / "groups" / "g1" / "job.sh"
    assert "#SBATCH --array=0-3\n" in script.read_text()
    attempts = (script.parent / "attempts").read_bytes().decode().rstrip("\0").split("\0")
    assert sorted(attempts) == sorted(str(path.parent) for path in (tmp_path / "out").glob("runs/*/*/job.sh"))


def test_packs_whose_canaries_are_one_and_the_same_run_have_an_attempt_each(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    write_cluster(files[1], "slurm", "queue: q\nqueues: {q: {max_walltime: 18m}}")  # six runs of 2 + 1 minutes
    words = ["--mode", "pack", "--set", "prefetch=1,2,3,4,5", "--set", "repeats=5"]
    done = call(files, tmp_path / "out", *words, "--json")
    assert done.exit_code == 0, done.output
    groups = [json.loads(path.read_text()) for path in sorted(tmp_path.glob("out/groups/*/group.json"))]
    attempts = [tuple(key) for group in groups for key in group["attempts"]]
    assert len(attempts) == len(set(attempts)) == 30
    found = [(path.parent.name, path.name) for path in (tmp_path / "out" / "runs").glob("*/*")]
    assert sorted(found) == sorted((point, f"r{repeat}a{attempt}") for point, repeat, attempt in attempts)
    assert {repeat for _, repeat, attempt in attempts if attempt > 1} == {5}


#: stands in for mpirun: notes the attempt whose point.json is its last word
NOTING = '#!/bin/bash\nprintf "%s\\n" "$(basename "$(dirname "${@: -1}")")" >>"$(dirname "$0")/ran"\n'


def test_attempts_of_a_pack_share_one_script_wherever_the_campaign_lies(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    stub = tmp_path / "stub" / "mpirun"
    stub.parent.mkdir()
    stub.write_text(NOTING)
    stub.chmod(0o755)
    write_cluster(files[1], "local", f"mpi: {{command: {stub}}}")
    output = tmp_path / "it's $(touch evil)"
    call(files, output, "--mode", "pack")
    scripts = sorted(output.glob("runs/*/*/job.sh"))
    assert len(scripts) == 4
    (body,) = output.glob("groups/g1/body*.sh")
    assert {script.resolve() for script in scripts} == {body.resolve()}
    subprocess.run(["bash", str(output / "groups" / "g1" / "job.sh")], check=True, timeout=180)
    assert sorted((stub.parent / "ran").read_text().split()) == ["r0a1", "r0a1", "r1a1", "r1a1"]
    assert all(json.loads(script.with_name("exit.json").read_text())["code"] == 0 for script in scripts)
    moved = output.rename(tmp_path / "moved\nelsewhere")
    for path in moved.glob("runs/*/r0a1"):
        (path / "exit.json").unlink()
        shutil.rmtree(path / "started")
        subprocess.run(["bash", str(path / "job.sh")], check=True, timeout=180)
        assert json.loads((path / "exit.json").read_text())["cause"] == "exit"
    assert not list(tmp_path.rglob("evil"))
