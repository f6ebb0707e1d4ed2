"""Run by test_mpi_exchange under mpirun: every rank checks what the exchange gives it."""

import os
import sys

import numpy
from runtime_support import spec_of

from harness.comm.mpi4py_exchange import build
from harness.runtime.interfaces import Ranks
from harness.runtime.ranks import detect

ranks: Ranks = detect(os.environ, "n")
exchange = build(spec_of(), ranks, "cpu")
world, rank = ranks.world, ranks.rank
mean = sum(range(world)) / world

mine = [
    numpy.full((2, 3), rank, numpy.float32),
    numpy.array(10.0 * rank, numpy.float32),
    numpy.zeros((0, 4), numpy.float32),
    numpy.asfortranarray(numpy.arange(6, dtype=numpy.float32).reshape(2, 3) + rank),
]
kept = [array.copy() for array in mine]
first = exchange.average(mine)
second = exchange.average([array * 2 for array in mine])
assert [array.shape for array in first] == [(2, 3), (), (0, 4), (2, 3)]
assert (first[0] == mean).all() and first[1] == 10 * mean
assert (first[3] == numpy.arange(6).reshape(2, 3) + mean).all()
assert (second[0] == 2 * mean).all(), "a second call must not change what the first one gave"
assert (first[0] == mean).all()
assert all((a == b).all() for a, b in zip(mine, kept, strict=True)), "inputs stay as they are"
assert exchange.average([]) == []
large = exchange.average([numpy.full(3_000_000, rank + 1, numpy.float32)])[0]
assert large.dtype == numpy.float32 and (large == mean + 1).all()

told = exchange.broadcast(
    [numpy.array([rank, 2**40 + rank]), numpy.array(rank == 0), numpy.full((2, 2), rank, numpy.float16), numpy.zeros(0)]
)
assert told[0].tolist() == [0, 2**40] and told[0].dtype == numpy.int64
assert told[1].shape == () and bool(told[1]) is True
assert told[2].dtype == numpy.float16 and not told[2].any() and told[3].size == 0

assert exchange.gather_text(f"rank {rank} ü") == [f"rank {other} ü" for other in range(world)]
exchange.barrier()
assert "MPI" in exchange.versions()["mpi"]
try:
    exchange.average([numpy.zeros(2)])
except TypeError as error:
    assert "array 0 is float64; gradients are exchanged as float32" in str(error)
else:
    sys.exit("float64 was taken")
print(f"rank {rank} of {world} content")
