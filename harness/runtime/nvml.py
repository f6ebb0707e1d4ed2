"""What NVML shows of a node's GPUs; the library is passed in, for it may be missing."""

from __future__ import annotations

from typing import Any


def gpu_handles(nvml: Any) -> list[Any]:
    """Handles of the GPUs that this process may use, in order of their PCI bus, as CUDA numbers equal ones.

    NVML counts those, too, that a control group keeps from the job, and refuses their handles (NVML API reference,
    nvmlDeviceGetCount_v2).
    """
    handles = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handles.append(nvml.nvmlDeviceGetHandleByIndex(index))
        except nvml.NVMLError_NoPermission:
            continue
    return handles
