"""One harness at a time, whatever became of the one before."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.errors import of_the_system
from harness.jobs.lock import HEARTBEAT_S, STALE_S, Holder, LockError, acquire, locked, read_holder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def rewrite(path: Path, holder: Holder) -> None:
    path.write_text(json.dumps(asdict(holder)))


def held(path: Path) -> Holder:
    holder = read_holder(path)
    assert holder is not None
    return holder


@contextmanager
def other_process(path: Path) -> Iterator[subprocess.Popen[str]]:
    code = "import sys, pathlib; from harness.jobs.lock import acquire"
    code += "; acquire(pathlib.Path(sys.argv[1])); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_the_second_is_told_who_holds_it(path: Path) -> None:
    with other_process(path) as process, pytest.raises(LockError, match=f"harness process {process.pid} on "):
        acquire(path)


def test_a_killed_holder_is_forgotten_at_once(path: Path) -> None:
    with other_process(path) as process:
        process.kill()
        process.wait()
        with locked(path):
            assert held(path).process.pid == os.getpid()
    assert not path.exists()


def test_nothing_is_left_behind(path: Path) -> None:
    with locked(path), pytest.raises(LockError):
        acquire(path)
    assert list(path.parent.iterdir()) == []


def test_a_reused_process_id_is_no_holder(path: Path) -> None:
    acquire(path)
    mine = held(path)
    rewrite(path, replace(mine, process=replace(mine.process, start_ticks=mine.process.start_ticks - 1)))
    with locked(path):
        assert held(path).token != mine.token


def test_another_hosts_lock_is_believed_until_it_is_old(path: Path) -> None:
    acquire(path)
    rewrite(path, replace(held(path), host="elsewhere"))
    with pytest.raises(LockError, match="on elsewhere"):
        acquire(path)
    old = path.stat().st_mtime - STALE_S - 1
    os.utime(path, (old, old))
    with locked(path):
        assert held(path).host != "elsewhere"


def test_an_unreadable_lock_is_believed_until_it_is_old(path: Path) -> None:
    path.write_text("{")
    with pytest.raises(LockError, match="another harness"):
        acquire(path)
    os.utime(path, (1, 1))
    with locked(path):
        assert held(path).process.pid == os.getpid()


def test_the_holder_notices_a_take_over(path: Path) -> None:
    now = [0.0]
    lock = acquire(path, clock=lambda: now[0])
    rewrite(path, replace(held(path), token="another"))
    lock.hold()  # too soon to look
    now[0] += HEARTBEAT_S + 1
    with pytest.raises(LockError, match="taken over"):
        lock.hold()
    lock.release()
    assert held(path).token == "another"


def test_holding_keeps_the_lock_young(path: Path) -> None:
    now = [0.0]
    lock = acquire(path, clock=lambda: now[0])
    os.utime(path, (1, 1))
    now[0] += HEARTBEAT_S + 1
    lock.hold()
    assert path.stat().st_mtime > 1


def test_of_many_that_find_a_dead_holder_one_gets_the_lock(path: Path) -> None:
    for _ in range(20):
        path.write_text(json.dumps({"host": "elsewhere"}))
        os.utime(path, (1, 1))

        def attempt(_: int) -> bool:
            try:
                acquire(path)
            except LockError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(attempt, range(8))) == 1
        path.unlink()


def test_where_nothing_can_be_written_the_directory_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, _text: str) -> int:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(self))

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(OSError, match="Read-only") as caught:
        acquire(path)
    assert of_the_system(caught.value).startswith(f"{path.parent}: Read-only file system")
