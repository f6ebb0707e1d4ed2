from __future__ import annotations

import pytest

from harness.errors import UserError
from harness.runtime.interfaces import Ranks
from harness.runtime.ranks import detect

OPENMPI = {
    "OMPI_COMM_WORLD_RANK": "5",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "4",
}
HYDRA = {"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4"}
SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_LOCALID": "1",
    "SLURM_STEP_ID": "0",
    "SLURM_NODEID": "1",
}
FIFTH = Ranks(rank=5, world=8, local_rank=1, local_world=4, node="vm")


@pytest.mark.parametrize(
    "environ",
    [
        OPENMPI,
        HYDRA,
        {"PMI_RANK": "5", "PMI_SIZE": "8", "PALS_LOCAL_RANKID": "1", "PALS_LOCAL_SIZE": "4"},
        {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "4(x2)"},
        {**SRUN, "SLURM_STEP_TASKS_PER_NODE": "2,4,2"},
        OPENMPI | HYDRA,
        # what the batch shell of Slurm leaves to ranks that mpirun starts
        OPENMPI | {"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_LOCALID": "0"},
        # mpirun's daemon on a further node is itself a task of a step
        OPENMPI | {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "1", "SLURM_LOCALID": "0"},
    ],
)
def test_the_fifth_of_eight_on_the_second_node(environ: dict[str, str]) -> None:
    assert detect(environ, "vm") == FIFTH


@pytest.mark.parametrize("environ", [{}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"}])
def test_without_a_launcher_it_is_alone(environ: dict[str, str]) -> None:
    assert detect(environ, "vm") == Ranks(rank=0, world=1, local_rank=0, local_world=1, node="vm")


def test_ranks_fill_node_after_node_where_no_local_rank_is_named() -> None:
    found = detect({"PMI_RANK": "5", "PMI_SIZE": "8"}, "vm", ranks_per_node=4)
    assert (found.local_rank, found.local_world) == (1, 4)


def test_srun_with_pmi2_names_the_local_rank_by_slurms_variables() -> None:
    """Ranks dealt to two nodes in turn: 1, 3, 5 and 7 are on the second one."""
    dealt = SRUN | {"PMI_RANK": "5", "PMI_SIZE": "8", "SLURM_LOCALID": "2", "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}
    found = detect(dealt, "vm")
    assert (found.local_rank, found.local_world) == (2, 4)
    # a task of another launcher's step
    assert detect(dealt | {"SLURM_PROCID": "1", "SLURM_LOCALID": "0"}, "vm").local_rank == 1


def test_virtual_nodes_of_one_host_are_told_apart() -> None:
    assert detect(OPENMPI | {"SLURMD_NODENAME": "n2"}, "vm").node == "n2"


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (OPENMPI | HYDRA | {"PMI_RANK": "0"}, "Open MPI says rank 5 of 8, PMI says rank 0 of 8"),
        (OPENMPI | HYDRA | {"PMI_SIZE": "1", "PMI_RANK": "0"}, "two launchers are nested"),
        ({"OMPI_COMM_WORLD_RANK": "1"}, "OMPI_COMM_WORLD_SIZE is not"),
        (OPENMPI | {"OMPI_COMM_WORLD_SIZE": "many"}, "'many' is no number"),
        (OPENMPI | {"OMPI_COMM_WORLD_RANK": "8"}, "impossible ranks: rank 8 of 8"),
        (OPENMPI | {"OMPI_COMM_WORLD_LOCAL_RANK": "4"}, "local rank 4 of 4"),
    ],
)
def test_contradictions_are_refused(environ: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        detect(environ, "vm")
