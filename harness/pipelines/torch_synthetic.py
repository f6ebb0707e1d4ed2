"""One batch, made once and delivered for ever: the rate at which nothing but the model holds training up."""

from __future__ import annotations

import torch

from harness.pipelines.made_up import Constant, made_up_batch
from harness.runtime.interfaces import RunContext


def build(context: RunContext) -> Constant:
    """The batch of one rank, in the memory of the host: copying it to the device stays part of each step."""
    images, labels = made_up_batch(context)
    data = torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels)
    if context.device.startswith("cuda"):
        data = data[0].pin_memory(), data[1].pin_memory()
    return Constant(data, len(images))
