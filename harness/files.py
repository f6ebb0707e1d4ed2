"""Files that survive crashes: atomic replacement, durable append, JSON lines that tolerate a torn tail.

Shared file systems (NFS, Lustre) give no locks to rely on, but ``rename`` within a directory is atomic and
``fsync`` reaches the server, so everything here is built from those two.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

#: what may lie where a file is expected
_KINDS = {
    stat.S_IFIFO: "a FIFO (named pipe)",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
#: names under which a shell hands over what it has opened, `<(…)` among them: their writers end
_HANDED_OVER = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


def open_file(path: str | os.PathLike[str], pipes: bool = False) -> int:
    """A descriptor to read a file with. Whoever reads a FIFO or a device may wait, or read, for ever: they are refused.

    Args:
        pipes: whether ``path`` may be a pipe that a shell has opened.

    Raises:
        OSError: where it cannot be opened, or is no file; it says what it is instead.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket, or a device without its driver
            raise _no_file(path, os.stat(path).st_mode) from None  # noqa: PTH116 - of text as well
        raise
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return handle
    if pipes and stat.S_ISFIFO(mode) and os.fspath(path).startswith(_HANDED_OVER):
        os.set_blocking(handle, True)
        return handle
    os.close(handle)
    raise _no_file(path, mode)


def _no_file(path: str | os.PathLike[str], mode: int) -> OSError:
    if stat.S_ISDIR(mode):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    kind = _KINDS.get(stat.S_IFMT(mode), "no file")
    return OSError(errno.ENXIO, f"is {kind} and no file; move it away", os.fspath(path))


def read_file(path: str | os.PathLike[str], most: int = -1, pipes: bool = False) -> bytes:
    """The content of a file, at most ``most`` bytes of it; raises as :func:`open_file`."""
    with os.fdopen(open_file(path, pipes), "rb") as stream:
        return stream.read(most)


def is_text(name: str) -> bool:
    """Whether a name of the file system can stand in a table or in JSON: not where bytes of it are no UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(name: str) -> str:
    r"""A name of the file system for people: bytes that are no UTF-8 as ``\xff``."""
    return os.fsencode(name).decode(errors="backslashreplace")


def write_atomically(path: Path, content: str | bytes | Iterable[str], mode: int = 0o644) -> None:
    """Replace ``path`` by ``content``, which may come in parts: a reader sees the old file or the new one whole."""
    import tempfile  # who only reads needs no copying of trees, no archives and no random numbers

    parts = (content,) if isinstance(content, str | bytes) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    with naming(path):
        # 40 characters are at most 160 bytes: a name may have 255
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                for part in parts:
                    stream.write(part.encode() if isinstance(part, str) else part)
                stream.flush()
                os.fsync(stream.fileno())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        sync_directory(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Failures of the system inside the block name ``path``: those of a write name no file by themselves."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def write_whole(stream: IO[bytes], data: bytes) -> None:
    """Write all of ``data`` to an unbuffered stream at its end, or, when that fails, nothing of it.

    Where a disk fills up, one raw write takes a part and calls that a success; only the next one fails. What is left
    of a half line would spoil the line after it.
    """
    end, rest = stream.seek(0, os.SEEK_END), memoryview(data)
    try:
        while rest:
            rest = rest[stream.write(rest) :]
    except OSError:
        with suppress(OSError):
            stream.truncate(end)
        raise


def sync_directory(path: Path) -> None:
    """Make a rename or a new name in ``path`` durable."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def json_line(record: Any) -> str:
    """One record as a line of compact JSON; NaN and infinity are refused because JSON has neither."""
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False, allow_nan=False) + "\n"


_SEAL = b',"crc":"'
SEAL_LENGTH = len(_SEAL) + 8 + len(b'"}')


def sealed_line(record: Any) -> str:
    """As :func:`json_line` for an object, with the CRC-32 of the rest of the line as its last member, ``crc``.

    A flipped digit inside a number leaves good JSON and a wrong number: the seal tells.
    """
    body = json_line(record)[:-2]
    return f"{body}{seal(body.encode()).decode()}\n"


def seal(body: bytes) -> bytes:
    """What ends the text of a JSON object, given without its last brace: ``crc`` as its last member, and the brace."""
    return b'%b%08x"}' % (_SEAL, zlib.crc32(body))


def parse_line(line: bytes) -> dict[str, Any] | None:
    """The record of a line, without its seal; None where it is no JSON object or its seal is broken."""
    line = line.rstrip(b"\r\n")
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):  # the latter for brackets within brackets, some thousands of them
        return None
    if not isinstance(record, dict):
        return None
    seal = record.pop("crc", None)
    if seal is not None and seal != f"{zlib.crc32(line[:-SEAL_LENGTH]):08x}":
        return None
    return record


class Appender:
    """Append JSON records to a file, each durable when :meth:`append` returns.

    A crash can leave a torn last line; a new appender ends such a line first, so that later records stay whole.
    """

    def __init__(self, path: Path, line: Callable[[Any], str] = json_line):
        """``line``: makes a record a line, :func:`json_line` or :func:`sealed_line`."""
        self._line = line
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        is_new = not path.exists()
        self._stream = path.open("ab+", buffering=0)
        if is_new:
            sync_directory(path.parent)
        size = self._stream.seek(0, os.SEEK_END)
        if size:
            self._stream.seek(size - 1)
            if self._stream.read(1) != b"\n":
                write_whole(self._stream, b"\n")

    def append(self, *records: Any) -> None:
        """Write ``records`` as one write call and wait until they are on disk."""
        with naming(self._path):
            write_whole(self._stream, "".join(map(self._line, records)).encode())
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> Appender:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()


def read_json_lines(path: Path, torn: list[int] | None = None) -> Iterator[dict[str, Any]]:
    """The records of a JSON-lines file; lines that are no JSON object, or whose seal is broken, are skipped.

    Their line numbers (from 1) are added to ``torn`` where given. A file that does not exist has no records.
    """
    for number, (line, record) in enumerate(read_lines(path), 1):
        if record is not None:
            yield record
        elif line.strip() and torn is not None:
            torn.append(number)


def read_lines(path: Path) -> Iterator[tuple[bytes, dict[str, Any] | None]]:
    """Each line of a JSON-lines file with its record, as :func:`parse_line` has it; nothing where there is no file."""
    try:
        handle = open_file(path)
    except FileNotFoundError:
        return
    with os.fdopen(handle, "rb") as stream:
        for line in stream:
            yield line, parse_line(line)
