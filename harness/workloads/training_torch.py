"""What the torch workloads share: precision, updates whose gradients are averaged over ranks, equal starts, digests."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from harness.errors import UserError
from harness.runtime.interfaces import RunContext, TensorExchange, WrappingExchange

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Trainer:
    """One rank's part in training: computes, averages and applies gradients, on one device in one precision.

    With more than one rank and an exchange, every update averages its gradients over the ranks in one message; the
    seconds that took, copies to and from the host included, add up in :attr:`exchange_s`. An exchange that works
    during the backward pass leaves that at 0: its time is not separable.
    """

    def __init__(self, context: RunContext):
        self.device = torch.device(context.device)
        self.exchange_s = 0.0
        self._axes = context.axes
        self._clock = context.clock
        self._exchange = context.exchange if context.ranks.world > 1 and context.exchange.name != "none" else None
        # fp16 gradients underflow without loss scaling; in other precisions the scaler does nothing
        self._scaler = torch.amp.GradScaler(self.device.type, enabled=self._axes.precision == "fp16")

    def place(self, module: nn.Module) -> nn.Module:
        """The module on the device, with equal starting values on every rank, and compiled where the axis says so.

        Batch normalisation's running averages start equal and are each rank's own afterwards.
        """
        layout = torch.channels_last if self._axes.channels_last else torch.contiguous_format
        module.to(device=self.device, memory_format=layout)  # type: ignore[call-overload]
        if self._exchange is not None:
            tensors = [t for t in module.state_dict().values() if t.is_floating_point()]
            values = self._exchange.broadcast([t.cpu().contiguous().numpy() for t in tensors])
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(torch.from_numpy(value))
        if self._axes.compile:
            need_compiler(self.device.type)
            module.compile()
        return self._exchange.wrap(module) if isinstance(self._exchange, WrappingExchange) else module

    def details(self) -> dict[str, Any]:
        """How the model is computed, for its facts."""
        layout = "channels_last" if self._axes.channels_last else "channels_first"
        return {"precision": self._axes.precision, "layout": layout, "compiled": self._axes.compile}

    def images(self, images: Tensor) -> Tensor:
        """``(b, c, h, w)`` on the host → the same on the device, in the layout of the axis."""
        layout = torch.channels_last if self._axes.channels_last else torch.contiguous_format
        return images.to(self.device, non_blocking=True).contiguous(memory_format=layout)

    def autocast(self) -> AbstractContextManager[Any]:
        """The context in which forward passes and losses are computed."""
        dtype = _AUTOCAST.get(self._axes.precision)
        return torch.autocast(self.device.type, dtype) if dtype else contextlib.nullcontext()

    def update(self, loss: Tensor, optimizer: torch.optim.Optimizer) -> None:
        """Apply the gradients of ``loss`` with respect to the optimizer's own parameters, and no others."""
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        gradients = self._gradients(self._scaler.scale(loss), parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = _in_layout_of(parameter, gradient)
        # after averaging, so that all ranks find the same overflow and skip the same steps
        self._scaler.step(optimizer)
        self._scaler.update()

    def passing(self, module: nn.Module) -> AbstractContextManager[Any]:
        """The context for forward passes through a placed module whose own parameters the next update leaves alone."""
        return module.no_sync() if isinstance(module, DistributedDataParallel) else contextlib.nullcontext()

    def _gradients(self, loss: Tensor, parameters: Sequence[Tensor]) -> Sequence[Tensor]:
        """Of ``loss`` with respect to ``parameters``, averaged over ranks."""
        # the last step's are let go first, so that these take their memory, which is still in the caches
        for parameter in parameters:
            parameter.grad = None
        if isinstance(self._exchange, WrappingExchange):
            # DDP listens to gradients as they are accumulated, which torch.autograd.grad does not do
            torch.autograd.backward(loss, inputs=parameters)
            return [parameter.grad for parameter in parameters if parameter.grad is not None]
        gradients = torch.autograd.grad(loss, parameters)
        return gradients if self._exchange is None else self._average(gradients)

    def _average(self, gradients: Sequence[Tensor]) -> tuple[Tensor, ...]:
        assert self._exchange is not None
        flat = torch.cat([g.reshape(-1) for g in gradients])
        self.synchronize()
        begin_s = self._clock.now()
        if isinstance(self._exchange, TensorExchange):
            [flat] = self._exchange.average_tensors([flat])
            self.synchronize()
        else:
            [mean] = self._exchange.average([flat.cpu().numpy()])
            flat = torch.from_numpy(mean).to(self.device)
        self.exchange_s += self._clock.now() - begin_s
        parts = torch.split(flat, [g.numel() for g in gradients])
        return tuple(part.view(g.shape) for part, g in zip(parts, gradients, strict=True))

    def synchronize(self) -> None:
        """Return when the device has done all it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


#: device → what names its compiler, and those that are looked for where nothing does (torch._inductor, triton.runtime)
_COMPILERS = {"cpu": ("CXX", ("g++",)), "cuda": ("CC", ("gcc", "clang"))}


def need_compiler(device: str) -> None:
    """torch.compile writes C++ for CPUs (``torch._inductor.config.cpp.cxx``), and Triton what starts its kernels on a
    GPU in C; both are built in the first step.

    Raises:
        UserError: there is nothing to build it with.
    """
    variable, usual = _COMPILERS[device]
    wanted = [os.environ[variable]] if variable in os.environ else usual
    if not any(map(shutil.which, wanted)):
        remedy = f"load a module that has one, name it in {variable}, or set compile: false"
        raise UserError(
            f"compile: torch.compile needs a {'C++' if device == 'cpu' else 'C'} compiler, and there is no "
            f"{' or '.join(wanted)} here; {remedy}"
        )


def _in_layout_of(parameter: Tensor, gradient: Tensor) -> Tensor:
    """The gradient with the parameter's strides: torch's fused Adam on the CPU walks both as if they had the same."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


def adam(parameters: Any, device: torch.device, **settings: Any) -> torch.optim.Adam:
    """Adam with Keras's epsilon, 1e-7.

    Keras adds epsilon to the root of the uncorrected second moment, torch to that of the corrected one: the two
    differ by a factor sqrt(1 - beta2^t) of epsilon, which is seen only where gradients are near 1e-7.
    """
    return torch.optim.Adam(parameters, eps=1e-7, fused=device.type in ("cpu", "cuda"), **settings)


def keras_batch_norm(channels: int, momentum: float = 0.99) -> nn.BatchNorm2d:
    """Batch normalisation with Keras's epsilon and momentum (torch weighs the new value, Keras the old one).

    The running variance still differs: torch averages the unbiased one, Keras the biased one; n/(n-1) over
    n = batch × height × width.
    """
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=1 - momentum)


