"""Gradient averaging with mpi4py: all arrays travel as one float32 buffer in one Allreduce.

One message instead of one per layer: a small model's step would otherwise wait for tens of message latencies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.comm.buffers import float32_arrays, split
from harness.errors import UserError
from harness.model.job import RunSpec
from harness.runtime.interfaces import Ranks


class MpiExchange:
    """Over MPI's COMM_WORLD. Arrays live in host memory."""

    name = "mpi4py"

    def __init__(self, mpi: Any, numpy: Any):
        self._mpi, self._numpy = mpi, numpy
        self._world = mpi.COMM_WORLD
        self._send: Any = numpy.empty(0, numpy.float32)

    def average(self, arrays: Sequence[Any]) -> list[Any]:
        """Mean over ranks of each float32 array; the results share one new buffer.

        Raises:
            TypeError: for an array of another type, whose conversion would hide a loss of precision.
        """
        numpy = self._numpy
        arrays = float32_arrays(numpy, arrays)
        total = sum(array.size for array in arrays)
        if not total:
            return [array.copy() for array in arrays]
        if self._send.size != total:
            self._send = numpy.empty(total, numpy.float32)
        numpy.concatenate([array.reshape(-1) for array in arrays], out=self._send)
        received = numpy.empty(total, numpy.float32)
        self._world.Allreduce(self._send, received, op=self._mpi.SUM)
        received /= self._world.Get_size()
        return split(received, arrays)

    def broadcast(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of rank 0 on every rank; types and shapes are equal everywhere, any type is allowed."""
        numpy = self._numpy
        copies = [numpy.array(array, copy=True, order="C") for array in arrays]
        for copy in copies:
            if copy.size:
                self._world.Bcast(copy.reshape(-1).view(numpy.uint8), root=0)
        return copies

    def gather_text(self, text: str) -> list[str]:
        texts: list[str] = self._world.allgather(text)
        return texts

    def barrier(self) -> None:
        self._world.Barrier()

    def abort(self, code: int) -> None:
        self._world.Abort(code)

    def versions(self) -> dict[str, str]:
        # MPICH and Intel MPI answer with several lines, Open MPI with a trailing NUL in some releases
        text = self._mpi.Get_library_version().replace("\0", "").strip()
        return {"mpi": text.splitlines()[0], "mpi_standard": ".".join(map(str, self._mpi.Get_version()))}


def build(spec: RunSpec, ranks: Ranks, device: str) -> MpiExchange:
    """Start MPI and check that it sees the same world as the launcher's variables.

    Raises:
        UserError: mpi4py or its MPI library is missing, or belongs to another MPI than the launcher.
    """
    try:
        import numpy
        from mpi4py import MPI as mpi
    except (ImportError, RuntimeError, OSError) as error:  # mpi4py raises RuntimeError where it finds no libmpi
        raise UserError(
            f"{ranks.world} ranks need mpi4py to exchange gradients, and it does not load: {error}; "
            'install it into the ranks\' environment (pip install -e ".[runtime]") '
            "next to the MPI whose mpirun starts them, or set comm: none for independent ranks"
        ) from None
    exchange = MpiExchange(mpi, numpy)
    size, rank = mpi.COMM_WORLD.Get_size(), mpi.COMM_WORLD.Get_rank()
    if (size, rank) != (ranks.world, ranks.rank):
        library = exchange.versions()["mpi"]
        raise UserError(
            f"the launcher says rank {ranks.rank} of {ranks.world}, mpi4py's MPI says rank {rank} of {size} "
            f"({library}): mpirun belongs to another MPI; use the mpirun of the environment that holds mpi4py"
        )
    return exchange
