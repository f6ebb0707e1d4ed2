"""The data a run reads: where they lie, whether they were staged, what the page cache holds, what was really read."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from ctypes import CDLL, c_int, c_size_t, c_ubyte, c_void_p, get_errno
from pathlib import Path
from typing import Any

from harness import catalog
from harness.errors import UserError
from harness.model.job import RunSpec

#: Written by ``harness data make`` into a data set's directory.
MANIFEST = "harness-dataset.json"
WARM_SHARE = 0.99
COLD_SHARE = 0.01
#: Seconds that ranks wait for the one that empties or fills the page cache.
CACHE_PATIENCE_SECONDS = 1800.0
_SAMPLED_FILES = 2000
_STREAMS = 16
#: file systems that hold data in caches of their own, which posix_fadvise does not empty and mincore does not see:
#: the page pool of IBM Storage Scale, the ARC of ZFS, whatever serves a FUSE mount
_OWN_CACHES = ("gpfs", "zfs", "fuse")
_BLOCK_BYTES = 1 << 20
_MOUNTS = Path("/proc/self/mounts")
_LLITE = (Path("/proc/fs/lustre/llite"), Path("/sys/kernel/debug/lustre/llite"))


def data_path(spec: RunSpec, environ: Mapping[str, str]) -> Path | None:
    """The data set's directory as this node sees it; None for a workload without data or a pipeline that reads none.

    A job script that staged the data names its own copy in ``HARNESS_DATA_DIR``; otherwise the placement's path
    counts, with the job's environment variables expanded.

    Raises:
        UserError: when the directory is missing.
    """
    if not catalog.reads_data(spec.axes.dataset, spec.axes.pipeline):
        return None
    path = Path(environ.get("HARNESS_DATA_DIR") or os.path.expandvars(spec.placement.data_path)).expanduser()
    if not path.is_dir():
        raise UserError(
            f"data set {spec.axes.dataset!r}: no directory {path} on {os.uname().nodename}; "
            f"make it with: harness data make, or choose another storage than {spec.axes.storage!r}"
        )
    return path


def stage_facts(directory: Path) -> dict[str, Any] | None:
    """What the job script noted when it staged the data to this node: ``stage.<node>.json`` in the attempt."""
    try:
        facts = json.loads((directory / f"stage.{os.uname().nodename}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return {name: facts.get(name) for name in ("from_path", "to_path", "seconds", "bytes", "files", "verified")}


def describe(spec: RunSpec, path: Path | None) -> dict[str, Any]:
    """The fields of a ``data`` event.

    Origin, training samples and digest (SHA-256 over the names and SHA-256 sums of all files) come from the manifest
    beside the data. Without one nothing vouches for the data, and ``origin`` is unknown; so are their bytes, for the
    sizes of a million files take a parallel file system minutes to tell.
    """
    if path is None:
        return {"dataset": None, "origin": "none", "path": None, "samples": None, "bytes": 0, "digest": None}
    name = spec.axes.dataset or ""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        request, listed = manifest["request"], manifest["files"]
        sums = "".join(f"{file}\0{listed[file]['sha256']}\n" for file in sorted(listed))
        size = manifest["total_bytes"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        size = None
        facts = {"origin": "unknown", "samples": None, "digest": None, "verified": None}
    else:
        samples = request.get("counts", {}).get("train")
        digest = hashlib.sha256(sums.encode()).hexdigest()
        facts = {"origin": request.get("origin"), "samples": samples, "digest": digest, "verified": None}
    return {"dataset": name, "path": str(path), "bytes": size, **facts}


def files(path: Path) -> Iterator[Path]:
    """All regular files under ``path``, in a stable order."""
    for directory, names, entries in os.walk(path):
        names.sort()
        for name in sorted(entries):
            file = Path(directory, name)
            if file.is_file():
                yield file


def set_cache(path: Path, wanted: str, mounts: Path = _MOUNTS) -> dict[str, Any]:
    """Bring a directory's files out of the page cache (``cold``) or into it (``warm``) and see what came of it.

    Returns the fields of a ``cache`` event. ``state`` is what was verified, by residency of the pages of all files
    or of 2000 evenly chosen ones: ``unknown`` where it is neither, was not asked for, or cannot be seen, as on file
    systems with caches of their own.
    """
    if wanted == "unknown":
        return {"wanted": wanted, "state": "unknown", "resident_share": None, "bytes": None}
    paths = list(files(path))
    with ThreadPoolExecutor(_STREAMS) as pool:
        list(pool.map(drop_cached if wanted == "cold" else _read_through, paths))
    shares = [resident(file) for file in paths[:: max(1, len(paths) // _SAMPLED_FILES)]]
    known = [pair for pair in shares if pair is not None]
    pages = sum(total for _, total in known)
    seen = len(known) == len(shares) and only_page_cache(path, mounts)
    share = sum(here for here, _ in known) / pages if pages and seen else None
    state = "unknown"
    if share is not None and wanted == "cold" and share <= COLD_SHARE:
        state = "cold"
    if share is not None and wanted == "warm" and share >= WARM_SHARE:
        state = "warm"
    return {"wanted": wanted, "state": state, "resident_share": share, "bytes": sum(f.stat().st_size for f in paths)}


def only_page_cache(path: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether what this node holds of ``path`` lies in the page cache, where it can be seen, and not elsewhere, too."""
    return _mount_of(path, mounts)[1].partition(".")[0] not in _OWN_CACHES


