"""Gradient averaging by torch's DistributedDataParallel: gloo between CPUs, NCCL between GPUs.

Gradients travel in buckets while the backward pass still computes others, so the time they take is not separable.
"""

from __future__ import annotations

import atexit
import os
import socket
import time
import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import distributed
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.nn.parallel import DistributedDataParallel

from harness.comm import mpi4py_exchange
from harness.comm.buffers import float32_arrays, split
from harness.errors import UserError
from harness.model.job import RunSpec
from harness.runtime.interfaces import Ranks

LOOPBACK = "127.0.0.1"
LAST_MESSAGE_S = 0.3
RENDEZVOUS_TIMEOUT = timedelta(seconds=120)


class DdpExchange:
    """Over torch's process group. Models are wrapped; arrays of the host travel by gloo in any case."""

    name = "torch_ddp"

    def __init__(self, device: torch.device):
        self._device = device

    def wrap(self, model: Any) -> Any:
        """The model in DistributedDataParallel. Ranks start from equal weights already, and each keeps running averages
        of its own, so buffers are not sent before every step as DDP would by default."""
        ids = None if self._device.type == "cpu" else [self._device.index]
        with warnings.catch_warnings():
            # torch 2.13 deprecates broadcast_buffers, whose successors sync at the start and are unknown to older ones
            warnings.simplefilter("ignore", FutureWarning)
            return DistributedDataParallel(model, device_ids=ids, broadcast_buffers=False, init_sync=False)

    def average(self, arrays: Sequence[Any]) -> list[Any]:
        """Mean over ranks of each float32 array; the results share one new buffer."""
        import numpy

        arrays = float32_arrays(numpy, arrays)
        if not sum(array.size for array in arrays):
            return [array.copy() for array in arrays]
        flat = torch.from_numpy(numpy.concatenate([array.reshape(-1) for array in arrays]))
        distributed.all_reduce(flat)
        flat /= distributed.get_world_size()
        return split(flat.numpy(), arrays)

    def broadcast(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of rank 0 on every rank; types and shapes are equal everywhere, any type is allowed."""
        import numpy

        copies = [numpy.array(array, copy=True, order="C") for array in arrays]
        for copy in copies:
            if copy.size:
                distributed.broadcast(torch.from_numpy(copy.reshape(-1).view(numpy.uint8)), src=0)
        return copies

    def gather_text(self, text: str) -> list[str]:
        texts: list[Any] = [None] * distributed.get_world_size()
        distributed.all_gather_object(texts, text)
        return texts

    def barrier(self) -> None:
        distributed.all_reduce(torch.zeros(1))

    def abort(self, code: int) -> None:
        """End this process without a farewell: its launcher then ends the other ranks."""
        os._exit(code)

    def versions(self) -> dict[str, str]:
        return {"ddp_backend": "gloo" if self._device.type == "cpu" else "nccl"}


def build(spec: RunSpec, ranks: Ranks, device: str) -> DdpExchange:
    """Bring the launcher's ranks together in a process group.

    Raises:
        UserError: the ranks do not find each other, or torch was built without NCCL for a point with GPUs.
    """
    own = torch.device(device)
    if own.type != "cpu" and not distributed.is_nccl_available():
        raise UserError(
            f"comm: torch_ddp on a GPU needs NCCL, which torch {torch.__version__} was built without; "
            "install torch's CUDA build, or set comm: mpi4py"
        )
    if ranks.local_world == ranks.world:
        # gloo else binds to the address of the host's name, which need not be one of this machine
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        backend="gloo" if own.type == "cpu" else "cpu:gloo,cuda:nccl",
        store=_store(spec, ranks, os.environ),
        rank=ranks.rank,
        world_size=ranks.world,
    )
    atexit.register(_leave)
    return DdpExchange(own)


def _store(spec: RunSpec, ranks: Ranks, environ: Mapping[str, str]) -> Any:
    """The store through which the ranks meet: at MASTER_ADDR and MASTER_PORT where these are set, else on a port that
    is free on rank 0's node, told to the others through MPI."""
    try:
        if "MASTER_ADDR" in environ and "MASTER_PORT" in environ:
            return _connect(environ["MASTER_ADDR"], int(environ["MASTER_PORT"]), ranks, master=ranks.rank == 0)
        host = LOOPBACK if ranks.local_world == ranks.world else socket.getfqdn()
        if ranks.world == 1:
            return _connect(host, 0, ranks, master=True)
        mpi = mpi4py_exchange.build(spec, ranks, "cpu")
        own = _connect(host, 0, ranks, master=True) if ranks.rank == 0 else None
        address = mpi.gather_text(f"{host} {own.port}" if own else "")[0]
        return own or _connect(*_parsed(address), ranks, master=False)
    except (ValueError, distributed.DistError) as error:
        raise UserError(
            f"rank {ranks.rank} on {ranks.node} does not find rank 0 for torch_ddp: {str(error).splitlines()[0]}; "
            "set MASTER_ADDR and MASTER_PORT to an address of the first node that all nodes reach"
        ) from None


def _connect(host: str, port: int, ranks: Ranks, master: bool) -> Any:
    return TCPStore(host, port, ranks.world, is_master=master, timeout=RENDEZVOUS_TIMEOUT, wait_for_workers=False)


def _parsed(address: str) -> tuple[str, int]:
    host, port = address.split(" ")
    return host, int(port)


def _leave() -> None:
    if distributed.is_initialized():
        # gloo's thread lets go of the last message after it has woken us, and needs the interpreter for that: were this
        # being torn down, the process would abort
        time.sleep(LAST_MESSAGE_S)
        distributed.destroy_process_group()
