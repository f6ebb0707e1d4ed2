"""Which GPU a rank trains on, and which precisions a device can compute in. Framework-free."""

from __future__ import annotations

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


def check_precision(precision: str, on_gpu: bool) -> None:
    """Refuse a precision that the device cannot compute in.

    Raises:
        UserError: tf32 or fp16 on a CPU.
    """
    if precision in GPU_PRECISIONS and not on_gpu:
        raise UserError(f"precision: {precision} needs a GPU; on a CPU use fp32 or bf16, or set gpus_per_rank: 1")
