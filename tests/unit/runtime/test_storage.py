from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from runtime_support import spec_of

from harness.errors import UserError
from harness.runtime import storage


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Some files of random bytes, with awkward names, one of them empty."""
    directory = tmp_path / "data $(set)"
    (directory / "train").mkdir(parents=True)
    for name, size in (("a b.bin", 300_000), ("train/ü\n.bin", 5_000), ("train/empty", 0)):
        (directory / name).write_bytes(os.urandom(size))
    return directory


def test_cold_then_warm_are_made_and_verified(data: Path) -> None:
    cold = storage.set_cache(data, "cold")
    if storage.resident(data / "a b.bin") != (0, 74):
        pytest.skip("this file system keeps pages in memory (tmpfs): the cache cannot be emptied")
    assert cold == {"wanted": "cold", "state": "cold", "resident_share": 0.0, "bytes": 305_000}
    warm = storage.set_cache(data, "warm")
    assert warm == {"wanted": "warm", "state": "warm", "resident_share": 1.0, "bytes": 305_000}


def test_reading_a_part_leaves_the_state_unknown(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emptying that does not empty is not called cold."""
    storage.set_cache(data, "warm")
    monkeypatch.setattr(storage, "drop_cached", lambda path: None)
    result = storage.set_cache(data, "cold")
    assert (result["state"], result["resident_share"]) == ("unknown", 1.0)


@pytest.mark.parametrize("kind", ["gpfs", "zfs", "fuse.bindfs"])
def test_caches_that_are_not_the_kernels_are_not_judged_by_its_pages(data: Path, tmp_path: Path, kind: str) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nfiles {tmp_path} {kind} rw 0 0\n")
    for wanted in ("cold", "warm"):
        result = storage.set_cache(data, wanted, mounts)
        assert (result["state"], result["resident_share"]) == ("unknown", None)
    mounts.write_text(f"files / {kind} rw 0 0\ndisk {tmp_path} ext4 rw 0 0\n")
    assert storage.set_cache(data, "warm", mounts)["state"] == "warm"


def test_unasked_cache_is_left_alone_and_unknown(data: Path) -> None:
    assert storage.set_cache(data, "unknown")["state"] == "unknown"


def test_pages_are_counted(data: Path) -> None:
    storage._read_through(data / "a b.bin")
    assert storage.resident(data / "a b.bin") == (74, 74)  # 300 000 bytes in pages of 4096
    assert storage.resident(data / "train" / "empty") == (0, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become another user")
def test_residency_of_another_users_files_is_not_believed() -> None:
    """The kernel calls such pages resident whatever they are; so the answer is None."""
    code = "import os, sys; from harness.runtime import storage; from pathlib import Path; os.seteuid(65534)\n"
    code += "print(storage.resident(Path(sys.argv[1])))"
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory, "readable")
        path.write_bytes(b"x" * 5000)
        path.chmod(0o644)
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
    assert done.stdout.strip() == "None", done.stderr


def test_data_path_prefers_the_staged_copy_and_expands_the_jobs_variables(tmp_path: Path) -> None:
    (tmp_path / "scratch" / "mnist").mkdir(parents=True)
    spec = spec_of(data_path="${H_TEST_SCRATCH}/mnist", dataset="mnist")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("H_TEST_SCRATCH", str(tmp_path / "scratch"))
        assert storage.data_path(spec, {}) == tmp_path / "scratch" / "mnist"
    assert storage.data_path(spec, {"HARNESS_DATA_DIR": str(tmp_path)}) == tmp_path
    with pytest.raises(UserError, match="data set 'mnist': no directory .*harness data make"):
        storage.data_path(spec, {})
    assert storage.data_path(spec_of(), {}) is None


def test_stage_facts_come_from_the_job_scripts_file(tmp_path: Path) -> None:
    assert storage.stage_facts(tmp_path) is None
    facts = {
        "from_path": "/hpctmp/x",
        "to_path": "/scratch/x",
        "seconds": 1.25,
        "bytes": 10,
        "files": 2,
        "verified": True,
    }
    (tmp_path / f"stage.{os.uname().nodename}.json").write_text(json.dumps({**facts, "more": 1}))
    assert storage.stage_facts(tmp_path) == facts
    (tmp_path / f"stage.{os.uname().nodename}.json").write_text('{"from')
    assert storage.stage_facts(tmp_path) is None


def test_the_manifest_says_where_the_data_come_from(data: Path) -> None:
    spec = spec_of(dataset="digits:mnist")
    without = storage.describe(spec, data)
    assert (without["origin"], without["bytes"], without["verified"]) == ("unknown", None, None)
    manifest = {
        "request": {"format": "mnist", "origin": "synthetic", "counts": {"train": 60, "test": 10}},
        "total_bytes": 12,
        "files": {"b": {"bytes": 7, "sha256": "bb"}, "a": {"bytes": 5, "sha256": "aa"}},
    }
    (data / storage.MANIFEST).write_text(json.dumps(manifest))
    told = storage.describe(spec, data)
    assert (told["origin"], told["samples"], told["bytes"]) == ("synthetic", 60, 12)
    assert told["digest"] == hashlib.sha256(b"a\0aa\nb\0bb\n").hexdigest()
    assert storage.describe(spec_of(), None)["origin"] == "none"


def test_io_counts_this_process_and_its_children(data: Path) -> None:
    before = storage.io_counters([os.getpid()])
    (data / "a b.bin").read_bytes()
    after = storage.io_counters([os.getpid(), 2**22 + 1])  # a process that does not exist counts nothing
    assert after["rchar_bytes"] - before["rchar_bytes"] >= 300_000
    # the test runner may have helpers of its own, which come and go
    assert os.getpid() in storage.process_tree(os.getpid())
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in storage.process_tree(os.getpid())
        assert storage.process_tree(child.pid) == [child.pid]
        child.communicate(b"\n")
    assert child.pid not in storage.process_tree(os.getpid())


MOUNTSTATS = """device rootfs mounted on / with fstype rootfs
device nas:/hpctmp mounted on {top}/hpc\\040tmp with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1
\tage:\t7
\tbytes:\t11 12 13 14 1500 16 17 18
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
device nas:/home mounted on {top}/hpc\\040tmp/home with fstype nfs statvers=1.1
\tbytes:\t21 22 23 24 2500 26 27 28
device tmpfs mounted on {top}/hpc\\040tmp/shm with fstype tmpfs
"""


def test_reads_from_the_nfs_server_are_those_of_the_nearest_mount(tmp_path: Path) -> None:
    stats = tmp_path / "mountstats"
    stats.write_text(MOUNTSTATS.replace("{top}", str(tmp_path)))
    places = {"hpc tmp/mnist": 1500, "hpc tmp/home/u/mnist": 2500, "hpc tmp/shm/mnist": None, "hpc": None}
    assert {place: storage.nfs_read_bytes(tmp_path / place, stats) for place in places} == places
    assert storage.nfs_read_bytes(tmp_path, tmp_path / "none") is None


def test_an_automounter_stands_before_the_mount_that_it_made(tmp_path: Path) -> None:
    """Direct maps and systemd's automounts: both have one mount point, the automounter's comes first."""
    stats = tmp_path / "mountstats"
    stats.write_text(
        f"device systemd-1 mounted on {tmp_path} with fstype autofs\n"
        f"device srv:/vol mounted on {tmp_path} with fstype nfs4 statvers=1.1\n"
        "\topts:\trw\n\tbytes:\t1 2 3 4 5500 6 7 8\n"
    )
    assert storage.nfs_read_bytes(tmp_path / "mnist", stats) == 5500
