"""Launch lines: pure functions from a placement to the words before the program.

Slots, binding and refusals named here were tried on Open MPI 4.1 and 5.0, MPICH 5 (hydra) and Slurm 22.05.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from harness.errors import UserError
from harness.layout import DATA_DIR_VARIABLE
from harness.model.cluster import Cluster, Container
from harness.model.job import Placement


class Shell(str):
    """A word of a command line that is shell source as it stands, such as ``"$attempt_dir"``, quotes included."""

    __slots__ = ()


def quote(word: str) -> str:
    """``word`` as one word for the shell, whatever it contains; :class:`Shell` words pass as they are."""
    return str(word) if isinstance(word, Shell) else shlex.quote(word)


def launch_argv(cluster: Cluster, placement: Placement, hosts: str | None = None) -> list[str]:
    """The launcher and its arguments; the program's own words follow.

    ``hosts`` names a host file, one line per node, in the flavour's own form (:func:`hosts_line_format`); None
    where the launcher knows the allocation by itself.
    """
    build = _srun if cluster.mpi.launcher == "srun" else _FLAVOURS[cluster.mpi.flavour]
    return build(cluster, placement, hosts)


def needs_hosts(cluster: Cluster, placement: Placement) -> bool:
    """Whether the job must write a host file.

    Under PBS and Torque the node file is not enough: an Open MPI without tm support does not read it, and it has
    one line per chunk or per core, not per rank, unless select asks for ``mpiprocs``.
    """
    return placement.nodes > 1 and cluster.scheduler in ("pbs", "torque") and cluster.mpi.launcher == "mpirun"


def hosts_line_format(cluster: Cluster, placement: Placement) -> str:
    """printf format that makes a host-file line from a host name."""
    if cluster.mpi.flavour in ("openmpi4", "openmpi5"):
        return f"%s slots={placement.ranks_per_node}\\n"
    return f"%s:{placement.ranks_per_node}\\n"


def per_node_argv(cluster: Cluster, placement: Placement, hosts: str | None = None) -> list[str]:
    """The launcher for one unbound process on each node, such as a copy to node-local storage."""
    command, nodes = _command(cluster), str(placement.nodes)
    if cluster.mpi.launcher == "srun":
        return [
            command,
            f"--nodes={nodes}",
            f"--ntasks={nodes}",
            "--ntasks-per-node=1",
            "--cpu-bind=none",
            "--mpi=none",
        ]
    if cluster.mpi.flavour in ("openmpi4", "openmpi5"):
        argv = [command, "-np", nodes, "--map-by", "ppr:1:node", "--bind-to", "none"]
        return [*argv, *(["--hostfile", hosts] if hosts is not None else [])]
    return [command, "-n", nodes, "-ppn", "1", *(["-f", hosts] if hosts is not None else [])]


def binds_to_cores(cluster: Cluster, placement: Placement) -> bool:
    """Whether each rank can be bound to its own cores within one socket.

    Open MPI refuses ``socket:PE=n`` when a rank's cores do not fit into one socket or the ranks of a node do not
    all find room ("more cpus than are available"). The local engine confines a job by affinity and the ranks
    divide what they find, so there the launcher binds nothing.
    """
    if cluster.mpi.bind == "none" or cluster.scheduler == "local":
        return False
    ranks_per_socket = cluster.node.cores_per_socket // placement.cores_per_rank
    return ranks_per_socket * cluster.node.sockets >= placement.ranks_per_node


def passed_variables(cluster: Cluster, placement: Placement) -> list[str]:
    """Names of the variables that remote ranks must be given: the site's, and where harness and data lie."""
    staged = [DATA_DIR_VARIABLE] if placement.stage_from else []
    # On other nodes a daemon starts with a login's environment, without the modules loaded here.
    modules = ["PATH", "LD_LIBRARY_PATH"] if placement.nodes > 1 else []
    return [*modules, "PYTHONPATH", *staged, *sorted(cluster.mpi.environment)]


