"""torchvision, also where its compiled operators do not load beside a torch built without CUDA.

The torchvision 0.28 wheel wants ``libc10_cuda``; beside a CPU-only torch its operators stay away, and the import ends
with "operator torchvision::nms does not exist", because Python code describes operators that are not there. Declaring
the two it describes lets the import pass. Models, transforms and data sets then work; ``io.decode_jpeg`` and
non-maximum suppression do not. Import ``torchvision`` from here: every other error is raised as it is.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import torch

_SYMPTOM = "operator torchvision::nms does not exist"
_DECLARED: list[torch.library.Library] = []


def load() -> ModuleType:
    """The ``torchvision`` module.

    Raises:
        ModuleNotFoundError: torchvision is not installed.
        RuntimeError: it is, and its import fails in another way than the one described above.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if _SYMPTOM not in str(error):
            raise
    _declare_operators()
    for name in [name for name in sys.modules if name == "torchvision" or name.startswith("torchvision.")]:
        del sys.modules[name]
    return importlib.import_module("torchvision")


def _declare_operators() -> None:
    # schemas as in torchvision/csrc/ops/nms.cpp and quantized/cpu/qnms_kernel.cpp; they last as long as the library
    fragment = torch.library.Library("torchvision", "FRAGMENT")  # type: ignore[no-untyped-call]
    fragment.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
    fragment.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")  # type: ignore[no-untyped-call]
    _DECLARED.append(fragment)


torchvision = load()
