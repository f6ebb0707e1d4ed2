"""What ``scontrol show node|partition|config`` answers. scontrol(1), slurm.conf(5); Slurm 20 to 24 print alike."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.jobs.survey.facts import NodeFacts, QueueFacts, SiteFacts
from harness.units import parse_duration_s

NODES = ["scontrol", "show", "node", "-o"]
PARTITIONS = ["scontrol", "show", "partition", "-o"]
CONFIG = ["scontrol", "show", "config"]
_MIB = 1024**2
_NONE = ("UNLIMITED", "INFINITE", "NONE", "(null)", "N/A", "")
# gpu:4 · gpu:a100:4 · gpu:a100:4(S:0-1) · gpu:a100_3g.20gb:2(S:0,1)
_GPU = re.compile(r"(?:^|,)gpu(?::([^:,()]+))?:(\d+)(?=[(,]|$)")


def site(nodes: str, partitions: str, config: str) -> SiteFacts:
    """The site, from the answers to :data:`NODES`, :data:`PARTITIONS` and :data:`CONFIG`."""
    settings = parse_config(config)
    return SiteFacts(
        scheduler="slurm",
        name=settings.get("ClusterName", ""),
        version=settings.get("SLURM_VERSION", ""),
        nodes=tuple(_node(record) for record in _records(nodes, "NodeName")),
        queues=tuple(_queue(record, settings) for record in _records(partitions, "PartitionName")),
        settings=settings,
    )


def parse_config(text: str) -> dict[str, str]:
    """Parameters and their values as ``scontrol show config`` prints them: ``Name   = value``."""
    return {match[1]: match[2].strip() for match in re.finditer(r"^(\w+)\s+= (.*)$", text, re.M)}


def _records(text: str, first: str) -> list[dict[str, str]]:
    """One record a line. A value ends at a blank; what looks like a field in a later free text does not count."""
    records = []
    for line in text.splitlines():
        if line.startswith(f"{first}="):
            record: dict[str, str] = {}
            for name, value in re.findall(r"(?:^|\s)(\w+)=(\S*)", line):
                record.setdefault(name, value)
            records.append(record)
    return records


def _node(record: Mapping[str, str]) -> NodeFacts:
    memory, kept = _number(record, "RealMemory"), _number(record, "MemSpecLimit")
    gpus = _GPU.findall(record.get("Gres", ""))
    types = {name for name, _ in gpus if name}
    return NodeFacts(
        name=record["NodeName"],
        cpus=_number(record, "CPUTot") or 1,
        sockets=_number(record, "Sockets"),
        cores_per_socket=_number(record, "CoresPerSocket"),
        threads_per_core=_number(record, "ThreadsPerCore"),
        memory_bytes=(memory - (kept or 0)) * _MIB if memory else None,
        gpus=sum(int(count) for _, count in gpus),
        gpu_type=types.pop() if len(types) == 1 else "",
        queues=tuple(name for name in record.get("Partitions", "").split(",") if name not in _NONE),
    )


def _queue(record: Mapping[str, str], settings: Mapping[str, str]) -> QueueFacts:
    memory = _number(record, "MaxMemPerNode")
    return QueueFacts(
        name=record["PartitionName"],
        is_default=record.get("Default") == "YES",
        accepts=record.get("State") == "UP",
        max_walltime_s=_seconds(record, "MaxTime"),
        default_walltime_s=_seconds(record, "DefaultTime"),
        min_nodes=_number(record, "MinNodes") or None,
        max_nodes=_number(record, "MaxNodes") or _number(record, "TotalNodes"),
        max_cores_per_node=_number(record, "MaxCPUsPerNode"),
        max_memory_bytes=memory * _MIB if memory else None,
        max_array_size=_number(settings, "MaxArraySize"),
    )


def _number(record: Mapping[str, str], name: str) -> int | None:
    match = re.match(r"\d+", record.get(name, ""))
    return int(match[0]) if match else None


def _seconds(record: Mapping[str, str], name: str) -> int | None:
    text = record.get(name, "")
    if text in _NONE:
        return None
    try:
        return parse_duration_s(text) or None
    except ValueError:
        return None
