"""Which GPU a rank gets, and what is refused."""

from __future__ import annotations

import pytest

from harness.errors import UserError
from harness.model.axes import Axes
from harness.runtime.devices import check_precision, gpu_index, own_mig_device, physical_gpu
from harness.runtime.interfaces import Ranks


def place(local_rank: int, local_world: int, gpus_per_rank: int, visible: int) -> int | None:
    axes = Axes(workload="dcgan_mnist", gpus_per_rank=gpus_per_rank, ranks_per_node=local_world)
    return gpu_index(axes, Ranks(local_rank, local_world, local_rank, local_world, "n1"), visible, "torch")


@pytest.mark.parametrize(
    ("local_rank", "local_world", "gpus_per_rank", "visible", "expected"),
    [
        (0, 1, 0, 4, None),
        (0, 1, 1, 1, 0),
        (0, 1, 1, 4, 0),
        (3, 4, 1, 4, 3),
        (3, 4, 1, 1, 0),  # the launcher gave each rank its own
    ],
)
def test_index(local_rank, local_world, gpus_per_rank, visible, expected):
    assert place(local_rank, local_world, gpus_per_rank, visible) == expected


@pytest.mark.parametrize(("local_rank", "local_world", "visible"), [(0, 1, 0), (2, 4, 2), (1, 2, 0)])
def test_no_gpu_left(local_rank, local_world, visible):
    with pytest.raises(UserError, match=rf"local rank {local_rank} of {local_world} on n1 needs a GPU.*sees {visible}"):
        place(local_rank, local_world, 1, visible)


def test_several_gpus_for_a_rank():
    with pytest.raises(UserError, match="gpus_per_rank: 1 and ranks_per_node: 4"):
        place(0, 2, 2, 4)


def is_taken(precision: str, on_gpu: bool) -> bool:
    try:
        check_precision(precision, on_gpu)
    except UserError:
        return False
    return True


@pytest.mark.parametrize("precision", ["tf32", "fp16"])
def test_precision_of_gpus(precision):
    assert is_taken(precision, on_gpu=True)
    with pytest.raises(UserError, match=f"{precision} needs a GPU"):
        check_precision(precision, on_gpu=False)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_precision_of_cpus(precision):
    assert is_taken(precision, on_gpu=False)
    assert is_taken(precision, on_gpu=True)


@pytest.mark.parametrize(
    ("visible", "uuids", "expected"),
    [
        (None, ["GPU-a", "GPU-b"], ["GPU-a", "GPU-b"]),
        ("1,0", ["GPU-a", "GPU-b"], ["GPU-b", "GPU-a"]),
        ("MIG-1, MIG-2", ["GPU-a"], ["MIG-1", "MIG-2"]),
        # one GPU for both, whoever it was that left but one
        (None, ["GPU-a"], ["GPU-a", "GPU-a"]),
        ("1", ["GPU-a", "GPU-b"], ["GPU-b", "GPU-b"]),
        ("GPU-b", ["GPU-a", "GPU-b"], ["GPU-b", "GPU-b"]),
        # not known: no NVML, an index beyond what it shows, fewer GPUs than ranks, none
        ("0,1", [], [None, None]),
        ("0,7", ["GPU-a"], ["GPU-a", None]),
        (None, [], [None, None]),
        ("", ["GPU-a", "GPU-b"], [None, None]),
    ],
)
def test_physical_gpu(visible, uuids, expected):
    assert [physical_gpu(local_rank, visible, uuids) for local_rank in range(2)] == expected


def test_physical_gpu_where_each_rank_is_confined_to_its_own():
    """Slurm with a control group for each task: all of them see device 0, and NVML shows each another one."""
    assert [physical_gpu(rank, "0", [uuid]) for rank, uuid in enumerate(["GPU-a", "GPU-b"])] == ["GPU-a", "GPU-b"]


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        ("MIG-a, MIG-b", ["MIG-a", "MIG-b", ""]),
        # CUDA sees these as they are
        ("MIG-a", [None] * 3),
        ("GPU-a,GPU-b", [None] * 3),
        ("0,1", [None] * 3),
        ("", [None] * 3),
        (None, [None] * 3),
    ],
)
def test_own_mig_device(visible, expected):
    assert [own_mig_device(local_rank, visible) for local_rank in range(3)] == expected
