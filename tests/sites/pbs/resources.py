"""Resource requests: select chunks, old-style lists, sizes and times; refusals in the server's words; placement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sites.pbs.words import Rejected, illegal_value

SIZE = re.compile(r"(\d+)([kmgtp]?)([bw]?)", re.IGNORECASE)
TIME = re.compile(r"(?:(?:(\d+):)?(\d+):)?(\d+)(?:\.\d+)?")
UNITS_KB = {"k": 1, "m": 1024, "g": 1024**2, "t": 1024**3, "p": 1024**4}
PLACE = re.compile(r"(free|pack|scatter|vscatter)?(:?(excl|shared|exclhost))?(:?group=\w+)?")
PPN = re.compile(r"(\d+)(?::ppn=(\d+))?")
COUNTED = ("ncpus", "mpiprocs", "ompthreads", "ngpus")
SIZED = ("mem", "vmem")
WHOLE_JOB_TIMES = ("walltime", "cput")


@dataclass(frozen=True)
class Node:
    """An execution host; ``labels`` are its site-defined strings, such as {"system": "polaris"}."""

    name: str
    ncpus: int = 16
    mem_kb: int = 16 * 1024**2
    ngpus: int = 4
    labels: Mapping[str, str] = field(default_factory=dict)

    def total(self, resource: str) -> int:
        return {"ncpus": self.ncpus, "mem": self.mem_kb, "ngpus": self.ngpus}.get(resource, 1 << 30)


@dataclass(frozen=True)
class Chunk:
    """One chunk of a select: counts (mem in kb) and strings, as written."""

    counts: Mapping[str, int]
    labels: Mapping[str, str]

    @property
    def slots(self) -> int:
        """Lines of this chunk in the nodefile."""
        return self.counts.get("mpiprocs", 1)


@dataclass(frozen=True)
class Needs:
    """What a job needs; ``listed`` is its Resource_List as qstat shows it."""

    chunks: tuple[Chunk, ...]
    place: str
    walltime_s: int | None
    listed: Mapping[str, str | int]


def size_kb(text: str, resource: str) -> int:
    match = SIZE.fullmatch(text)
    if not match:
        raise illegal_value(resource)
    number, unit = int(match[1]), match[2].lower()
    return number * UNITS_KB[unit] if unit else -(-number // 1024)


def seconds(text: str, resource: str) -> int:
    match = TIME.fullmatch(text)
    if not match:
        raise illegal_value(f"Resource_List.{resource}")
    return int(match[1] or 0) * 3600 + int(match[2] or 0) * 60 + int(match[3])


def clock(total_s: float) -> str:
    minutes, second = divmod(int(total_s), 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{second:02}"


def understand(requested: Mapping[str, str], labels: Sequence[str], strings: Sequence[str]) -> Needs:
    """Check a request as the server does; ``labels`` name per-chunk, ``strings`` whole-job site-defined resources."""
    _check_names(requested, labels, strings)
    requested = dict(requested)
    if "nodes" in requested:
        requested["select"] = _select_from_nodes(requested.pop("nodes"), requested)
    place = requested.get("place", "free")
    if not place or not PLACE.fullmatch(place):
        raise illegal_value("Resource_List.place")
    if "select" not in requested:
        requested["select"] = _select_from_plain(requested)
    chunks = _select(requested["select"], labels)
    walltime_s = seconds(requested["walltime"], "walltime") if "walltime" in requested else None
    listed = _listed(requested, chunks, place, walltime_s, strings)
    return Needs(chunks, place, walltime_s, listed)


def _check_names(requested: Mapping[str, str], labels: Sequence[str], strings: Sequence[str]) -> None:
    per_chunk = {*COUNTED, *SIZED, *labels, "host", "vnode", "arch"}
    known = {*per_chunk, *WHOLE_JOB_TIMES, *strings, "select", "place", "nodes"}
    for name in requested:
        if name not in known:
            raise Rejected(f"Unknown resource Resource_List.{name}", 187)
    if "nodes" in requested and {"select", "place"} & set(requested):
        raise Rejected("Cannot be used with select or place: nodes", 6)
    mixed = [name for name in requested if name in per_chunk]
    if "select" in requested and mixed:
        raise Rejected(f'"-lresource=" cannot be used with "select" or "place", resource is: {mixed[0]}', 5)


def _select_from_nodes(text: str, requested: dict[str, str]) -> str:
    match = PPN.fullmatch(text)
    if not match:
        raise Rejected("node(s) specification error", 241)
    requested.setdefault("place", "scatter")
    slots = match[2] or "1"
    return f"{match[1]}:ncpus={slots}:mpiprocs={slots}"


def _select_from_plain(requested: dict[str, str]) -> str:
    given = [f"{name}={requested.pop(name)}" for name in (*COUNTED, *SIZED) if name in requested]
    return ":".join(["1", *given])


def _select(text: str, labels: Sequence[str]) -> tuple[Chunk, ...]:
    chunks: list[Chunk] = []
    for part in text.split("+"):
        head, *items = part.split(":")
        number = int(head) if head.isdigit() else None
        if number is None:
            number, items = 1, [head, *items]
        if number == 0:
            raise illegal_value("")
        chunks += [_chunk(items, labels)] * number
    return tuple(chunks)


def _chunk(items: Sequence[str], labels: Sequence[str]) -> Chunk:
    counts: dict[str, int] = {}
    strings: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or name != name.strip() or name in WHOLE_JOB_TIMES:
            raise illegal_value("Resource_List.select")
        if name in SIZED:
            counts[name] = size_kb(value, f"select.{name}")
        elif name in COUNTED and (name != "ngpus" or "ngpus" in labels):
            if not value.isdigit():
                raise illegal_value(f"select.{name}")
            counts[name] = int(value)
        elif name in labels or name in ("host", "vnode", "arch"):
            strings[name] = value
        else:
            raise Rejected(f"Unknown resource: {name}", 187)
    counts.setdefault("ncpus", 1)
    return Chunk(counts, strings)


def _listed(
    requested: Mapping[str, str],
    chunks: Sequence[Chunk],
    place: str,
    walltime_s: int | None,
    strings: Sequence[str],
) -> dict[str, str | int]:
    totals: dict[str, str | int] = {}
    for name in (*COUNTED, *SIZED):
        amounts = [chunk.counts[name] for chunk in chunks if name in chunk.counts]
        if amounts and name != "ompthreads":
            totals[name] = _size_text(sum(amounts)) if name in SIZED else sum(amounts)
    totals.update({name: requested[name] for name in strings if name in requested})
    totals["nodect"], totals["place"] = len(chunks), place
    text = requested["select"]
    totals["select"] = text if "ncpus=" in text else "+".join(f"{part}:ncpus=1" for part in text.split("+"))
    if walltime_s is not None:
        totals["walltime"] = clock(walltime_s)
    return dict(sorted(totals.items()))


def _size_text(total_kb: int) -> str:
    for unit, factor in reversed(UNITS_KB.items()):
        if total_kb % factor == 0:
            return f"{total_kb // factor}{unit}b"
    raise AssertionError("kb divides all")


# placement


def fits_never(needs: Needs, nodes: Sequence[Node]) -> str:
    """Why a request can never start on these nodes, in the scheduler's words; empty where it can."""
    empty = {node.name: {} for node in nodes}
    if place(needs, nodes, empty) is not None:
        return ""
    for chunk in needs.chunks:
        for name, value in chunk.labels.items():
            if not any(
                node.labels.get(name, node.name if name in ("host", "vnode") else "") == value for node in nodes
            ):
                return f"Can Never Run: Insufficient amount of resource: {name} ({value} != )"
        for name, wanted in chunk.counts.items():
            most = max(node.total(name) for node in nodes)
            if wanted > most:
                unit = "kb" if name in SIZED else ""
                return (
                    f"Can Never Run: Insufficient amount of resource: {name} "
                    f"(R: {wanted}{unit} A: {most}{unit} T: {most}{unit})"
                )
    return "Can Never Run: Not enough total nodes available"


