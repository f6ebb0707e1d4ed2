"""Which GPU a rank trains on, and which precisions a device can compute in. Framework-free."""

from __future__ import annotations

from collections.abc import Sequence

from harness.catalog import GPU_PRECISIONS
from harness.errors import UserError
from harness.model.axes import Axes
from harness.runtime.interfaces import Ranks


def gpu_index(axes: Axes, ranks: Ranks, visible: int, framework: str) -> int | None:
    """Index, among the ``visible`` GPUs, of the one this rank trains on; None: it trains on the CPU.

    A launcher or scheduler may have given each rank its own single GPU through CUDA_VISIBLE_DEVICES; then that one
    is index 0 on every rank. Otherwise the ranks of a node take theirs in order of local rank.

    Raises:
        UserError: no GPU is left for this rank, or several are asked for one rank.
    """
    if axes.gpus_per_rank == 0:
        return None
    if axes.gpus_per_rank > 1:
        raise UserError(
            f"gpus_per_rank: {axes.gpus_per_rank}, but a rank of {axes.workload} trains on one GPU; "
            f"set gpus_per_rank: 1 and ranks_per_node: {axes.ranks_per_node * axes.gpus_per_rank}"
        )
    if visible == 1 and ranks.local_world > 1:
        return 0
    if ranks.local_rank < visible:
        return ranks.local_rank
    raise UserError(
        f"local rank {ranks.local_rank} of {ranks.local_world} on {ranks.node} needs a GPU, but {framework} sees "
        f"{visible}; check the job's GPU request, CUDA_VISIBLE_DEVICES and that {framework} is a CUDA build "
        "(or set gpus_per_rank: 0 to train on the CPU)"
    )


def physical_gpu(local_rank: int, visible: str | None, uuids: Sequence[str]) -> str | None:
    """UUID of the GPU that :func:`gpu_index` gives this rank; None where that cannot be told.

    Args:
        visible: the rank's CUDA_VISIBLE_DEVICES; None where unset.
        uuids: the GPUs that NVML shows the rank, in order of their PCI bus: those of its control group, where a
            scheduler confines devices. CUDA counts equal GPUs in that order, too.
    """
    every = [str(index) for index in range(len(uuids))]
    named = every if visible is None else [word.strip() for word in visible.split(",") if word.strip()]
    place = 0 if len(named) == 1 else local_rank
    if place >= len(named):
        return None
    if not named[place].isdigit():
        return named[place]
    index = int(named[place])
    return uuids[index] if index < len(uuids) else None


def own_mig_device(local_rank: int, visible: str | None) -> str | None:
    """CUDA_VISIBLE_DEVICES for this rank where its node's ranks were told of several MIG devices; None: as it is.

    A CUDA process sees only the first one that the variable names (NVIDIA Multi-Instance GPU User Guide, "CUDA Device
    Enumeration"), so the ranks would all train on it. Empty for a rank for which none is left.
    """
    named = [word.strip() for word in (visible or "").split(",") if word.strip()]
    if len(named) < 2 or not named[0].startswith("MIG-"):
        return None
    return named[local_rank] if local_rank < len(named) else ""


def check_precision(precision: str, on_gpu: bool) -> None:
    """Refuse a precision that the device cannot compute in.

    Raises:
        UserError: tf32 or fp16 on a CPU.
    """
    if precision in GPU_PRECISIONS and not on_gpu:
        raise UserError(f"precision: {precision} needs a GPU; on a CPU use fp32 or bf16, or set gpus_per_rank: 1")
