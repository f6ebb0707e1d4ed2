"""Ranks really started by the launcher, as a job would: their world, and the CPUs that each of them got."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.cli.health import inside
from harness.cli.health.check import Check, Patient
from harness.config.this_machine import usable_cpus
from harness.jobs import launchers
from harness.model.job import Placement
from harness.runtime import affinity

AREA = "binding"
_RANKS = 2
_WALLTIME_S = 600
_TIMEOUT_S = 120.0


def placement(patient: Patient) -> Placement:
    """The request of the probe: what a point of as many ranks and cores would be placed as."""
    cluster, asked = patient.cluster, patient.request
    here = patient.in_job or cluster.scheduler == "local"
    cores = min(cluster.node.cores, usable_cpus()) if here else cluster.node.cores
    ranks = asked.ranks_per_node or min(_RANKS, max(cores, 1))
    per_rank = asked.cores_per_rank or max(1, cores // ranks)
    return Placement(
        cluster=cluster.name,
        queue=cluster.queue,
        account=cluster.account,
        project=cluster.project,
        nodes=asked.nodes,
        ranks_per_node=ranks,
        cores_per_node=ranks * per_rank,
        gpus_per_node=cluster.node.gpus,
        memory_bytes=cluster.default_memory_bytes,
        walltime_s=_WALLTIME_S,
        data_path="/",
    )


def check(patient: Patient) -> Iterator[Check]:
    """One check for the world, then one for each rank."""
    if not patient.in_job:
        message = "what a launcher does is seen in a job only"
        remedy = f"harness doctor --cluster {patient.cluster.name} --job-script > doctor.sh, and submit it"
        yield Check(AREA, "ranks", "note", message, remedy)
        return
    request = placement(patient)
    patient.say(f"starting {request.ranks} ranks")
    with _hosts(patient, request) as hosts:
        argv = launchers.launch_argv(patient.cluster, request, hosts)
        told = inside.probe(patient, ["rank", "--mpi"], argv, _TIMEOUT_S)
        if any("error" in record for record in told.records):  # without mpi4py the rest can still be seen
            told = inside.probe(patient, ["rank"], argv, _TIMEOUT_S)
    facts = {"command": argv}
    ranks = sorted((record for record in told.records if "error" not in record), key=lambda record: record["rank"])
    if len(ranks) != request.ranks:
        said = next((record["error"] for record in told.records if "error" in record), told.trouble)
        message = f"{len(ranks)} of {request.ranks} ranks came up: {said}"
        remedy = "run the command by hand in a job; the launcher's own words are above: " + " ".join(argv)
        yield Check(AREA, "ranks", "failure", message, remedy, facts)
        return
    yield _world(ranks, request, facts)
    yield from judge(ranks, request)


@contextlib.contextmanager
def _hosts(patient: Patient, request: Placement) -> Iterator[str | None]:
    """The host file that the launcher needs, if it needs one."""
    if not launchers.needs_hosts(patient.cluster, request):
        yield None
        return
    form = launchers.hosts_line_format(patient.cluster, request).replace("\\n", "\n")
    handle, name = tempfile.mkstemp(prefix="harness-doctor-hosts.")
    with os.fdopen(handle, "w") as stream:
        stream.writelines(form % node for node in inside.nodes_of_job()[: request.nodes])
    try:
        yield name
    finally:
        Path(name).unlink()


def _world(ranks: Sequence[Mapping[str, Any]], request: Placement, facts: Mapping[str, Any]) -> Check:
    """Whether the ranks know of each other, by the launcher's variables and by MPI itself."""
    nodes = sorted({rank["node"] for rank in ranks})
    where = f"{len(ranks)} ranks on {', '.join(nodes)} under {_shortened(facts['command'])}"
    facts = {**facts, "nodes": nodes}
    if {rank["world"] for rank in ranks} != {request.ranks}:
        remedy = "mpi: launcher: srun with Open MPI needs --mpi=pmix; otherwise start with mpirun"
        return Check(AREA, "ranks", "failure", f"{where}, but each believes to be alone", remedy, facts)
    if len(nodes) != request.nodes:
        remedy = "check that the job holds as many nodes, and how the scheduler lists them"
        return Check(AREA, "ranks", "failure", f"{where}, not on {request.nodes} nodes", remedy, facts)
    worlds = {rank.get("mpi_world") for rank in ranks}
    if worlds == {None}:
        return Check(AREA, "ranks", "ok", f"{where}; without mpi4py MPI itself was not asked", facts=facts)
    if worlds != {request.ranks}:
        remedy = "mpi4py belongs to another MPI than the launcher: see the check of mpi4py"
        return Check(AREA, "ranks", "failure", f"{where}, but MPI counts {sorted(worlds, key=str)}", remedy, facts)
    return Check(AREA, "ranks", "ok", f"{where}; MPI joins them all", facts=facts)


def _shortened(argv: Sequence[str]) -> str:
    """The launch line as far as its mapping and binding."""
    end = argv.index("-x") if "-x" in argv else len(argv)
    return " ".join(argv[:end])


def judge(ranks: Sequence[Mapping[str, Any]], request: Placement) -> Iterator[Check]:
    """Each rank's CPUs against the request, after the ranks of its node have shared out what they were given.

    Only the topology that the ranks reported counts: they may run on other nodes than this process.
    """
    for node in sorted({rank["node"] for rank in ranks}):
        local = sorted((rank for rank in ranks if rank["node"] == node), key=lambda rank: rank["local_rank"])
        cores = {cpu: tuple(core) for rank in local for cpu, core in zip(rank["cpus"], rank["cores"], strict=True)}
        shares = affinity.share([rank["cpus"] for rank in local], request.cores_per_rank, cores)
        for number, rank in enumerate(local):
            actual = shares[number] if rank["may_confine"] else tuple(rank["cpus"])
            found = affinity.findings(request.cores_per_rank, rank["cpus"], shares, number, actual, cores)
            yield _rank(rank, actual, request.cores_per_rank, found)


def _rank(rank: Mapping[str, Any], actual: Sequence[int], requested: int, found: Sequence[affinity.Finding]) -> Check:
    given = f"the launcher allowed CPUs {spans(rank['cpus'])}"
    used = "" if list(actual) == rank["cpus"] else f", of which it keeps {spans(actual)}"
    message = f"on {rank['node']}, asked for {requested} core{'s' * (requested > 1)}: {given}{used}"
    facts = {"requested_cores": requested, "launcher_cpus": rank["cpus"], "allowed_cpus": list(actual)}
    name = f"rank {rank['rank']}"
    if not found:
        return Check(AREA, name, "ok", message, facts=facts)
    codes = ", ".join(finding.code.replace("_", " ") for finding in found)
    return Check(AREA, name, "warning", f"{message}: {codes}", found[0].advice, facts)


def spans(cpus: Sequence[int]) -> str:
    """``0-3,8``: numbers in order, neighbours joined."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