def place(needs: Needs, nodes: Sequence[Node], used: Mapping[str, Mapping[str, int]]) -> list[Node] | None:
    """A node for each chunk, or None: scatter takes distinct nodes, pack one node, free whichever has room."""
    if "pack" in needs.place:
        tries = (_fill(needs.chunks, [node], used, scatter=False) for node in nodes)
        return next((chosen for chosen in tries if chosen), None)
    return _fill(needs.chunks, nodes, used, scatter="scatter" in needs.place)


def _fill(
    chunks: Sequence[Chunk], nodes: Sequence[Node], used: Mapping[str, Mapping[str, int]], scatter: bool
) -> list[Node] | None:
    taken = {node.name: dict(used.get(node.name, {})) for node in nodes}
    chosen: list[Node] = []
    for chunk in chunks:
        candidates = (node for node in nodes if not (scatter and node in chosen))
        node = next((node for node in candidates if _has_room(chunk, node, taken[node.name])), None)
        if node is None:
            return None
        chosen.append(node)
        for name, amount in chunk.counts.items():
            taken[node.name][name] = taken[node.name].get(name, 0) + amount
    return chosen


def _has_room(chunk: Chunk, node: Node, taken: Mapping[str, int]) -> bool:
    for name, value in chunk.labels.items():
        if node.labels.get(name, node.name if name in ("host", "vnode") else "") != value:
            return False
    return all(taken.get(name, 0) + amount <= node.total(name) for name, amount in chunk.counts.items())
