"""Arrays and packs, rendered and executed: which attempt runs when, and what a signal or a hanging attempt does."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from jobs_support import make_cluster, make_placement
from sites.processes import wait_for

from harness.errors import UserError
from harness.jobs.attempts import UNWRITABLE_CODE
from harness.jobs.groups import ARRAY_MAP, PACK_OVERHEAD_S, array_map, render_array, render_pack
from harness.jobs.render import package_root

ROOT = package_root()
INDEX = {"pbs": "PBS_ARRAY_INDEX", "torque": "PBS_ARRAYID", "slurm": "SLURM_ARRAY_TASK_ID"}


def make_attempts(root: Path, *bodies: str) -> list[Path]:
    """Attempt directories with hostile names; each script appends its number to ``ran`` and goes on with its body."""
    found = []
    for number, body in enumerate(bodies):
        attempt = root / f'it\'s $(touch evil)\n"{number}" é' / "r0a1"
        attempt.mkdir(parents=True)
        (attempt / "job.sh").write_text(f"echo {number} >>'{root}/ran'\n{body}\n")
        found.append(attempt)
    return found


def waits_to_be_told(root: Path) -> str:
    return f"trap 'kill $!; echo told >>{root}/ran; exit 1' TERM; sleep 600 & touch {root}/ready; wait"


def ran(root: Path) -> list[str]:
    path = root / "ran"
    return path.read_text().split() if path.exists() else []


@pytest.mark.parametrize("scheduler", sorted(INDEX))
def test_each_element_becomes_its_own_attempt(tmp_path: Path, scheduler: str) -> None:
    attempts = make_attempts(tmp_path, "exit 3", "exit 4", "exit 5")
    folder = tmp_path / "array 'x"
    folder.mkdir()
    (folder / ARRAY_MAP).write_bytes(array_map(attempts))
    text = render_array(make_cluster(scheduler), [make_placement()] * 3, "hname", folder, ROOT, throttle=2)
    codes = [
        subprocess.run(["bash", "-c", text], env={**os.environ, INDEX[scheduler]: str(index)}).returncode
        for index in (0, 2)
    ]
    assert codes == [3, 5]
    assert ran(tmp_path) == ["0", "2"]
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize(("environment", "said"), [({"PBS_ARRAY_INDEX": "7"}, "no attempt 7"), ({}, "is a job array")])
def test_an_index_without_an_attempt_runs_nothing(tmp_path: Path, environment: dict[str, str], said: str) -> None:
    (tmp_path / ARRAY_MAP).write_bytes(array_map(make_attempts(tmp_path, "exit 0", "exit 0")))
    text = render_array(make_cluster("pbs"), [make_placement()] * 2, "hname", tmp_path, ROOT)
    clean = {key: value for key, value in os.environ.items() if key != "PBS_ARRAY_INDEX"}
    done = subprocess.run(["bash", "-c", text], env={**clean, **environment}, capture_output=True, text=True)
    assert done.returncode != 0
    assert said in done.stderr
    assert ran(tmp_path) == []


def test_an_array_asks_for_its_longest_attempt_and_logs_to_a_directory() -> None:
    placements = [make_placement(walltime_s=60), make_placement(walltime_s=120, data_path="/other")]
    heads = {
        scheduler: render_array(make_cluster(scheduler), placements, "hname", Path("/a/b"), ROOT).splitlines()
        for scheduler in INDEX
    }
    assert {"#PBS -J 0-1", "#PBS -r y", "#PBS -l walltime=00:02:00", "#PBS -o /a/b/"} <= set(heads["pbs"])
    assert {"#PBS -t 0-1", "#PBS -o /a/b/"} <= set(heads["torque"])
    assert {"#SBATCH --array=0-1", "#SBATCH --output=/a/b/%a.log"} <= set(heads["slurm"])


def test_a_pack_runs_its_attempts_in_order_whatever_each_returns(tmp_path: Path) -> None:
    attempts = make_attempts(tmp_path, "exit 0", "exit 3", "kill -9 $$", "exit 0")
    pack = render_pack(make_cluster("slurm"), [(a, make_placement()) for a in attempts], "hname", tmp_path, ROOT)
    assert subprocess.run(["bash", "-c", pack], capture_output=True).returncode == 0
    assert ran(tmp_path) == ["0", "1", "2", "3"]
    assert not list(tmp_path.rglob("evil"))


def test_a_pack_asks_for_the_sum_of_the_walltimes() -> None:
    attempts = [(Path("/a"), make_placement(walltime_s=100)), (Path("/b"), make_placement(walltime_s=200))]
    text = render_pack(make_cluster("pbs"), attempts, "hname", Path("/p"), ROOT)
    assert PACK_OVERHEAD_S == 60
    assert "#PBS -l walltime=00:07:00\n" in text


def test_a_hanging_attempt_is_told_to_stop_and_the_next_one_runs(tmp_path: Path) -> None:
    attempts = make_attempts(tmp_path, waits_to_be_told(tmp_path), "exit 0")
    tasks = [(attempts[0], make_placement(walltime_s=5)), (attempts[1], make_placement())]
    text = render_pack(make_cluster("slurm"), tasks, "hname", tmp_path, ROOT)
    subprocess.run(["bash", "-c", text], check=True, timeout=180)
    assert ran(tmp_path) == ["0", "told", "1"]


def test_a_signal_ends_the_running_attempt_and_begins_no_other(tmp_path: Path) -> None:
    attempts = make_attempts(tmp_path, waits_to_be_told(tmp_path), "exit 0")
    pack = render_pack(make_cluster("slurm"), [(a, make_placement()) for a in attempts], "hname", tmp_path, ROOT)
    job = subprocess.Popen(["bash", "-c", pack], start_new_session=True)
    wait_for((tmp_path / "ready").exists)
    os.kill(job.pid, signal.SIGTERM)
    assert job.wait(timeout=180) == 1
    assert ran(tmp_path) == ["0", "told"]


def test_different_resources_do_not_mix() -> None:
    placements = [make_placement(), make_placement(cores_per_node=11)]
    with pytest.raises(UserError, match="different resources"):
        render_array(make_cluster("pbs"), placements, "hname", Path("/a"), ROOT)
    with pytest.raises(UserError, match="different resources"):
        tasks = [(Path("/a"), placement) for placement in placements]
        render_pack(make_cluster("pbs"), tasks, "hname", Path("/a"), ROOT)


def test_an_array_needs_nothing_of_bash_that_old_nodes_lack(tmp_path: Path) -> None:
    """mapfile splits at NUL bytes from bash 4.4 on; CentOS 7 has 4.2."""
    (tmp_path / ARRAY_MAP).write_bytes(array_map(make_attempts(tmp_path, "exit 3", "exit 4")))
    (tmp_path / "old-bash").write_text("enable -n mapfile readarray\n")
    text = render_array(make_cluster("torque"), [make_placement()] * 2, "hname", tmp_path, ROOT)
    old = {**os.environ, "BASH_ENV": str(tmp_path / "old-bash"), "PBS_ARRAYID": "1"}
    assert subprocess.run(["bash", "-c", text], env=old).returncode == 4


def test_a_pack_of_which_nothing_can_be_seen_or_written_says_so(tmp_path: Path) -> None:
    """Else it would pass over all of its attempts, and end as if it had run them."""
    attempts = [*make_attempts(tmp_path, f"exit {UNWRITABLE_CODE}"), tmp_path / "not seen here"]
    pack = render_pack(make_cluster("slurm"), [(a, make_placement()) for a in attempts], "hname", tmp_path, ROOT)
    assert subprocess.run(["bash", "-c", pack], capture_output=True).returncode == UNWRITABLE_CODE


def test_a_pack_goes_on_where_one_attempt_is_gone(tmp_path: Path) -> None:
    attempts = [tmp_path / "removed", *make_attempts(tmp_path, "exit 3")]
    pack = render_pack(make_cluster("slurm"), [(a, make_placement()) for a in attempts], "hname", tmp_path, ROOT)
    assert subprocess.run(["bash", "-c", pack], capture_output=True).returncode == 0
    assert ran(tmp_path) == ["0"]