def glorot_uniform(module: nn.Module) -> None:
    """Keras's initialiser of convolutions and dense layers; to be applied to a whole model."""
    if isinstance(module, nn.Conv2d | nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)


class SameConv(nn.Conv2d):
    """3×3 or 1×1 convolution with TensorFlow's ``SAME`` padding for even sizes.

    With stride 2 and an even size TensorFlow pads one row and column at the end, and none at the beginning.
    """

    def __init__(self, inputs: int, outputs: int, kernel: int = 3, stride: int = 1):
        super().__init__(inputs, outputs, kernel, stride, padding=kernel // 2 if stride == 1 else 0)
        self._pad_end = kernel - stride if stride > 1 and kernel > stride else 0

    def forward(self, images: Tensor) -> Tensor:
        if self._pad_end:
            images = nn.functional.pad(images, (0, self._pad_end, 0, self._pad_end))
        return super().forward(images)


def count(modules: Iterable[nn.Module]) -> tuple[int, int]:
    """``(parameters, trainable)`` as Keras counts them: running averages are parameters, though not trainable."""
    modules = list(modules)
    trainable = sum(p.numel() for m in modules for p in m.parameters())
    return trainable + sum(b.numel() for m in modules for b in m.buffers() if b.is_floating_point()), trainable


def digest(modules: Iterable[nn.Module]) -> str:
    """SHA-256 over the trainable parameters, in their order."""
    found = hashlib.sha256()
    for module in modules:
        for parameter in module.parameters():
            found.update(parameter.detach().cpu().contiguous().numpy().data)
    return found.hexdigest()
