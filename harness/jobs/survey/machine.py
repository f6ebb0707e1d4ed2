"""What this machine says of itself: processors, GPUs, mounts, modules. Pure parsers of other programs' output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

#: file systems that hold no data of users
_PSEUDO = re.compile(
    r"autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|efivarfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs"
    r"|overlay|proc|pstore|ramfs|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs|vfat|fuse\.(gvfsd-fuse|portal)"
)
_SHARED = re.compile(
    r"nfs4?|lustre|gpfs|beegfs|cifs|wekafs|pvfs2|orangefs|panfs|dvs|virtiofs|afs|(fuse\.)?(ceph|glusterfs)"
    r"|fuse\.(sshfs|juicefs)"
)


@dataclass(frozen=True)
class Mount:
    """A mounted file system."""

    path: str
    kind: str
    source: str

    @property
    def is_shared(self) -> bool:
        """Whether other nodes see the same files, as far as its kind tells."""
        return _SHARED.fullmatch(self.kind) is not None


@dataclass(frozen=True)
class Processors:
    """``threads_per_core`` above 1: simultaneous threads are on."""

    model: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int


def parse_mounts(text: str) -> list[Mount]:
    """The mounts in /proc/self/mounts (proc(5)) that may hold users' data; octal escapes are undone.

    Of several at one path the last counts: it lies on top.
    """
    found: dict[str, Mount] = {}
    for line in text.splitlines():
        words = [re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), word) for word in line.split(" ")]
        if len(words) >= 4 and not _PSEUDO.fullmatch(words[2]):
            found[words[1]] = Mount(words[1], words[2], words[0])
    return list(found.values())


def mount_of(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that a path lies on."""
    parents = {str(parent) for parent in (PurePosixPath(path), *PurePosixPath(path).parents)}
    return max((mount for mount in mounts if mount.path in parents), key=lambda mount: len(mount.path), default=None)


def parse_lscpu(text: str) -> Processors | None:
    """The processors in the answer of ``lscpu -J``; None where it names no sockets, as in some virtual machines."""
    try:
        facts = dict(_flattened(json.loads(text)["lscpu"]))
        return Processors(
            model=facts.get("Model name", ""),
            sockets=int(facts["Socket(s)"]),
            cores_per_socket=int(facts["Core(s) per socket"]),
            threads_per_core=int(facts.get("Thread(s) per core", "1")),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _flattened(fields: Iterable[Mapping[str, object]]) -> Iterable[tuple[str, str]]:
    """Newer versions nest fields under ``children``."""
    for entry in fields:
        yield str(entry["field"]).rstrip(":"), str(entry.get("data", ""))
        children = entry.get("children")
        if isinstance(children, list):
            yield from _flattened(children)


#: name and memory (MiB) of each GPU
NVIDIA_SMI = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"]


def parse_nvidia_smi(text: str) -> list[tuple[str, int | None]]:
    """(model, memory in bytes) of each GPU, from the answer to :data:`NVIDIA_SMI`."""
    found = []
    for line in text.splitlines():
        name, comma, memory = line.rpartition(",")
        if comma and name.strip():
            mib = memory.strip()
            found.append((name.strip(), int(mib) * 1024**2 if mib.isdigit() else None))
    return found


def parse_modules(text: str) -> list[str]:
    """Names in the answer of ``module -t avail``: one a line, without headings (``/path:``) and ``(default)`` marks.

    Environment Modules and Lmod print it to standard error, directories of versions with a ``/`` at the end.
    """
    names = []
    for line in text.splitlines():
        word = re.sub(r"\((?:default|D|L|[A-Za-z,:]+)\)$", "", line.strip())
        if re.fullmatch(r"[\w.+-]+(?:/[\w.+-]+)*", word):
            names.append(word)
    return list(dict.fromkeys(names))
