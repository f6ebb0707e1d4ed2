"""The storage probe: what it measures, that its bounds hold on a scripted clock, and that it leaves nothing behind."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from harness.runtime import probe as probe_program
from harness.runtime import storage_probe
from harness.runtime.storage_probe import Limits, probe, probe_existing

SMALL = Limits(part_s=1000, large_file_bytes=3 << 20, small_files=7, small_file_bytes=1000, empty_files=5)


class Ticking:
    """A clock that advances by ``tick_s`` whenever it is read."""

    def __init__(self, tick_s: float = 0.5):
        self._ticks = itertools.count()
        self._tick_s = tick_s

    def __call__(self) -> float:
        return next(self._ticks) * self._tick_s


def test_counts_bytes_and_rates_of_a_writable_directory(tmp_path: Path) -> None:
    found = probe(tmp_path, SMALL, Ticking())
    assert found["write"]["bytes"] == found["sequential_read"]["bytes"] == 3 << 20
    assert found["small_files"]["files"] == 7
    assert found["small_files"]["bytes"] == 7000
    assert found["metadata"]["files"] == 5
    for part in ("write", "sequential_read", "small_files"):
        assert found[part]["bytes_per_s"] == found[part]["bytes"] / found[part]["seconds"]
    assert found["small_files"]["files_per_s"] == 7 / found["small_files"]["seconds"]
    assert found["small_files"]["median_s"] == 0.5  # two readings of the clock, one tick apart
    assert found["small_files"]["cache"] in ("cold", "warm", "unknown")
    # each of 5 operations, the reading after it, and the reading at the end
    assert found["metadata"]["creates_per_s"] == 5 / 3


def test_nothing_is_left_behind_not_even_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probe(tmp_path, SMALL)
    assert list(tmp_path.iterdir()) == []

    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(storage_probe, "_metadata", broken)
    with pytest.raises(OSError, match="disk full"):
        probe(tmp_path, SMALL)
    assert list(tmp_path.iterdir()) == []


def test_each_part_ends_when_its_time_is_over(tmp_path: Path) -> None:
    limits = Limits(part_s=2, large_file_bytes=1 << 30, small_files=10**6, small_file_bytes=10, empty_files=10**6)
    found = probe(tmp_path, limits, Ticking(1.0))
    # at a second a reading two operations fit into two seconds; reading a file takes two readings more
    assert found["write"]["blocks"] == 2
    assert found["small_files"]["files"] in (1, 2)
    assert found["metadata"]["files"] == 2


def test_files_that_lie_there_already_are_only_read(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    contents = {tmp_path / "a" / f"{number}": bytes([number]) * (100 + number) for number in range(9)}
    for path, content in contents.items():
        path.write_bytes(content)
    found = probe_existing(tmp_path, SMALL, Ticking())
    assert found["listing"]["files"] == 7  # at most small_files are looked at
    assert found["small_files"]["files"] == 6
    assert found["sequential_read"]["bytes"] + found["small_files"]["bytes"] >= 7 * 100
    assert {path: path.read_bytes() for path in contents} == contents
    assert sorted(tmp_path.rglob("*")) == sorted([tmp_path / "a", *contents])


def test_an_empty_or_missing_directory(tmp_path: Path) -> None:
    assert set(probe_existing(tmp_path, SMALL)) == {"listing"}
    with pytest.raises(FileNotFoundError):
        probe_existing(tmp_path / "gone", SMALL)
    with pytest.raises(FileNotFoundError):
        probe(tmp_path / "gone", SMALL)


def test_a_clock_too_coarse_gives_no_rate(tmp_path: Path) -> None:
    assert probe(tmp_path, SMALL, lambda: 0.0)["write"]["bytes_per_s"] is None


@pytest.mark.parametrize(
    ("error", "outcome"), [(13, False), (30, False), (1, False), (28, OSError), (122, OSError), (5, OSError)]
)
def test_a_refusal_to_write_is_told_from_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, outcome: object
) -> None:
    def refuse(**_: object) -> None:
        raise OSError(error, "no")

    assert storage_probe.is_writable(tmp_path)
    monkeypatch.setattr(storage_probe.tempfile, "TemporaryFile", refuse)
    if outcome is False:
        assert not storage_probe.is_writable(tmp_path)
    else:
        with pytest.raises(OSError, match="no"):
            storage_probe.is_writable(tmp_path)


def test_what_the_program_says_of_directories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = probe_program.storage(str(tmp_path), with_speed=False)
    assert facts["exists"]
    assert facts["writable"]
    assert 0 < facts["free_bytes"] <= facts["total_bytes"]
    assert "speed" not in facts
    missing = probe_program.storage(str(tmp_path / "a" / "b"), with_speed=True)
    assert missing == {"path": str(tmp_path / "a" / "b"), "exists": False, "may_make": True}
    assert not probe_program.storage("/proc/self/nothing/x", with_speed=True)["may_make"]
    monkeypatch.setattr(storage_probe, "is_writable", lambda place: False)
    (tmp_path / "file").write_bytes(b"x" * 10)
    read_only = probe_program.storage(str(tmp_path), with_speed=True)
    assert set(read_only["speed"]) == {"listing", "sequential_read", "small_files"}
