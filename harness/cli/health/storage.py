"""The cluster's storages: there, writable, with room, within quota, and how fast."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cli.health import inside
from harness.cli.health.check import Check, Patient
from harness.cli.health.paths import expanded
from harness.jobs import shell
from harness.jobs.survey import quota
from harness.jobs.survey.machine import Mount, mount_of, parse_mounts
from harness.model.cluster import Storage
from harness.units import format_bytes

AREA = "storage"
_TIMEOUT_S = 60.0
LEAST_FREE_BYTES = 1 << 30
LEAST_FREE_FILES = 10_000
#: A GPU of 2017 trains ResNet50 on about 400 images/s; a storage that delivers fewer from one reader than a quarter of
#: that, or less than a spinning disk does in sequence, leaves GPUs idle.
SLOW_FILES_PER_S = 100
SLOW_BYTES_PER_S = 100e6
_NEARLY_FULL = 0.9


def check(patient: Patient) -> Iterator[Check]:
    """The checks of each storage, then quotas."""
    mounts = parse_mounts(_read(Path("/proc/self/mounts")))
    seen = {}
    for name, storage in patient.cluster.storage.items():
        if storage.scope == "node" and not patient.in_job:
            yield Check(AREA, name, "note", f"{storage.path} is local to compute nodes; it shows in a job only")
            continue
        path = expanded(storage.path)
        if path is None:
            remedy = "use a variable that the site sets in jobs, or write the path out"
            yield Check(AREA, name, "warning", f"{storage.path}: a variable in it is not set here", remedy)
            continue
        mount = mount_of(os.path.realpath(path), mounts)
        seen[path] = mount
        yield from _storage(patient, name, storage, path, mount)
    yield from _quotas(seen)


def _storage(patient: Patient, name: str, storage: Storage, path: str, mount: Mount | None) -> Iterator[Check]:
    patient.say(f"measuring {path}" if patient.measure_speed else f"looking at {path}")
    told = inside.own_probe(["storage", path, *(["--speed"] if patient.measure_speed else [])], _TIMEOUT_S)
    record: dict[str, Any] = told.records[0] if told.records else {"error": told.trouble}
    where = f"{path} ({mount.kind})" if mount else path
    if "error" in record:
        remedy = "a file system that does not answer: ask the site; ls -ld on the path shows the same"
        yield Check(AREA, name, "failure", f"{where}: {record['error']}", remedy)
    elif not record["exists"]:
        yield _absent(name, where, path, record["may_make"], storage.scope)
    else:
        yield _usable(name, where, record)
        if "speed" in record:
            yield from _speed(name, record["speed"])
    if storage.scope == "shared" and mount and mount.kind == "tmpfs":
        remedy = "set scope: node, or name a directory of the shared file system"
        yield Check(AREA, name, "warning", f"{path} lies in this node's memory, yet its scope is shared", remedy)


def _absent(name: str, where: str, path: str, may_make: bool, scope: str) -> Check:
    if may_make and scope == "node":
        return Check(AREA, name, "ok", f"{where} does not exist yet; a job that stages data there makes it")
    if may_make:
        remedy = f"harness data make makes it, or: mkdir -p {path}"
        return Check(AREA, name, "note", f"{where} does not exist yet", remedy)
    remedy = f"correct storage: {name}: path: in the cluster's file; the directory above it is not yours to write"
    return Check(AREA, name, "failure", f"{where} does not exist and cannot be made here", remedy)


def _usable(name: str, where: str, facts: Mapping[str, Any]) -> Check:
    free = f"{format_bytes(facts['free_bytes'])} of {format_bytes(facts['total_bytes'])} free"
    kept = {key: value for key, value in facts.items() if key != "speed"}
    if facts["free_bytes"] < LEAST_FREE_BYTES:
        return Check(AREA, name, "warning", f"{where}: only {free}", "delete what is not needed", kept)
    if facts["total_files"] and facts["free_files"] < LEAST_FREE_FILES:
        message = f"{where}: only {facts['free_files']} more files can be made"
        remedy = "use an encoding of few files: lmdb, tfrecord, webdataset"
        return Check(AREA, name, "warning", message, remedy, kept)
    if not facts["writable"]:
        message = f"{where}: can be read but not written; {free}"
        remedy = "data sets that lie there can be used; to make some, name a directory of yours"
        return Check(AREA, name, "warning", message, remedy, kept)
    return Check(AREA, name, "ok", f"{where}: can be written, {free}", facts=kept)


def _speed(name: str, speed: Mapping[str, Any]) -> Iterator[Check]:
    """A line of numbers, and a warning where one of them starves a GPU."""
    parts, slow = [], []
    if sequential := speed.get("sequential_read"):
        parts.append(f"one large file {_mega(sequential)}{_cache(sequential)}")
        if sequential["cache"] == "cold" and (sequential.get("bytes_per_s") or SLOW_BYTES_PER_S) < SLOW_BYTES_PER_S:
            slow.append("large files")
    if small := speed.get("small_files"):
        parts.append(f"small files {small['files_per_s'] or 0:,.0f}/s{_cache(small)}")
        if small["cache"] == "cold" and (small["files_per_s"] or SLOW_FILES_PER_S) < SLOW_FILES_PER_S:
            slow.append("small files")
    if write := speed.get("write"):
        parts.append(f"writing {_mega(write)}")
    if metadata := speed.get("metadata"):
        parts.append(f"new files {metadata['creates_per_s'] or 0:,.0f}/s")
    message = ", ".join(parts) or "empty, so that nothing could be read"
    if slow:
        remedy = "use an encoding of few large files (tfrecord, webdataset, lmdb), or stage to the nodes' own disks"
        yield Check(AREA, f"{name} speed", "warning", f"{message}: slow for {' and '.join(slow)}", remedy, speed)
    else:
        yield Check(AREA, f"{name} speed", "ok" if parts else "note", message, facts=speed)


def _mega(part: Mapping[str, Any]) -> str:
    rate = part.get("bytes_per_s")
    return f"{rate / 1e6:,.0f} MB/s" if rate else "too fast to time"


def _cache(part: Mapping[str, Any]) -> str:
    return {"cold": "", "warm": " (from this node's memory)", "unknown": " (perhaps from memory)"}[part["cache"]]


def _quotas(paths: Mapping[str, Mount | None]) -> Iterator[Check]:
    """Quotas of the file systems that the storages lie on, where the site has commands that tell."""
    found: list[quota.Quota] = []
    for mount in {mount for mount in paths.values() if mount and mount.kind == "lustre"}:
        found += quota.parse_lustre(_stdout(["lfs", "quota", "-u", getpass.getuser(), mount.path]))
    mine = {mount.path for mount in paths.values() if mount} | {mount.source for mount in paths.values() if mount}
    found += [q for q in quota.parse_quota(_stdout(["quota", "-p", "-w"])) if q.file_system in mine]
    if not found:
        if paths:
            yield Check("quota", "quota", "note", "lfs and quota tell of no quota on these file systems")
        return
    for q in found:
        yield _quota(q)


def _quota(q: quota.Quota) -> Check:
    limit = format_bytes(q.limit_bytes) if q.limit_bytes else "no limit"
    files = f"{q.files:,} of {q.files_limit:,} files" if q.files_limit else f"{q.files:,} files"
    message = f"{q.file_system}: {format_bytes(q.used_bytes)} of {limit}, {files}, for {q.subject}"
    facts = {"used_bytes": q.used_bytes, "limit_bytes": q.limit_bytes, "files": q.files, "files_limit": q.files_limit}
    remedy = "delete what is not needed, or ask for more; runs that cannot write their evidence are lost"
    if q.full_share >= 1:
        return Check("quota", q.file_system, "failure", f"{message}: full", remedy, facts)
    if q.full_share >= _NEARLY_FULL:
        return Check("quota", q.file_system, "warning", f"{message}: nearly full", remedy, facts)
    return Check("quota", q.file_system, "ok", message, facts=facts)


def _stdout(argv: Sequence[str]) -> str:
    return shell.run(argv, _TIMEOUT_S).stdout


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="surrogateescape")
    except OSError:
        return ""
