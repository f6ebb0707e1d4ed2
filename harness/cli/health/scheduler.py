"""The batch system: its commands, its server, and whether the cluster's file agrees with it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from harness.cli.health.check import Check, Patient, Status
from harness.errors import nearest
from harness.jobs import shell
from harness.jobs.survey.ask import NoAnswer, ask
from harness.jobs.survey.facts import COMMANDS, QueueFacts, SiteFacts
from harness.jobs.survey.pbs import lacks_throttle
from harness.model.cluster import Cluster, Queue
from harness.units import format_duration

AREA = "scheduler"
_TIMEOUT_S = 60.0


def check(patient: Patient) -> Iterator[Check]:
    """Commands, then the server's own description against the cluster's file."""
    cluster = patient.cluster
    if cluster.scheduler == "local":
        yield Check(AREA, "commands", "ok", "the embedded local engine needs none")
        return
    needed = COMMANDS[cluster.scheduler]
    absent = [command for command in needed if shutil.which(command) is None]
    if absent:
        remedy = "log in to a node from which jobs are submitted, load the site's module, or extend PATH"
        status: Status = "note" if patient.in_job else "failure"
        yield Check(AREA, "commands", status, f"not in PATH: {', '.join(absent)}", remedy)
        return
    yield Check(AREA, "commands", "ok", f"{', '.join(needed)} are in PATH")
    patient.say("asking the scheduler")
    try:
        site = ask(cluster.scheduler, lambda argv: shell.run(argv, _TIMEOUT_S))
    except NoAnswer as error:
        yield Check(AREA, "server", "failure", str(error), "try again later; ask the site if it stays so")
        return
    yield _server(cluster, site)
    yield from _history(cluster, site)
    yield from _queues(cluster, site)
    yield from _node(cluster, site)


def _server(cluster: Cluster, site: SiteFacts) -> Check:
    facts = {"name": site.name, "version": site.version, "nodes": len(site.nodes)}
    message = f"{site.name or 'the server'} answers: {site.scheduler} {site.version}, {len(site.nodes)} nodes"
    if site.scheduler != cluster.scheduler:
        remedy = f"write scheduler: {site.scheduler} in the cluster's file"
        return Check(AREA, "server", "failure", f"{message}; the file says {cluster.scheduler}", remedy, facts)
    return Check(AREA, "server", "ok", message, facts=facts)


def _history(cluster: Cluster, site: SiteFacts) -> Iterator[Check]:
    """Whether the scheduler can tell how a job ended."""
    settings = site.settings
    if site.scheduler == "slurm":
        if settings.get("AccountingStorageType", "").endswith("/none"):
            age = settings.get("MinJobAge", "some time")
            message = f"no accounting, so sacct knows nothing; ended jobs are remembered for {age}"
            remedy = "nothing needs doing: the runs' own evidence says how they ended; keep `harness wait` running"
            yield Check(AREA, "history", "note", message, remedy)
        else:
            yield Check(AREA, "history", "ok", "accounting is on: sacct tells how jobs ended")
    elif site.scheduler == "pbs":
        if settings.get("job_history_enable", "False") != "True":
            remedy = (
                "nothing needs doing: the runs' own evidence says how they ended; a site may set job_history_enable"
            )
            yield Check(AREA, "history", "note", "the server forgets jobs that have ended", remedy)
        else:
            yield Check(AREA, "history", "ok", f"ended jobs are kept for {settings.get('job_history_duration', '?')}")
        if cluster.directives.array_throttle and lacks_throttle(site.version):
            remedy = "write directives: {array_throttle: false} in the cluster's file"
            message = f"PBS {site.version} does not know the throttle of job arrays (-J 0-9%2)"
            yield Check(AREA, "array throttle", "warning", message, remedy)


def _queues(cluster: Cluster, site: SiteFacts) -> Iterator[Check]:
    """The queues that the file names, as the server has them."""
    names = list(cluster.queues) or [name for name in [cluster.queue] if name]
    for name in names:
        facts = site.queue(name)
        if facts is None:
            remedy = nearest(name, [queue.name for queue in site.queues])
            yield Check(AREA, f"queue {name}", "failure", "the server has no such queue", remedy)
        elif not facts.accepts:
            message = "it takes no jobs or starts none now"
            yield Check(AREA, f"queue {name}", "warning", message, "choose another with --queue, or wait")
        else:
            wrong = list(_disagreements(cluster.queues.get(name, Queue()), facts))
            remedy = f"correct queues: {name}: in the cluster's file"
            if wrong:
                yield Check(AREA, f"queue {name}", "warning", "; ".join(wrong), remedy)
            else:
                yield Check(AREA, f"queue {name}", "ok", "open, and the file's limits are within its own")
    if not names and site.default_queue is None:
        remedy = f"name one as queue: in the cluster's file; {', '.join(queue.name for queue in site.queues)}"
        yield Check(AREA, "queue", "warning", "the file names no queue, and the server has no default", remedy)


def _disagreements(file: Queue, server: QueueFacts) -> Iterator[str]:
    """Limits of the file that lie beyond the server's own, so that jobs would be refused or never start."""
    if server.max_walltime_s and (file.max_walltime_s or 0) > server.max_walltime_s:
        yield (
            f"max_walltime is {format_duration(file.max_walltime_s or 0)} in the file, "
            f"{format_duration(server.max_walltime_s)} at the server"
        )
    if server.max_nodes and (file.max_nodes or 0) > server.max_nodes:
        yield f"max_nodes is {file.max_nodes} in the file, {server.max_nodes} at the server"
    if server.min_nodes and server.min_nodes > file.min_nodes:
        yield f"min_nodes is {file.min_nodes} in the file, {server.min_nodes} at the server"
    if server.max_array_size and (file.max_array_size or 0) > server.max_array_size:
        yield f"max_array_size is {file.max_array_size} in the file, {server.max_array_size} at the server"


def _node(cluster: Cluster, site: SiteFacts) -> Iterator[Check]:
    """Whether some node of the queue has what the file says a node has."""
    nodes = site.nodes_of(cluster.queue or site.default_queue)
    if not nodes:
        return
    asked = cluster.node.cores * cluster.directives.ncpus_per_core
    fitting = [node for node in nodes if node.cpus >= asked and node.gpus >= cluster.node.gpus]
    said = f"{asked} {'cores' if asked == cluster.node.cores else 'hardware threads'} and {cluster.node.gpus} GPUs"
    facts = {"nodes": len(nodes), "fitting": len(fitting)}
    if fitting:
        message = f"{len(fitting)} of {len(nodes)} nodes have the {said} of the file, or more"
        yield Check(AREA, "nodes", "ok", message, facts=facts)
    else:
        best = max(nodes, key=lambda node: (node.gpus, node.cpus))
        message = f"none of {len(nodes)} nodes has {said}; {best.name} has {best.cpus} and {best.gpus}"
        remedy = "correct node: in the cluster's file; harness init shows what the scheduler tells"
        yield Check(AREA, "nodes", "warning", message, remedy, facts)