def _open_mpi(cluster: Cluster, placement: Placement, hosts: str | None) -> list[str]:
    # Open MPI 5 calls a socket a package and takes both names; 4.1 knows only socket.
    mapping, binding = "socket", "none"
    if binds_to_cores(cluster, placement):
        mapping, binding = f"socket:PE={placement.cores_per_rank}", "core"
    elif cluster.scheduler == "local":
        # Slots are physical cores, but a machine's own description may count hardware threads.
        mapping = "socket:OVERSUBSCRIBE"
    argv = [_command(cluster), "-np", str(placement.ranks), "--map-by", mapping, "--bind-to", binding]
    argv += ["--hostfile", hosts] if hosts is not None else []
    for name in passed_variables(cluster, placement):
        argv += ["-x", name]
    return [*argv, *cluster.mpi.options]


def _hydra(cluster: Cluster, placement: Placement, hosts: str | None) -> list[str]:
    argv = [_command(cluster), "-n", str(placement.ranks), "-ppn", str(placement.ranks_per_node)]
    argv += ["-f", hosts] if hosts is not None else []
    argv += ["-genvlist", ",".join(passed_variables(cluster, placement))]
    return argv


def _mpich(cluster: Cluster, placement: Placement, hosts: str | None) -> list[str]:
    argv = _hydra(cluster, placement, hosts)
    if binds_to_cores(cluster, placement):
        argv += ["-bind-to", f"core:{placement.cores_per_rank}", "-map-by", "socket"]
    else:
        argv += ["-bind-to", "none"]
    return [*argv, *cluster.mpi.options]


def _intel_mpi(cluster: Cluster, placement: Placement, hosts: str | None) -> list[str]:
    argv = _hydra(cluster, placement, hosts)
    if binds_to_cores(cluster, placement):
        # Domains of n cores, consecutive ones as far apart as can be: what map-by socket means elsewhere.
        pinning = {"I_MPI_PIN": "1", "I_MPI_PIN_CELL": "core"}
        pinning |= {"I_MPI_PIN_DOMAIN": str(placement.cores_per_rank), "I_MPI_PIN_ORDER": "scatter"}
    else:
        pinning = {"I_MPI_PIN": "0"}
    for name, value in pinning.items():
        argv += ["-genv", name, value]
    return [*argv, *cluster.mpi.options]


def _srun(cluster: Cluster, placement: Placement, hosts: str | None) -> list[str]:
    argv = [
        _command(cluster),
        f"--nodes={placement.nodes}",
        f"--ntasks={placement.ranks}",
        f"--ntasks-per-node={placement.ranks_per_node}",
        # Since Slurm 22.05 a step no longer inherits the job's --cpus-per-task.
        f"--cpus-per-task={placement.cores_per_rank}",
        f"--cpu-bind={'cores' if binds_to_cores(cluster, placement) else 'none'}",
        # Within a node, ranks go round the sockets, as with --map-by socket.
        "--distribution=block:cyclic",
        "--kill-on-bad-exit=1",
    ]
    if not any(option.startswith("--mpi") for option in cluster.mpi.options):
        # With pmi2 the ranks of Open MPI 5 each believe to be alone.
        argv.append("--mpi=pmix" if cluster.mpi.flavour.startswith("openmpi") else "--mpi=pmi2")
    return [*argv, *cluster.mpi.options]


def _command(cluster: Cluster) -> str:
    return cluster.mpi.command or cluster.mpi.launcher


_FLAVOURS: dict[str, Callable[[Cluster, Placement, str | None], list[str]]] = {
    "openmpi4": _open_mpi,
    "openmpi5": _open_mpi,
    "mpich": _mpich,
    "intelmpi": _intel_mpi,
}


def container_argv(container: Container, gpus: bool, binds: Sequence[str]) -> list[str]:
    """The wrapper that runs the program in a container on every rank, with ``binds`` visible at their own paths.

    Raises:
        UserError: where a path cannot be written in the ``--bind`` option, whose separators are ``:`` and ``,``.
    """
    argv = [container.runtime, "exec", *(["--nv"] if gpus else [])]
    for path in binds:
        if not isinstance(path, Shell) and set(path) & set(":,"):
            raise UserError(f"{path!r} cannot be bound into a container: its name holds ':' or ','; rename it")
        argv += ["--bind", path]
    return [*argv, *container.options, container.image]
