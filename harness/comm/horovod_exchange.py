"""Gradient averaging with Horovod, for TensorFlow and torch.

Only Horovod's collective calls are used. ``hvd.DistributedOptimizer`` silently averages nothing under Keras 3, whose
optimizers no longer call the methods that it replaces.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import metadata
from typing import Any

from harness.comm.buffers import float32_arrays, join_bytes, split, split_bytes
from harness.errors import UserError
from harness.model.job import RunSpec
from harness.runtime.interfaces import Ranks

#: read by Open MPI when it starts: whether waiting gives up the core to others (ompi_info --param mpi all)
YIELD = "OMPI_MCA_mpi_yield_when_idle"


class HorovodExchange(ABC):
    """What both frameworks share. ``hvd`` is ``horovod.torch`` or ``horovod.tensorflow``, initialised."""

    name = "horovod"

    def __init__(self, hvd: Any, numpy: Any, framework: Any):
        self._hvd, self._numpy, self._framework = hvd, numpy, framework

    @abstractmethod
    def average_tensors(self, tensors: Sequence[Any]) -> list[Any]:
        """Mean over ranks of each tensor, in one fused message."""

    @abstractmethod
    def _average_array(self, flat: Any) -> Any: ...

    @abstractmethod
    def _broadcast_array(self, flat: Any) -> Any: ...

    def average(self, arrays: Sequence[Any]) -> list[Any]:
        """Mean over ranks of each float32 array; the results share one new buffer."""
        arrays = float32_arrays(self._numpy, arrays)
        if not sum(array.size for array in arrays):
            return [array.copy() for array in arrays]
        flat = self._numpy.concatenate([array.reshape(-1) for array in arrays])
        return split(self._average_array(flat), arrays)

    def broadcast(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of rank 0 on every rank; types and shapes are equal everywhere, any type is allowed."""
        buffer = join_bytes(self._numpy, arrays)
        return split_bytes(self._numpy, self._broadcast_array(buffer) if buffer.size else buffer, arrays)

    def gather_text(self, text: str) -> list[str]:
        texts: list[str] = self._hvd.allgather_object(text)
        return texts

    def barrier(self) -> None:
        """An averaged number: Horovod's own barrier exists for torch only."""
        self._average_array(self._numpy.zeros(1, self._numpy.float32))

    def abort(self, code: int) -> None:
        """End this process without MPI's farewell: its launcher then ends the other ranks."""
        os._exit(code)

    def world(self) -> tuple[int, int]:
        """``(ranks, this rank)`` as Horovod sees them."""
        return self._hvd.size(), self._hvd.rank()

    def versions(self) -> dict[str, str]:
        """``horovod_operations``: what carries tensors on a GPU; without nccl they pass through host memory."""
        operations = "nccl" if self._hvd.nccl_built() else "mpi" if self._hvd.mpi_built() else "gloo"
        yields = os.environ.get(YIELD, "0")
        return {"horovod": metadata.version("horovod"), "horovod_operations": operations, "mpi_yield_when_idle": yields}


class TorchHorovod(HorovodExchange):
    """Averages torch tensors on the device that holds them."""

    def average_tensors(self, tensors: Sequence[Any]) -> list[Any]:
        """In place, and also returned."""
        averaged: list[Any] = self._hvd.grouped_allreduce_(list(tensors), op=self._hvd.Average, name="gradients")
        return averaged

    def _average_array(self, flat: Any) -> Any:
        [mean] = self.average_tensors([self._framework.from_numpy(flat)])
        return mean.numpy()

    def _broadcast_array(self, flat: Any) -> Any:
        return self._hvd.broadcast(self._framework.from_numpy(flat), root_rank=0, name="start").numpy()


class TensorFlowHorovod(HorovodExchange):
    """Averages TensorFlow tensors, eagerly or as part of a ``tf.function``, though not one that XLA compiles."""

    def average_tensors(self, tensors: Sequence[Any]) -> list[Any]:
        averaged: list[Any] = self._hvd.grouped_allreduce(list(tensors), op=self._hvd.Average)
        return averaged

    def _average_array(self, flat: Any) -> Any:
        with self._framework.device("/cpu:0"):
            [mean] = self.average_tensors([self._framework.constant(flat)])
        return mean.numpy()

    def _broadcast_array(self, flat: Any) -> Any:
        with self._framework.device("/cpu:0"):
            return self._hvd.broadcast(self._framework.constant(flat), root_rank=0, name="start").numpy()


def build(spec: RunSpec, ranks: Ranks, device: str) -> HorovodExchange:
    """Start Horovod and check that it sees the launcher's world.

    Raises:
        UserError: Horovod is missing, was built for other versions or without the framework or MPI, or belongs to
            another MPI than the launcher.
    """
    framework = spec.axes.framework
    # Horovod's own thread waits in MPI beside threads that compute; without yielding it takes a core from them
    os.environ.setdefault(YIELD, "1")
    try:
        exchange = _load_torch() if framework == "torch" else _load_tensorflow()
    # a binary made for other versions fails in ways of its own: ImportError, OSError, TensorFlow's NotFoundError
    except Exception as error:
        what = str(error).strip().partition("\n")[0] or type(error).__name__
        raise UserError(
            f"Horovod does not load for {framework}: {what}; it must be built against this environment's {framework}, "
            "MPI and Python: run `make horovod` in the harness's checkout, or set comm: mpi4py"
        ) from None
    if exchange.world() != (ranks.world, ranks.rank):
        size, rank = exchange.world()
        raise UserError(
            f"the launcher says rank {ranks.rank} of {ranks.world}, Horovod says rank {rank} of {size}: it was built "
            "without MPI or for another MPI than mpirun's; run `make horovod` with that MPI's mpicxx first in PATH"
        )
    return exchange


def _load_torch() -> HorovodExchange:
    import horovod.torch as hvd
    import numpy
    import torch

    hvd.init()
    return TorchHorovod(hvd, numpy, torch)


def _load_tensorflow() -> HorovodExchange:
    import horovod.tensorflow as hvd
    import numpy
    import tensorflow

    hvd.init()
    return TensorFlowHorovod(hvd, numpy, tensorflow)
