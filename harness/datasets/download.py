"""One published file, over HTTP: resumed after a broken transfer, checked by its MD5, and whole or not there."""

from __future__ import annotations

import http.client
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
from harness.datasets.manifest import file_facts
from harness.errors import UserError
from harness.model.download import RemoteFile

_TRIES = 4  # of each mirror
_TIMEOUT_S = 60.0
_BLOCK_BYTES = 1 << 18
Progress = Callable[[int, int], None]
"""Called with (bytes here, bytes in all or 0 where unknown)."""


class _Broken(Exception):
    """A transfer that may succeed when tried again."""


class _Refused(Exception):
    """A mirror that will not give the file, however often it is asked."""


def download(
    file: RemoteFile,
    folder: Path,
    progress: Progress = lambda done, total: None,
    sleep: Callable[[float], None] = time.sleep,
) -> Path:
    """The file in ``folder``, from the first mirror that gives one with the right MD5.

    What an interrupted call left (``.NAME.part``) is gone on with.

    Raises:
        UserError: no mirror could give it; what each of them answered.
    """
    target, part = folder / file.name, folder / f".{file.name}.part"
    if target.is_file() and file_facts(target).md5 == file.md5:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    answers = []
    for url in file.urls:
        try:
            _from_mirror(url, file, part, progress, sleep)
        except (_Broken, _Refused) as error:
            answers.append(f"{url}: {error}")
            continue
        part.replace(target)
        return target
    raise UserError(
        f"{file.name} could not be fetched:\n" + "\n".join(f"  {answer}" for answer in answers) + "\n"
        f"where this machine ({socket.gethostname()}) has no network, fetch on a login node that has, "
        f"or copy the file to {target} yourself and give the command again"
    )


def _from_mirror(url: str, file: RemoteFile, part: Path, progress: Progress, sleep: Callable[[float], None]) -> None:
    """Complete ``part`` from ``url``, waiting 1, 2, 4 s after broken transfers, and check it."""
    for attempt in range(_TRIES):
        try:
            _transfer(url, file, part, progress)
            break
        except _Broken:
            if attempt == _TRIES - 1:
                raise
            sleep(2.0**attempt)
    md5 = file_facts(part).md5
    if md5 != file.md5:
        part.unlink()
        raise _Refused(f"its file has MD5 {md5}, not {file.md5}")


def _transfer(url: str, file: RemoteFile, part: Path, progress: Progress) -> None:
    """Append to ``part`` what it lacks."""
    have = part.stat().st_size if part.exists() else 0
    if file.length is not None and have == file.length:
        return
    if file.length is not None and have > file.length:
        have = 0
    headers = {"User-Agent": f"dl-batch-harness/{harness.__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=_TIMEOUT_S) as answer:
            start = _start_of(answer, have)
            total = _total_of(answer, start) or file.length or 0
            with part.open("r+b" if part.exists() else "wb") as stream:
                stream.truncate(start)
                stream.seek(start)
                got = start + _copy(answer, stream, start, total, progress)
        if total and got < total:
            raise _Broken(f"the transfer ended after {got} of {total} bytes")
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            part.unlink()
            raise _Broken("had no more bytes than are here already; starting again") from None
        kind = _Broken if error.code >= 500 or error.code in (408, 429) else _Refused
        raise kind(f"answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _unreachable(error.reason) from None
    except (http.client.HTTPException, ConnectionError, TimeoutError) as error:
        raise _Broken(f"the transfer broke: {error or type(error).__name__}") from None


def _unreachable(reason: str | BaseException) -> _Broken | _Refused:
    """A name that does not resolve or a refused connection will not be better in a second; a timeout may."""
    if isinstance(reason, TimeoutError):
        return _Broken("no answer in time")
    return _Refused(f"cannot be reached: {getattr(reason, 'strerror', None) or reason}")


def _start_of(answer: Any, have: int) -> int:
    """Where the answer's bytes begin: ``have`` where the server honoured the range, else 0."""
    content_range = answer.headers.get("Content-Range", "")
    return have if answer.status == http.HTTPStatus.PARTIAL_CONTENT and f"bytes {have}-" in content_range else 0


def _total_of(answer: Any, start: int) -> int | None:
    length = answer.headers.get("Content-Length")
    return start + int(length) if length and length.isdigit() else None


def _copy(answer: Any, stream: Any, start: int, total: int, progress: Progress) -> int:
    """Bytes copied; ``read`` with a size returns early at a broken connection and says nothing, so they are counted."""
    copied = 0
    while block := answer.read(_BLOCK_BYTES):
        stream.write(block)
        copied += len(block)
        progress(start + copied, total)
    return copied
