"""TensorFlow with Keras 3 made ready on one rank: thread pools, seeds, device, precision."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from harness.model.job import RunSpec
from harness.runtime.devices import check_precision, gpu_index
from harness.runtime.interfaces import Ranks

# Read when the libraries are loaded. 2: no information and warnings from C++, errors stay visible.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["KERAS_BACKEND"] = "tensorflow"

_CHATTER = re.compile(rb"(I\d{4} |WARNING: All log messages before absl::InitializeLog)")


@contextlib.contextmanager
def _without_chatter() -> Iterator[None]:
    """Drop what C++ logs as information while TensorFlow is loaded; TF_CPP_MIN_LOG_LEVEL does not reach that early.

    Everything else is written to stderr when the block ends. TF_CPP_MIN_LOG_LEVEL=0 lets all through.
    """
    if os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0":
        yield
        return
    sys.stderr.flush()
    original = os.dup(2)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(original, 2)
            os.close(original)
            captured.seek(0)
            os.write(2, b"".join(line for line in captured if not _CHATTER.match(line)))


#: Keras needs none of these, but imports for notebooks and wrappers what it finds: a third of a rank's start, and
#: Matplotlib's complaint where the home directory cannot be written
_NOT_NEEDED = ("IPython", "matplotlib", "pandas", "sklearn")


@contextlib.contextmanager
def _without_unneeded() -> Iterator[None]:
    """Inside the block these packages are as good as not installed; who needs them imports them later."""
    unseen = [name for name in _NOT_NEEDED if name not in sys.modules]
    sys.modules.update(dict.fromkeys(unseen))  # type: ignore[arg-type]  # None: ModuleNotFoundError (Python's "import")
    try:
        yield
    finally:
        for name in unseen:
            del sys.modules[name]


with _without_chatter(), _without_unneeded():
    import keras
    import tensorflow as tf

_POLICIES = {"fp32": "float32", "tf32": "float32", "bf16": "mixed_bfloat16", "fp16": "mixed_float16"}
_BUILD_VERSIONS = {"cuda": "cuda_version", "cudnn": "cudnn_version"}


class Engine:
    """The TensorFlow engine; devices are named ``cpu`` or ``gpu:0``, the only GPU left visible to this rank."""

    name = "tensorflow"

    def prepare(self, spec: RunSpec, ranks: Ranks, threads: int) -> str:
        """Set thread pools, seeds, device, dtype policy and TF32; returns the device's name.

        Intra-op and inter-op pools both get ``threads``; TensorFlow allows them to be set only before its first
        operation. GPU memory grows as needed instead of being taken whole.

        Raises:
            UserError: the device asked for is missing or cannot compute in the precision asked for.
        """
        axes = spec.axes
        _set_threads(threads)
        gpus = tf.config.list_physical_devices("GPU")
        index = gpu_index(axes, ranks, len(gpus), "TensorFlow")
        check_precision(axes.precision, index is not None)
        own = [] if index is None else [gpus[index]]
        if gpus:
            tf.config.set_visible_devices(own, "GPU")
        for gpu in own:
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.experimental.enable_tensor_float_32_execution(axes.precision == "tf32")
        keras.config.set_dtype_policy(_POLICIES[axes.precision])
        keras.utils.set_random_seed(int(np.random.SeedSequence([spec.seed, ranks.rank]).generate_state(1)[0]))
        return "gpu:0" if own else "cpu"

    def thread_pools(self) -> dict[str, int]:
        """TensorFlow's intra-op and inter-op pools, and OMP_NUM_THREADS where it is set."""
        threading = tf.config.threading
        pools = {
            "intra_op": threading.get_intra_op_parallelism_threads(),
            "inter_op": threading.get_inter_op_parallelism_threads(),
        }
        omp = os.environ.get("OMP_NUM_THREADS", "")
        return pools | {"omp": int(omp)} if omp.isdigit() else pools

    @contextlib.contextmanager
    def profile(self, directory: Path) -> Iterator[None]:
        """``plugins/profile/…``: host and device activity by the TensorFlow Profiler, for TensorBoard."""
        tf.profiler.experimental.start(str(directory))
        try:
            yield
        finally:
            tf.profiler.experimental.stop()

    def versions(self) -> dict[str, str]:
        """TensorFlow, Keras, and the CUDA and cuDNN it was built with."""
        build = tf.sysconfig.get_build_info()
        found = {"tensorflow": tf.__version__, "keras": keras.__version__}
        found |= {name: str(build[key]) for name, key in _BUILD_VERSIONS.items() if build.get(key)}
        return found


def _set_threads(threads: int) -> None:
    threading = tf.config.threading
    if threading.get_intra_op_parallelism_threads() != threads:
        threading.set_intra_op_parallelism_threads(threads)
    if threading.get_inter_op_parallelism_threads() != threads:
        threading.set_inter_op_parallelism_threads(threads)
