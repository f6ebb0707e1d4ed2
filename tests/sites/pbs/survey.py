"""What the site says of itself in text: ``qstat -B -f``, ``qstat -Q -f``, ``pbsnodes -a``, of PBS and of Torque.

PBS's server attributes are those of the transcript ``qstat -B -f``; queues and nodes follow pbs_queue_attributes(7B)
and pbs_node_attributes(7B).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sites.pbs.answers import fold
from sites.pbs.words import VERSION

if TYPE_CHECKING:
    from sites.pbs.resources import Node
    from sites.pbs.server import Server
    from sites.pbs.settings import Queue


def servers(server: Server) -> str:
    settings = server.settings
    facts: dict[str, object] = {"server_state": "Active", "scheduling": settings.scheduling}
    facts |= {"total_jobs": len(server.jobs), "default_queue": settings.default_queue, "query_other_jobs": True}
    if server.is_torque:
        facts |= {"pbs_version": "6.1.2", "next_job_number": 7, "net_counter": "1 0 0"}
    else:
        facts |= {"max_array_size": settings.max_array_size, "pbs_license_min": 0, "pbs_version": VERSION}
        facts |= {"job_history_enable": settings.history, "job_history_duration": "24:00:00"}
    return _records("Server: ", {settings.name: facts})


def queues(server: Server) -> str:
    names = server.settings.queues
    return _records("Queue: ", {name: _queue(server.settings.queue(name)) for name in names})


def _queue(queue: Queue) -> dict[str, object]:
    counts = "Transit:0 Queued:0 Held:0 Waiting:0 Running:0 Exiting:0 Begun:0 "
    facts: dict[str, object] = {"queue_type": "Execution", "total_jobs": 0, "state_count": counts}
    if queue.max_walltime_s:
        hours, rest = divmod(queue.max_walltime_s, 3600)
        facts["resources_max.walltime"] = f"{hours:02d}:{rest // 60:02d}:{rest % 60:02d}"
    if queue.max_ncpus:
        facts["resources_max.ncpus"] = queue.max_ncpus
    if queue.per_user is not None:
        facts["max_queued"] = f"[u:PBS_GENERIC={queue.per_user}]"
    return {**facts, "enabled": queue.enabled, "started": queue.started}


def nodes(server: Server) -> str:
    facts = {node.name: _torque_node(node) if server.is_torque else _pbs_node(node) for node in server.nodes}
    return _records("", facts, indent=5)


def _pbs_node(node: Node) -> dict[str, object]:
    available = {"arch": "linux", "host": node.name, "mem": f"{node.mem_kb}kb", "ncpus": node.ncpus}
    available |= {"ngpus": node.ngpus, **node.labels, "vnode": node.name}
    return {
        "Mom": node.name,
        "ntype": "PBS",
        "state": "free",
        "pcpus": node.ncpus,
        **{f"resources_available.{name}": value for name, value in available.items()},
        **{f"resources_assigned.{name}": value for name, value in {"mem": "0kb", "ncpus": 0, "ngpus": 0}.items()},
        "resv_enable": True,
        "sharing": "default_shared",
    }


def _torque_node(node: Node) -> dict[str, object]:
    status = f"rectime=1700000000,ncpus={node.ncpus},physmem={node.mem_kb}kb,opsys=linux,state=free"
    facts = {"state": "free", "power_state": "Running", "np": node.ncpus, "ntype": "cluster", "status": status}
    cores = {"total_sockets": 2, "total_numa_nodes": 2, "total_cores": node.ncpus, "total_threads": node.ncpus}
    return {**facts, "gpus": node.ngpus, **cores}


def _records(head: str, records: Mapping[str, Mapping[str, object]], indent: int = 4) -> str:
    blocks = []
    for name, facts in records.items():
        lines = [f"{head}{name}"]
        lines += [" " * (indent - 4) + fold(key, str(value)) for key, value in facts.items()]
        blocks.append("\n".join(lines) + "\n\n")
    return "".join(blocks)
