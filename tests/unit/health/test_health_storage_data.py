"""What doctor says of storages, quotas and data sets."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from health_support import by_name, patient, program

from harness.cli.health import data, storage
from harness.cli.health.check import Check, Needs
from harness.cli.main import cli
from harness.jobs.survey.quota import Quota

GIB = 1 << 30


def looked_at(root: Path, in_job: bool = True, **storages: dict[str, str]) -> dict[str, Check]:
    return by_name(storage.check(patient(root, in_job, storage=storages)))


def test_a_directory_that_can_be_used(tmp_path: Path) -> None:
    check = looked_at(tmp_path, hpctmp={"path": str(tmp_path)})["hpctmp"]
    assert check.status == "ok"
    assert "can be written" in check.message
    assert check.facts["writable"] is True


def test_a_directory_still_to_be_made_and_one_that_cannot_be(tmp_path: Path) -> None:
    found = looked_at(tmp_path, a={"path": str(tmp_path / "new" / "one")}, b={"path": "/proc/self/nothing/one"})
    assert (found["a"].status, found["b"].status) == ("note", "failure")
    assert f"mkdir -p {tmp_path}/new/one" in found["a"].remedy


def test_a_variable_that_is_not_set_and_a_disk_of_other_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    monkeypatch.setenv("SET_HERE", str(tmp_path))
    places = {
        "a": {"path": "/x/$NOT_SET_HERE"},
        "b": {"path": "$SET_HERE"},
        "c": {"path": "/nowhere", "scope": "node", "stage_from": "b"},
    }
    found = looked_at(tmp_path, False, **places)
    assert {name: check.status for name, check in found.items() if name in places} == {
        "a": "warning",
        "b": "ok",
        "c": "note",
    }
    in_job = looked_at(tmp_path, True, **{**places, "c": {**places["c"], "path": str(tmp_path / "new")}})["c"]
    assert (in_job.status, "a job that stages data there makes it" in in_job.message) == ("ok", True)


def test_a_path_of_hostile_characters_is_a_path(tmp_path: Path) -> None:
    place = tmp_path / "it's [b] $(x) $1 ü\n"
    place.mkdir()
    check = looked_at(tmp_path, hpctmp={"path": str(place)})["hpctmp"]
    assert (check.status, check.facts["path"]) == ("ok", str(place))


def test_a_shared_storage_in_this_nodes_memory() -> None:
    root = Path("/dev/shm")
    checks = list(storage.check(patient(root, storage={"hpctmp": {"path": "/dev/shm"}})))
    _usable, kind = [check for check in checks if check.name == "hpctmp"]  # how full it is does not matter here
    assert kind.status == "warning"


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        ({"free_bytes": GIB - 1}, "warning", "only 1024.0 MiB"),
        ({"free_files": 9}, "warning", "only 9 more files"),
        ({"free_files": 0, "total_files": 0}, "ok", "can be written"),  # as on file systems that do not count
        ({"writable": False}, "warning", "can be read but not written"),
    ],
)
def test_room(facts: dict[str, Any], status: str, words: str) -> None:
    whole = {"free_bytes": 50 * GIB, "total_bytes": 100 * GIB, "free_files": 10**6, "total_files": 10**7}
    check = storage._usable("hpctmp", "/x", {**whole, "writable": True, **facts})
    assert (check.status, words in check.message) == (status, True)


def speed(read: float, files: float, cache: str = "cold") -> dict[str, Any]:
    return {
        "sequential_read": {"bytes_per_s": read, "cache": cache},
        "small_files": {"files_per_s": files, "cache": cache},
        "write": {"bytes_per_s": None},
        "metadata": {"creates_per_s": 10.0},
    }


@pytest.mark.parametrize(
    ("measured", "status", "words"),
    [
        (speed(2e9, 3000), "ok", "one large file 2,000 MB/s, small files 3,000/s"),
        (speed(2e9, 40), "warning", "slow for small files"),
        (speed(5e7, 40), "warning", "slow for large files and small files"),
        (speed(5e7, 40, "warm"), "ok", "(from this node's memory)"),
        ({}, "note", "nothing could be read"),
    ],
)
def test_speed(measured: dict[str, Any], status: str, words: str) -> None:
    [check] = storage._speed("hpctmp", measured)
    assert (check.status, words in check.message) == (status, True)


def test_the_speed_of_a_real_directory_is_measured(tmp_path: Path) -> None:
    there = patient(tmp_path, storage={"hpctmp": {"path": str(tmp_path)}})
    found = by_name(storage.check(dataclasses.replace(there, measure_speed=True)))
    facts = found["hpctmp speed"].facts
    assert facts["sequential_read"]["bytes"] > 0
    assert facts["small_files"]["files"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("used", "files", "status"), [(50, 1, "ok"), (95, 1, "warning"), (1, 30, "failure")])
def test_quotas(used: int, files: int, status: str) -> None:
    check = storage._quota(Quota("usr me", "/lustre", used * GIB, 100 * GIB, files, 30))
    assert check.status == status
    assert (check.remedy != "") or status == "ok"
    assert f"{files:,} of 30 files" in check.message


def test_quotas_are_asked_of_the_sites_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    root = next(line.split()[0] for line in mounts if line.split()[1] == "/")
    row = f"{root} 950 0 1000 0 5 0 0 0"
    program(tmp_path / "quota", f"echo 'Disk quotas for user me (uid 1): '; echo 'Filesystem x'; echo '{row}'")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    checks = list(storage._quotas({"/": storage.mount_of("/", storage.parse_mounts(f"{root} / ext4 rw 0 0\n"))}))
    assert [(check.name, check.status) for check in checks] == [(root, "warning")]


# data sets


def test_data_sets_that_lie_there(tmp_path: Path) -> None:
    there = patient(tmp_path, storage={"hpctmp": {"path": str(tmp_path)}})
    [none] = data.check(there)
    assert (none.status, none.facts["data_sets"]) == ("note", [])
    target = str(tmp_path / "synthetic-mnist")
    cli(["data", "make", "mnist", "--train", "20", "--test", "10", "--to", target, "--json"], standalone_mode=False)
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "harness-dataset.json").write_text("{")
    [some] = data.check(there)
    assert (some.status, some.facts["data_sets"]) == ("ok", ["damaged (damaged)", "synthetic:mnist"])


def test_data_sets_that_a_sweep_needs(tmp_path: Path) -> None:
    needs = Needs(
        frozenset(),
        frozenset({(str(tmp_path / "a"), "digits:mnist", "native"), ("/x/$NOT_SET_HERE", "mnist", "native")}),
    )
    found = by_name(data.check(patient(tmp_path, needs=needs)))
    assert {name: check.status for name, check in found.items()} == {"mnist": "note", "digits:mnist": "failure"}
    assert found["digits:mnist"].remedy.startswith("make it: harness data make mnist --origin digits")
    [none] = data.check(patient(tmp_path, needs=Needs(frozenset(), frozenset())))
    assert none.status == "ok"
