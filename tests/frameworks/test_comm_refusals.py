"""A missing or wrong build of an exchange says which one is needed and how to get it; wrong pairs are never planned."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from frameworks_support import Maker

from harness.comm import horovod_exchange
from harness.errors import UserError
from harness.model.axes import Axes
from harness.plan.fit import misfits
from harness.runtime.interfaces import Ranks, TensorExchange, WrappingExchange

torch = pytest.importorskip("torch")

TWO = Ranks(rank=0, world=2, local_rank=0, local_world=2, node="here")


def spec(framework: str) -> Any:
    return SimpleNamespace(axes=Axes(workload="resnet20_cifar10", framework=framework))


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, **attributes: Any) -> None:
    """A module ``name`` with these attributes in the place of the real one."""
    module = ModuleType(name)
    for key, value in attributes.items():
        setattr(module, key, value)
    monkeypatch.setitem(sys.modules, name, module)
    parent, _, child = name.rpartition(".")
    if parent:
        monkeypatch.setattr(sys.modules[parent], child, module, raising=False)


@pytest.mark.parametrize("framework", ["torch", "tensorflow"])
def test_no_horovod(monkeypatch, framework):
    for name in ("horovod", "horovod.torch", "horovod.tensorflow"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=rf"does not load for {framework}: .*horovod.*make horovod.*comm: mpi4py"):
        horovod_exchange.build(spec(framework), TWO, "cpu")


def test_horovod_built_for_another_torch(monkeypatch):
    """A binary for other versions fails where it is loaded, with the name of a symbol."""

    def init() -> None:
        raise OSError("mpi_lib_v2.so: undefined symbol: _ZN3c10\nand more")

    pretend(monkeypatch, "horovod")
    pretend(monkeypatch, "horovod.torch", init=init)
    with pytest.raises(UserError) as raised:
        horovod_exchange.build(spec("torch"), TWO, "cpu")
    assert "undefined symbol: _ZN3c10; it must be built against this environment's torch" in str(raised.value)
    assert "and more" not in str(raised.value)


def test_horovod_of_another_mpi(monkeypatch):
    """Under a foreign mpirun every process believes to be alone, and would train alone."""
    pretend(monkeypatch, "horovod")
    pretend(monkeypatch, "horovod.torch", init=lambda: None, size=lambda: 1, rank=lambda: 0)
    with pytest.raises(UserError, match="rank 0 of 2, Horovod says rank 0 of 1: .*make horovod"):
        horovod_exchange.build(spec("torch"), TWO, "cpu")


def test_ddp_without_nccl(monkeypatch):
    from harness.comm import torch_ddp

    monkeypatch.setattr(torch_ddp.distributed, "is_nccl_available", lambda: False)
    with pytest.raises(UserError, match="needs NCCL, which torch .* was built without"):
        torch_ddp.build(spec("torch"), TWO, "cuda:0")


def test_ddp_with_an_address_nobody_answers(monkeypatch):
    from harness.comm import torch_ddp

    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "nonsense")
    with pytest.raises(UserError, match="rank 1 on here does not find rank 0 .* set MASTER_ADDR and MASTER_PORT"):
        torch_ddp.build(spec("torch"), Ranks(1, 2, 1, 2, "here"), "cpu")


@pytest.mark.parametrize(
    ("comm", "framework", "fits"),
    [
        ("torch_ddp", "torch", True),
        ("torch_ddp", "tensorflow", False),
        ("horovod", "torch", True),
        ("horovod", "tensorflow", True),
        ("mpi4py", "tensorflow", True),
    ],
)
def test_exchanges_are_planned_for_their_frameworks(comm, framework, fits):
    workload = {"workload": "resnet20_cifar10", "dataset": "synthetic:cifar10", "pipeline": "memory"}
    reasons = misfits(Axes(**workload, framework=framework, comm=comm, batch_size=8, ranks_per_node=2))
    assert [code for code, _ in reasons] == ([] if fits else ["comm"])


def test_replay_has_no_gradients_to_exchange_by_a_framework():
    reasons = misfits(Axes(workload="replay", framework="none", pipeline="scripted", comm="horovod"))
    assert reasons == [("comm", "comm horovod exchanges gradients of tensorflow or torch, not of none")]


def test_kinds_of_exchange():
    """The trainers choose their way by these: an exchange must not pass for another kind."""
    from harness.comm.mpi4py_exchange import MpiExchange
    from harness.comm.none import NoExchange
    from harness.comm.torch_ddp import DdpExchange

    horovod = horovod_exchange.TorchHorovod(None, None, None)
    plain, ddp = [NoExchange(), object.__new__(MpiExchange)], DdpExchange(torch.device("cpu"))
    assert isinstance(horovod, TensorExchange) and not isinstance(horovod, WrappingExchange)
    assert isinstance(ddp, WrappingExchange) and not isinstance(ddp, TensorExchange)
    assert not any(isinstance(exchange, TensorExchange | WrappingExchange) for exchange in plain)


def test_an_exchange_of_tensors_is_given_tensors():
    """Not numpy copies of them: on a GPU they would travel through host memory."""

    class Recorder:
        name = "horovod"
        average = gather_text = barrier = abort = versions = lambda *_: pytest.fail("not meant")
        seen: list[Any] = []

        def average_tensors(self, tensors):
            self.seen += tensors
            return [tensor * 2 for tensor in tensors]

        def broadcast(self, arrays):
            return arrays

    from harness.workloads.training_torch import Trainer

    recorder = Recorder()
    trainer = Trainer(Maker().context("resnet20_cifar10", "torch", exchange=recorder, world=2))
    model = trainer.place(torch.nn.Linear(2, 1, bias=False))
    before = model.weight.detach().clone()
    trainer.update(model(torch.ones(1, 2)).sum(), torch.optim.SGD(model.parameters(), lr=1.0))
    assert all(isinstance(tensor, torch.Tensor) for tensor in recorder.seen) and len(recorder.seen) == 1
    assert torch.equal(before - model.weight.detach(), torch.full((1, 2), 2.0))
