"""Launch lines, word by word, of every MPI flavour."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from jobs_support import make_cluster, make_placement

from harness.errors import UserError
from harness.jobs.launchers import (
    Shell,
    container_argv,
    hosts_line_format,
    launch_argv,
    needs_hosts,
    per_node_argv,
    quote,
)
from harness.model.cluster import Container, Mpi, NodeType


def line(mpi: Mpi, scheduler: str = "slurm", hosts: str | None = None, **placement: object) -> str:
    cluster = make_cluster(scheduler, mpi)
    return " ".join(launch_argv(cluster, make_placement(**placement), hosts))


@pytest.mark.parametrize("flavour", ["openmpi4", "openmpi5"])
def test_open_mpi_binds_each_rank_to_its_cores(flavour: str) -> None:
    got = line(Mpi(flavour=flavour), ranks_per_node=4, cores_per_node=40)
    assert got == "mpirun -np 4 --map-by socket:PE=10 --bind-to core -x PYTHONPATH"


def test_open_mpi_on_several_nodes_passes_paths_and_hosts() -> None:
    mpi = Mpi(options=("--mca", "btl", "^openib"), environment={"NCCL_DEBUG": "INFO"}, command="/opt/mpi/bin/mpirun")
    got = line(mpi, "pbs", hosts="/a/hosts", nodes=2, ranks_per_node=4, cores_per_node=40)
    assert got == (
        "/opt/mpi/bin/mpirun -np 8 --map-by socket:PE=10 --bind-to core --hostfile /a/hosts "
        "-x PATH -x LD_LIBRARY_PATH -x PYTHONPATH -x NCCL_DEBUG --mca btl ^openib"
    )


@pytest.mark.parametrize(
    ("ranks", "cores", "binds"),
    [
        (1, 20, True),  # one rank fills a socket
        (1, 21, False),  # one rank spans both
        (2, 40, True),
        (3, 45, False),  # 15 cores each: a socket takes one rank, three do not fit
        (4, 40, True),
        (40, 40, True),
    ],
)
def test_binding_is_asked_for_only_where_open_mpi_can_grant_it(ranks: int, cores: int, binds: bool) -> None:
    got = line(Mpi(), ranks_per_node=ranks, cores_per_node=cores)
    expected = f"socket:PE={cores // ranks} --bind-to core" if binds else "socket --bind-to none"
    assert got == f"mpirun -np {ranks} --map-by {expected} -x PYTHONPATH"


def test_a_site_that_confines_jobs_itself_binds_nothing() -> None:
    assert line(Mpi(bind="none"), ranks_per_node=2) == "mpirun -np 2 --map-by socket --bind-to none -x PYTHONPATH"


def test_the_local_engine_confines_so_nothing_is_bound_and_threads_count_as_cores() -> None:
    got = line(Mpi(bind="core"), "local", ranks_per_node=2)
    assert got == "mpirun -np 2 --map-by socket:OVERSUBSCRIBE --bind-to none -x PYTHONPATH"


def test_staged_data_are_named_to_the_ranks() -> None:
    got = line(Mpi(), stage_from="/hpctmp/data/mnist")
    assert got.endswith("-x PYTHONPATH -x HARNESS_DATA_DIR")


def test_mpich() -> None:
    assert line(Mpi(flavour="mpich"), ranks_per_node=4, cores_per_node=40) == (
        "mpirun -n 4 -ppn 4 -genvlist PYTHONPATH -bind-to core:10 -map-by socket"
    )
    assert line(Mpi(flavour="mpich", bind="none", options=("-v",)), "torque", hosts="h", nodes=2) == (
        "mpirun -n 2 -ppn 1 -f h -genvlist PATH,LD_LIBRARY_PATH,PYTHONPATH -bind-to none -v"
    )


def test_intel_mpi() -> None:
    assert line(Mpi(flavour="intelmpi"), ranks_per_node=4, cores_per_node=40) == (
        "mpirun -n 4 -ppn 4 -genvlist PYTHONPATH -genv I_MPI_PIN 1 -genv I_MPI_PIN_CELL core "
        "-genv I_MPI_PIN_DOMAIN 10 -genv I_MPI_PIN_ORDER scatter"
    )
    assert line(Mpi(flavour="intelmpi", bind="none")) == "mpirun -n 1 -ppn 1 -genvlist PYTHONPATH -genv I_MPI_PIN 0"


def test_srun() -> None:
    assert line(Mpi(launcher="srun"), nodes=2, ranks_per_node=4, cores_per_node=40) == (
        "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpus-per-task=10 --cpu-bind=cores "
        "--distribution=block:cyclic --kill-on-bad-exit=1 --mpi=pmix"
    )
    assert line(Mpi(launcher="srun", flavour="mpich", bind="none")).endswith(
        "--cpu-bind=none --distribution=block:cyclic --kill-on-bad-exit=1 --mpi=pmi2"
    )
    assert line(Mpi(launcher="srun", options=("--mpi=openmpi",))).endswith("--kill-on-bad-exit=1 --mpi=openmpi")


def test_one_process_per_node() -> None:
    placement = make_placement(nodes=3, ranks_per_node=4, cores_per_node=40)
    found = {
        "openmpi5": per_node_argv(make_cluster("pbs", Mpi()), placement, "h"),
        "mpich": per_node_argv(make_cluster("pbs", Mpi(flavour="mpich")), placement, "h"),
        "srun": per_node_argv(make_cluster("slurm", Mpi(launcher="srun")), placement),
    }
    assert {name: " ".join(argv) for name, argv in found.items()} == {
        "openmpi5": "mpirun -np 3 --map-by ppr:1:node --bind-to none --hostfile h",
        "mpich": "mpirun -n 3 -ppn 1 -f h",
        "srun": "srun --nodes=3 --ntasks=3 --ntasks-per-node=1 --cpu-bind=none --mpi=none",
    }


def test_a_host_file_is_needed_on_several_nodes_of_pbs_alone() -> None:
    one, two = make_placement(), make_placement(nodes=2, ranks_per_node=2)
    needed = {
        (scheduler, placement.nodes)
        for scheduler in ("local", "pbs", "torque", "slurm")
        for placement in (one, two)
        if needs_hosts(make_cluster(scheduler), placement)
    }
    assert needed == {("pbs", 2), ("torque", 2)}
    assert hosts_line_format(make_cluster("pbs"), two) == "%s slots=2\\n"
    assert hosts_line_format(make_cluster("pbs", Mpi(flavour="mpich")), two) == "%s:2\\n"


def test_container() -> None:
    container = Container(runtime="apptainer", image="/app/my image.sif", options=("--cleanenv",))
    argv = container_argv(container, gpus=True, binds=["/home/u", Shell('"$x"')])
    assert [quote(word) for word in argv] == [
        *("apptainer", "exec", "--nv", "--bind", "/home/u", "--bind", '"$x"', "--cleanenv", "'/app/my image.sif'")
    ]
    assert "--nv" not in container_argv(container, gpus=False, binds=[])


@pytest.mark.parametrize("path", ["/a:b", "/a,b"])
def test_a_path_that_a_container_cannot_bind_is_refused(path: str) -> None:
    with pytest.raises(UserError, match="cannot be bound into a container"):
        container_argv(Container(runtime="singularity", image="i"), gpus=False, binds=[path])


MPIRUN = Path(sys.executable).parent / "mpirun"
needs_mpirun = pytest.mark.skipif(not MPIRUN.exists(), reason="no mpirun in this environment")


def launch(argv: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"} if os.geteuid() == 0 else {}
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=180, env={**os.environ, **root, "PYTHONPATH": "x", **environment}
    )


@pytest.mark.mpi
@needs_mpirun
@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_the_local_line_starts_its_ranks_even_on_fewer_cores(ranks: int) -> None:
    cluster = make_cluster("local", Mpi(command=str(MPIRUN)))
    argv = launch_argv(cluster, make_placement(ranks_per_node=ranks, cores_per_node=ranks))
    done = launch([*argv, "sh", "-c", "echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE $PYTHONPATH"])
    assert sorted(done.stdout.split("\n")) == ["", *(f"{rank}/{ranks} x" for rank in range(ranks))], done.stderr


@pytest.mark.mpi
@needs_mpirun
@pytest.mark.parametrize(("ranks", "cores"), [(1, 8), (1, 9), (2, 16), (3, 15), (4, 16), (16, 16)])
def test_open_mpi_accepts_what_we_ask_of_a_node_with_two_sockets_of_eight(ranks: int, cores: int) -> None:
    node = NodeType(sockets=2, cores_per_socket=8)
    cluster = make_cluster("slurm", Mpi(command=str(MPIRUN)), node=node)
    argv = launch_argv(cluster, make_placement(ranks_per_node=ranks, cores_per_node=cores))
    done = launch([*argv, "--display", "map", "--do-not-launch", "true"], HWLOC_SYNTHETIC="pack:2 core:8 pu:1")
    assert done.returncode == 0, done.stderr + done.stdout
    assert done.stdout.count("Data for proc") == ranks
    bound = "socket:PE" in " ".join(argv)
    assert ("Binding: package" in done.stdout) is bound


@pytest.mark.mpi
@needs_mpirun
def test_a_rank_bound_to_a_core_has_that_core_alone() -> None:
    cluster = make_cluster("slurm", Mpi(command=str(MPIRUN)), node=NodeType(cores_per_socket=2))
    argv = launch_argv(cluster, make_placement(ranks_per_node=1, cores_per_node=1))
    done = launch([*argv, "grep", "Cpus_allowed_list", "/proc/self/status"])
    (allowed,) = [text.split()[-1] for text in done.stdout.splitlines()]
    assert allowed.isdigit()
