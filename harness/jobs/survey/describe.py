"""From what was found to the text of a cluster file. What could not be known is marked ``# ?``."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence

from harness.jobs.survey.facts import NodeFacts, QueueFacts, SiteFacts, kinds
from harness.jobs.survey.look import Surroundings
from harness.jobs.survey.pbs import lacks_throttle
from harness.units import format_duration

MARK = "# ?"
_GIB = 1024**3
_MIB = 1024**2
_DEFAULT_MEMORY_BYTES = 16 * _GIB
_PLAIN = re.compile(r"[A-Za-z/$][\w./$@+-]*")
_AMBIGUOUS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "auto"}
_MOST_MODULES = 24
_UNPRINTABLE = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ufeff\\ufffe\\uffff]")


def word(text: str) -> str:
    """A text as a YAML scalar: quoted wherever a reader of YAML could take it for something else."""
    if _PLAIN.fullmatch(text) and text.lower() not in _AMBIGUOUS:
        return text
    return _UNPRINTABLE.sub(lambda character: f"\\u{ord(character[0]):04x}", json.dumps(text, ensure_ascii=False))


def cluster_file(name: str, found: Surroundings, queue: str | None = None) -> str:
    """The file's text; ``queue`` None: the site's default."""
    site = found.site
    body = [*_heading(name, found), *(_batch(name, site, queue) if site else _local(found)), *_rest(found, site)]
    # words are escaped already, so that only comments can hold what YAML forbids
    return "".join(_UNPRINTABLE.sub(" ", line) + "\n" for line in body)


def marks(text: str) -> list[tuple[int, str]]:
    """(line number from 1, remark) of everything marked."""
    lines = enumerate(text.splitlines(), 1)
    return [(number, line.partition(MARK)[2].strip()) for number, line in lines if MARK in line]


def _heading(name: str, found: Surroundings) -> Iterator[str]:
    yield f"# {name}: written by harness init on {found.host}."
    yield "# What it could not know is marked with a question mark: correct it, then delete the mark."
    yield f"# Then      harness doctor --cluster {name}"
    yield f"name: {word(name)}"


def _local(found: Surroundings) -> Iterator[str]:
    yield "description: this machine, through the embedded local engine"
    yield "scheduler: local            # jobs run here, under no batch system"
    yield "nodes: 1"
    now = ""
    if found.processors:
        p = found.processors
        now = f"  # {p.model}, {p.sockets} × {p.cores_per_socket} cores; {len(found.gpus)} GPUs"
    yield f"node: auto{now}"


def _batch(name: str, site: SiteFacts, queue: str | None) -> Iterator[str]:
    chosen = queue or site.default_queue or next((q.name for q in site.queues if q.accepts), None)
    nodes = site.nodes_of(chosen)
    yield f"description: {word(f'{name}, {site.scheduler} {site.version}')}"
    yield f"scheduler: {site.scheduler}"
    facts = site.queue(chosen) if chosen else None
    yield f"nodes: {_most_nodes(facts, nodes)}{'' if nodes else f'  {MARK} nodes at most in one job'}"
    yield from _node(kinds(nodes), chosen)
    yield ""
    yield f"# account: my-account       {MARK} charged for jobs (-A); some sites refuse jobs without one"
    if site.scheduler == "pbs":
        yield f"# project: my-project       {MARK} PBS -P, at some sites"
    if chosen:
        yield f"queue: {word(chosen)}"
    else:
        yield f"# queue: name               {MARK} the scheduler names no default queue"
    yield from _queues(site)
    yield from _memory(site, nodes)
    yield from _directives(site, nodes)


def _most_nodes(queue: QueueFacts | None, nodes: Sequence[NodeFacts]) -> int:
    limits = [n for n in (queue.max_nodes if queue else None, len(nodes) or None) if n]
    return min(limits) if limits else 1


def _node(groups: Sequence[Sequence[NodeFacts]], queue: str | None) -> Iterator[str]:
    if not groups:
        yield f"node: {{sockets: 2, cores_per_socket: 16, gpus: 0}}  {MARK} the scheduler tells of no nodes"
        return
    group = groups[0]
    node, memory = group[0], [n.memory_bytes for n in group if n.memory_bytes]
    sockets = node.sockets or (2 if node.cpus % 2 == 0 and node.cpus >= 8 else 1)
    cores = node.cores_per_socket or max(1, node.cpus // sockets)
    fields = [f"sockets: {sockets}", f"cores_per_socket: {cores}", f"gpus: {node.gpus}"]
    fields += [f"gpu_model: {word(node.gpu_type)}"] if node.gpu_type else []
    fields += [f"memory: {min(memory) // _MIB}mb"] if memory else []
    yield f"node: {{{', '.join(fields)}}}"
    where = f" of {queue}" if queue else ""
    yield f"  # {len(group)} of {sum(map(len, groups))} nodes{where} are such: {_names(group)}"
    for other in groups[1:4]:
        yield f"  # others: {len(other)} with {other[0].cpus} CPUs and {_gpus(other[0])}: {_names(other)}"
    if len(groups) > 1:
        yield f"  {MARK} a job may land on any of them: choose a queue of equal nodes, or select by directives"
    if node.sockets is None:
        yield f"  {MARK} the scheduler tells of {node.cpus} CPUs, not of sockets: see lscpu on a compute node"
    if node.cores_per_socket is None:
        threads = "; of threads see ncpus_per_core in docs/clusters.md"
        yield f"  {MARK} are these {node.cpus} CPUs cores, or hardware threads? Count cores only{threads}"
    if not memory:
        yield f"  {MARK} memory: 256gb, say; the scheduler does not tell"


def _gpus(node: NodeFacts) -> str:
    return f"{node.gpus} GPUs{f' ({node.gpu_type})' if node.gpu_type else ''}" if node.gpus else "no GPU"


def _names(nodes: Sequence[NodeFacts]) -> str:
    names = [node.name for node in nodes]
    return ", ".join(names if len(names) <= 4 else [*names[:2], "…", names[-1]])


def _queues(site: SiteFacts) -> Iterator[str]:
    usable = [queue for queue in site.queues if queue.accepts]
    if not usable:
        return
    yield "queues:"
    for queue in usable:
        remark = f"  # feeds {', '.join(queue.routes_to)}, whose limits hold" if queue.routes_to else ""
        yield f"  {word(queue.name)}: {{{', '.join(_limits(queue))}}}{remark}"
    if site.scheduler == "slurm":
        yield f"  {MARK} limits of accounts and qualities of service are not among these: sacctmgr show qos shows them"
    elif any(queue.max_walltime_s is None for queue in usable):
        yield f"  {MARK} no limit of time is known where none stands; the site may refuse long jobs all the same"


def _limits(queue: QueueFacts) -> Iterator[str]:
    if queue.max_walltime_s:
        yield f'max_walltime: "{format_duration(queue.max_walltime_s)}"'
    if queue.default_walltime_s:
        yield f'default_walltime: "{format_duration(queue.default_walltime_s)}"'
    if (queue.min_nodes or 1) > 1:
        yield f"min_nodes: {queue.min_nodes}"
    for name in ("max_nodes", "max_cores_per_node", "max_queued_jobs", "max_array_size"):
        if value := getattr(queue, name):
            yield f"{name}: {value}"
    if queue.max_memory_bytes:
        yield f"max_memory: {queue.max_memory_bytes // _MIB}mb"


def _memory(site: SiteFacts, nodes: Sequence[NodeFacts]) -> Iterator[str]:
    known = [node.memory_bytes for node in nodes if node.memory_bytes]
    asked = min([_DEFAULT_MEMORY_BYTES, *(count // 2 for count in known)])
    words = [f"{name}={site.settings[name]}" for name in ("DefMemPerCPU", "DefMemPerNode") if name in site.settings]
    why = f"; the scheduler's own: {', '.join(words)}" if words else ""
    yield f"default_memory: {asked // _MIB}mb     # per node, where the sweep names none{why}"


def _directives(site: SiteFacts, nodes: Sequence[NodeFacts]) -> Iterator[str]:
    if site.scheduler == "torque":
        yield "directives: {style: nodes}"
    elif site.scheduler == "pbs":
        if lacks_throttle(site.version):
            yield f"directives: {{array_throttle: false}}  # PBS {site.version} does not know -J 0-9%2"
        yield f"# directives: {{place: scatter}}  {MARK} some sites need -l place=, filesystems= or select_extra"
    elif len({node.gpu_type for node in nodes if node.gpus}) > 1:
        types = ", ".join(sorted({node.gpu_type for node in nodes if node.gpu_type}))
        yield f"# directives: {{gpu_type: …}}  {MARK} nodes have GPUs of several types: {types}"


def _rest(found: Surroundings, site: SiteFacts | None) -> Iterator[str]:
    yield ""
    yield from _storage(found, site)
    yield ""
    yield from _environment(found, site)
    yield from _mpi(found, site)


def _storage(found: Surroundings, site: SiteFacts | None) -> Iterator[str]:
    yield "storage:"
    yield "  hpctmp:"
    place, how = found.shared_place
    if site is None:
        yield f"    path: {word(place + '/dl-batch-harness') if place else 'results/data/hpctmp'}"
    elif place:
        yield f"    path: {word(place + '/dl-batch-harness')}  {MARK} {how}; must be visible on compute nodes"
    else:
        yield f"    path: $HOME/dl-batch-harness/data  {MARK} no faster shared file system was found; name it"
    yield "    description: shared file system"
    yield "  scratch:"
    if site is None:
        yield "    path: results/data/scratch"
    else:
        yield f"    path: /tmp/$USER          {MARK} the nodes' own disk; at some sites $TMPDIR or /local"
    yield "    scope: node             # visible on its own node alone, so the job stages the data"
    yield "    stage_from: hpctmp"
    yield "    description: local disk of each node"


def _environment(found: Surroundings, site: SiteFacts | None) -> Iterator[str]:
    if site is None:
        yield "python: auto                # the interpreter that runs the harness"
        return
    if found.modules:
        shown = ", ".join(found.modules[:_MOST_MODULES]) + (", …" if len(found.modules) > _MOST_MODULES else "")
        yield from textwrap.wrap(
            f"modules that may be wanted: {shown}", 110, initial_indent="# ", subsequent_indent="#   "
        )
        yield f"# modules: [{word(found.modules[0])}]  {MARK} loaded in this order in each job"
    if found.container:
        yield f"# container: {{runtime: {found.container}, image: …}}  # wraps the program on every rank"
    yield f"# conda: dl-batch-harness   {MARK} name or path of an environment made from environment.yml"
    seen = "lies on a shared file system" if found.python_is_shared else "must be visible on compute nodes"
    yield f"python: {word(found.python)}  {'#' if found.python_is_shared else MARK} this one; it {seen}"


def _mpi(found: Surroundings, site: SiteFacts | None) -> Iterator[str]:
    flavour = found.launcher.flavour if found.launcher else None
    bind = ["bind: none"] if site is None else []
    if flavour:
        remark = f"  # {found.launcher}, {found.launcher_path}"
        yield f"mpi: {{{', '.join([f'flavour: {flavour}', *bind])}}}{remark}"
    else:
        remark = "no mpirun in PATH here: openmpi4, openmpi5, mpich or intelmpi, by the module or environment"
        yield f"mpi: {{{', '.join(['flavour: openmpi5', *bind])}}}  {MARK} {remark}"
