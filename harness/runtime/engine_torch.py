"""torch made ready on one rank: thread pools, seeds, device, precision."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from harness.model.job import RunSpec
from harness.runtime.devices import check_precision, gpu_index
from harness.runtime.interfaces import Ranks


class Engine:
    """The torch engine; devices are named ``cpu`` or ``cuda:<index>``."""

    name = "torch"

    def prepare(self, spec: RunSpec, ranks: Ranks, threads: int) -> str:
        """Set thread pools, seeds, device and TF32 policy; returns the device's name.

        Intra-op and inter-op pools both get ``threads``. torch allows the inter-op pool to be set only once in a
        process, before any parallel work.

        Raises:
            UserError: the device asked for is missing or cannot compute in the precision asked for.
        """
        axes = spec.axes
        torch.set_num_threads(threads)
        if torch.get_num_interop_threads() != threads:
            torch.set_num_interop_threads(threads)
        visible = torch.cuda.device_count() if axes.gpus_per_rank else 0
        index = gpu_index(axes, ranks, visible, "torch")
        check_precision(axes.precision, index is not None)
        torch.manual_seed(rank_seed(spec.seed, ranks.rank))
        if index is None:
            return "cpu"
        torch.cuda.set_device(index)
        # fp32 means fp32: cuDNN convolutions would otherwise use TF32 by default
        torch.set_float32_matmul_precision("high" if axes.precision == "tf32" else "highest")
        torch.backends.cudnn.allow_tf32 = axes.precision == "tf32"
        return f"cuda:{index}"

    def thread_pools(self) -> dict[str, int]:
        """torch's intra-op and inter-op pools, and OMP_NUM_THREADS where it is set."""
        pools = {"intra_op": torch.get_num_threads(), "inter_op": torch.get_num_interop_threads()}
        omp = os.environ.get("OMP_NUM_THREADS", "")
        return pools | {"omp": int(omp)} if omp.isdigit() else pools

    def versions(self) -> dict[str, str]:
        """torch, and the CUDA, cuDNN and NCCL it was built with."""
        found = {"torch": torch.__version__, "cuda": torch.version.cuda, "hip": torch.version.hip}
        if torch.backends.cudnn.is_available():  # type: ignore[no-untyped-call]
            found["cudnn"] = str(torch.backends.cudnn.version())  # type: ignore[no-untyped-call]
        if torch.cuda.is_available() and torch.distributed.is_nccl_available():
            parts = torch.cuda.nccl.version()  # type: ignore[no-untyped-call]
            found["nccl"] = ".".join(str(part) for part in parts)
        return {name: version for name, version in found.items() if version}

    @contextmanager
    def profile(self, directory: Path) -> Iterator[None]:
        """``torch.json``: CPU and GPU activity by torch.profiler, for Perfetto or chrome://tracing."""
        with torch.profiler.profile() as profiler:  # all activities that the device has
            yield
        profiler.export_chrome_trace(str(directory / "torch.json"))


def rank_seed(seed: int, rank: int) -> int:
    """Seed of one rank's own random streams; weights are made equal afterwards by broadcast."""
    return int(np.random.SeedSequence([seed, rank]).generate_state(1)[0])