def drop_cached(path: Path) -> None:
    """Take a file's pages out of the page cache, as far as the kernel does what it is advised."""
    handle = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # read-only file systems have no fsync, and nothing to write
            os.fsync(handle)  # DONTNEED leaves dirty pages where they are
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def _read_through(path: Path) -> None:
    with path.open("rb", buffering=0) as stream:
        block = bytearray(_BLOCK_BYTES)
        while stream.readinto(block):
            pass


def resident(path: Path) -> tuple[int, int] | None:
    """(pages in the page cache, pages) of a file, by mincore(2).

    None where the kernel does not tell: since Linux 5.2 it calls every page of a file resident that the caller
    neither owns nor may write.
    """
    status = path.stat()
    if not status.st_size:
        return 0, 0
    if status.st_uid != os.geteuid() and not os.access(path, os.W_OK, effective_ids=True):
        return None
    pages = -(-status.st_size // mmap.PAGESIZE)
    vector = (c_ubyte * pages)()
    handle = os.open(path, os.O_RDONLY)
    try:
        address = _LIBC.mmap(None, status.st_size, mmap.PROT_READ, mmap.MAP_SHARED, handle, 0)
    finally:
        os.close(handle)
    if address in (None, _MAP_FAILED):
        raise OSError(get_errno(), "mmap failed", str(path))
    try:
        failed = _LIBC.mincore(address, status.st_size, vector)
    finally:
        _LIBC.munmap(address, status.st_size)
    return None if failed else (sum(byte & 1 for byte in vector), pages)


def _libc() -> CDLL:
    library = CDLL(None, use_errno=True)
    library.mmap.restype = c_void_p
    library.mmap.argtypes = (c_void_p, c_size_t, c_int, c_int, c_int, c_size_t)
    library.munmap.argtypes = (c_void_p, c_size_t)
    library.mincore.argtypes = (c_void_p, c_size_t, c_void_p)
    return library


_LIBC = _libc()
_MAP_FAILED = c_void_p(-1).value


def io_counters(pids: Sequence[int]) -> dict[str, float]:
    """Bytes read from storage, bytes asked for by read calls, and CPU seconds used, over processes.

    ``read_bytes`` and ``rchar`` of /proc/<pid>/io and utime, stime, cutime, cstime of /proc/<pid>/stat (proc(5)): all
    include children already waited for. Processes that are gone count nothing.
    """
    totals: dict[str, float] = {"read_bytes": 0, "rchar_bytes": 0, "cpu_s": 0.0}
    for pid in pids:
        totals["cpu_s"] += _cpu_s(pid)
        try:
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
        except OSError:
            continue
        values = dict(line.split(": ", 1) for line in lines)
        totals["read_bytes"] += int(values.get("read_bytes", 0))
        totals["rchar_bytes"] += int(values.get("rchar", 0))
    return totals


def _cpu_s(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    ticks = text[text.rindex(")") + 2 :].split()[11:15]  # the second field, a name in brackets, may hold anything
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def age_s(path: Path) -> float:
    """Seconds since a file or directory was made or changed; 0 where there is none."""
    try:
        return max(time.time() - path.stat().st_mtime, 0.0)
    except OSError:
        return 0.0


def server_counters(path: Path) -> dict[str, float]:
    """Bytes that this node has read from the file server behind ``path``; empty where it is not NFS or Lustre."""
    found = {"nfs_read_bytes": nfs_read_bytes(path), "lustre_read_bytes": lustre_read_bytes(path)}
    return {name: value for name, value in found.items() if value is not None}


def lustre_read_bytes(path: Path, mounts: Path = _MOUNTS, roots: Sequence[Path] = _LLITE) -> int | None:
    """Bytes that this node's processes have read from the Lustre file system that holds ``path``, since mounted.

    None where ``path`` lies on no Lustre mount or its counters cannot be read: since Lustre 2.12 they lie in debugfs,
    which belongs to root. The last number but one of ``read_bytes`` in llite.*.stats is the sum (Lustre Operations
    Manual, "Monitoring Client Activity"); the cache of this node counts, too.
    """
    device, kind = _mount_of(path, mounts)
    if kind != "lustre" or ":/" not in device:
        return None
    name = device.rsplit(":/", 1)[1].split("/")[0]
    for root in roots:
        for stats in root.glob(f"{name}-*/stats"):
            with suppress(OSError):
                read = re.search(r"^read_bytes +\d+ samples \[bytes\] \d+ \d+ (\d+)", stats.read_text(), re.M)
                return int(read[1]) if read else 0
    return None


def _mount_of(path: Path, mounts: Path) -> tuple[str, str]:
    """(device, kind) of the mount that holds ``path``: the last one of the longest mount point."""
    best, found = "", ("", "")
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return found
    held = (path.resolve(), *path.resolve().parents)
    for fields in map(str.split, lines):
        where = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[1])
        if len(where) >= len(best) and Path(where) in held:
            best, found = where, (fields[0], fields[2])
    return found


def nfs_read_bytes(path: Path, mountstats: Path = Path("/proc/self/mountstats")) -> int | None:
    """Bytes that this node has read from the NFS server of the mount that holds ``path``, since it was mounted.

    None where ``path`` lies on no NFS mount. Of several on one mount point the last counts: an automounter's own comes
    before the one that it made. The fifth number of a mount's ``bytes:`` line is ServerReadBytes (mountstats(8) of
    nfs-utils).
    """
    try:
        text = mountstats.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    best, count = "", None
    for block in re.split(r"^device ", text, flags=re.M)[1:]:
        mount = re.match(r".* mounted on (.*) with fstype (\S+)", block)
        where = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), mount[1]) if mount else ""
        if mount and len(where) >= len(best) and Path(where) in (path.resolve(), *path.resolve().parents):
            read = re.search(r"^\s+bytes:\s+(?:\d+ ){4}(\d+)", block, re.M)
            best, count = where, int(read[1]) if read and mount[2].startswith("nfs") else None
    return count


def process_tree(pid: int) -> list[int]:
    """The process and its descendants now."""
    import psutil

    try:
        return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]
    except psutil.Error:
        return [pid]
