"""What ``qstat -B -f``, ``qstat -Q -f`` and ``pbsnodes -a`` answer, of PBS Pro, OpenPBS and Torque.

Plain text, since ``-F json`` of some versions is no JSON when a comment holds a quotation mark, and Torque has none.
Attributes: pbs_server_attributes(7B), pbs_queue_attributes(7B), pbs_node_attributes(7B).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from harness.jobs.survey.facts import NodeFacts, QueueFacts, SiteFacts
from harness.units import parse_bytes, parse_duration_s

SERVER = ["qstat", "-B", "-f"]
QUEUES = ["qstat", "-Q", "-f"]
NODES = ["pbsnodes", "-a"]
#: the limit for each ordinary user in [u:PBS_GENERIC=2], [o:PBS_ALL=100] or a plain number
_USER_LIMIT = re.compile(r"u:PBS_GENERIC=(\d+)")
_TORQUE_ONLY = {"next_job_number", "net_counter"}
_THROTTLE_SINCE = (22, 5, 11)
_FIRST_YEAR = 2000
_ATTRIBUTE = re.compile(r"^\s+([\w.]+) = (.*)$")

Record = Mapping[str, str]


def parse_records(text: str, head: str = "") -> dict[str, dict[str, str]]:
    """Name → attributes. A record begins with ``Server: NAME`` or ``Queue: NAME``, a node's with its bare name.

    Long values are folded: their further lines begin with a tab.
    """
    records: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in re.sub(r"\n *\t", "", text).splitlines():
        if match := _ATTRIBUTE.match(line):
            current[match[1]] = match[2].strip()
        elif line.strip() and not line[0].isspace() and line.startswith(head):
            current = records.setdefault(line.removeprefix(head).strip(), {})
    return records


def site(server: str, queues: str, nodes: str) -> SiteFacts:
    """The site, from the answers to :data:`SERVER`, :data:`QUEUES` and :data:`NODES`.

    Torque is told from PBS by its nodes, which count slots (``np``), and by server attributes that PBS does not have.
    """
    name, settings = next(iter(parse_records(server, "Server: ").items()), ("", {}))
    hosts = parse_records(nodes)
    is_torque = any("np" in record for record in hosts.values()) or bool(_TORQUE_ONLY & set(settings))
    queue_records = parse_records(queues, "Queue: ")
    return SiteFacts(
        scheduler="torque" if is_torque else "pbs",
        name=name,
        version=settings.get("pbs_version", ""),
        nodes=tuple(_torque_nodes(hosts) if is_torque else _pbs_nodes(hosts)),
        queues=tuple(_queue(name, record, settings) for name, record in queue_records.items()),
        settings=settings,
    )


def lacks_throttle(version: str) -> bool:
    """Whether a PBS of this version does not know the throttle of ``-J 0-9%2``, or may not: PBS Professional calls its
    versions by years, and 2021.1 is older than OpenPBS 22.05.11."""
    numbers = [int(part) for part in re.findall(r"\d+", version)[:3]]
    if numbers and numbers[0] >= _FIRST_YEAR:
        numbers[0] -= _FIRST_YEAR
    return bool(numbers) and tuple(numbers) < _THROTTLE_SINCE


def _pbs_nodes(records: Mapping[str, Record]) -> Iterable[NodeFacts]:
    """Virtual nodes of one host, such as ``gpu1[0]`` and ``gpu1[1]`` for its sockets, are one node."""
    hosts: dict[str, list[Record]] = {}
    for name, record in records.items():
        host = record.get("resources_available.host", name.partition("[")[0])
        hosts.setdefault(host, []).append(record)
    for host, parts in hosts.items():
        with_cpus = [part for part in parts if _number(part, "resources_available.ncpus")]
        if not with_cpus:
            continue
        memory = [_size(part.get("resources_available.mem", "")) for part in with_cpus]
        models = {part[key] for part in parts for key in part if re.search(r"(gpu|accelerator)_(model|type)$", key)}
        yield NodeFacts(
            name=host,
            cpus=sum(_number(part, "resources_available.ncpus") or 0 for part in with_cpus),
            sockets=len(with_cpus) if len(with_cpus) > 1 else None,
            memory_bytes=sum(n for n in memory if n) or None,
            gpus=sum(_number(part, "resources_available.ngpus") or 0 for part in parts),
            gpu_type=models.pop() if len(models) == 1 else "",
            queues=_queues_of(with_cpus[0]),
        )


def _queues_of(record: Record) -> tuple[str, ...]:
    text = record.get("queue") or record.get("resources_available.Qlist", "")
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _torque_nodes(records: Mapping[str, Record]) -> Iterable[NodeFacts]:
    for name, record in records.items():
        status = dict(word.split("=", 1) for word in record.get("status", "").split(",") if "=" in word)
        cpus = _number(record, "np")
        if cpus:
            sockets, cores = _number(record, "total_sockets"), _number(record, "total_cores")
            yield NodeFacts(
                name=name,
                cpus=cpus,
                sockets=sockets,
                cores_per_socket=cores // sockets if cores and sockets else None,
                memory_bytes=_size(status.get("physmem", "")),
                gpus=_number(record, "gpus") or 0,
            )


def _queue(name: str, record: Record, settings: Record) -> QueueFacts:
    routes = tuple(word.partition("@")[0].strip() for word in record.get("route_destinations", "").split(","))
    return QueueFacts(
        name=name,
        is_default=settings.get("default_queue") == name,
        accepts=_true(record.get("enabled")) and _true(record.get("started")),
        max_walltime_s=_seconds(record.get("resources_max.walltime", "")),
        default_walltime_s=_seconds(record.get("resources_default.walltime", "")),
        min_nodes=_number(record, "resources_min.nodect"),
        max_nodes=_number(record, "resources_max.nodect") or _number(record, "resources_max.nodes"),
        max_queued_jobs=_queued_limit(record),
        max_array_size=_number(record, "max_array_size") or _number(settings, "max_array_size"),
        routes_to=tuple(route for route in routes if route),
    )


def _queued_limit(record: Record) -> int | None:
    if match := _USER_LIMIT.search(record.get("max_queued", "")):
        return int(match[1])
    return _number(record, "max_user_queuable")  # Torque


def _true(text: str | None) -> bool:
    return (text or "").lower() in ("true", "t", "1", "y")


def _number(record: Record, name: str) -> int | None:
    match = re.match(r"\d+", record.get(name, ""))
    return int(match[0]) if match else None


def _size(text: str) -> int | None:
    try:
        return parse_bytes(text)
    except ValueError:
        return None


def _seconds(text: str) -> int | None:
    if text.isdigit():
        return int(text) or None
    try:
        return parse_duration_s(text) or None
    except ValueError:
        return None
