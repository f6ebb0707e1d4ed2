"""What the runtime asks of an engine, an input pipeline, a training session and a gradient exchange.

No framework is imported here: the implementations in ``runtime/engine_*``, ``pipelines/``, ``workloads/`` and
``comm/`` are found through the catalog by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from harness.model.job import RunSpec


@dataclass(frozen=True)
class Ranks:
    """Where this process stands among the job's ranks."""

    rank: int
    world: int
    local_rank: int
    local_world: int
    node: str


class Clock(Protocol):
    """Time, passed in so that tests can script it."""

    def now(self) -> float:
        """Seconds on a monotonic clock."""

    def sleep(self, seconds: float) -> None:
        """Let ``seconds`` pass."""


class Exchange(Protocol):
    """Averages gradients over all ranks; blocking, and called by every rank in the same order."""

    name: str

    def average(self, arrays: Sequence[Any]) -> list[Any]:
        """Mean over ranks of each array (float32 numpy arrays of any shape), in one fused message."""

    def broadcast(self, arrays: Sequence[Any]) -> list[Any]:
        """The arrays of rank 0, on every rank."""

    def gather_text(self, text: str) -> list[str]:
        """The texts of all ranks, by rank, on every rank."""

    def barrier(self) -> None:
        """Return when every rank has come here."""

    def abort(self, code: int) -> None:
        """End every rank's process at once with exit code ``code``: peers may be waiting in a collective call."""

    def versions(self) -> dict[str, str]:
        """The library behind the exchange and its version, as it reports itself; empty where there is none."""


@runtime_checkable
class TensorExchange(Exchange, Protocol):
    """An exchange that also averages the framework's own tensors, on the device that holds them."""

    def average_tensors(self, tensors: Sequence[Any]) -> list[Any]:
        """Mean over ranks of each tensor. TensorFlow's may be part of a graph, whose other work then goes on."""


@runtime_checkable
class WrappingExchange(Exchange, Protocol):
    """An exchange that averages gradients while the backward pass still computes others."""

    def wrap(self, model: Any) -> Any:
        """The model with the exchange in its backward pass; all its parameters must get gradients in each one."""


@dataclass(frozen=True)
class RunContext:
    """All that a session or pipeline builder may know about its run."""

    spec: RunSpec
    ranks: Ranks
    cpus: tuple[int, ...]
    threads: int
    exchange: Exchange
    clock: Clock
    device: str
    data_path: Path | None
    note: Callable[..., None]
    """``note(kind, **fields)`` writes an event."""

    @property
    def axes(self) -> Any:
        return self.spec.axes


@dataclass
class Batch:
    """One batch of this rank. ``samples`` counts the fresh images it delivered.

    ``consumed`` counts the images that enter a step with it, where that differs (example echoing); None: ``samples``.
    """

    data: Any
    samples: int
    consumed: int | None = None


@dataclass(frozen=True)
class StepOutcome:
    """A finished step: its loss, and the seconds spent exchanging gradients where separable (else 0)."""

    loss: float
    exchange_s: float = 0.0


@dataclass(frozen=True)
class ModelFacts:
    """What was built: parameter counts as the framework counts them."""

    name: str
    parameters: int
    trainable: int
    details: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """A framework made ready on this rank: thread pools, seeds, device. Importing it happens in ``__init__``."""

    name: str

    def prepare(self, spec: RunSpec, ranks: Ranks, threads: int) -> str:
        """Set thread pools and seeds before any model is built; returns the device's name.

        Called before the exchange, the pipeline and the session are built.
        """

    def thread_pools(self) -> dict[str, int]:
        """The thread pools as the framework reports them now."""

    def versions(self) -> dict[str, str]:
        """Framework, CUDA, cuDNN, NCCL versions, as far as present."""

    def profile(self, directory: Path) -> AbstractContextManager[Any]:
        """A context whose steps the framework's own profiler writes a trace of into ``directory``, which exists."""


class Pipeline(Protocol):
    """An endless supply of batches, reshuffled every epoch, this rank's shard only."""

    def batches(self) -> Iterator[Batch]:
        """Batches in order; called once."""

    def occupancy(self) -> int | None:
        """Batches ready in the buffer now, or None where the pipeline has no buffer that can be read."""

    def worker_cpus(self) -> list[int] | None:
        """CPUs that one loader worker may use, or None where there is no worker."""

    def close(self) -> None:
        """Stop workers and free buffers; may be called twice."""


class Session(Protocol):
    """A model in training on this rank."""

    def facts(self) -> ModelFacts: ...

    def to_device(self, batch: Batch) -> Batch:
        """Copy to the device; returns when the copy is done."""

    def step(self, batch: Batch) -> StepOutcome:
        """One training step; returns when the device has finished it. All ranks hold equal parameters afterwards."""

    def digest(self) -> str:
        """Hex digest of all parameters, to compare ranks and repeats."""

    def close(self) -> None: ...


@runtime_checkable
class Validated(Protocol):
    """A session that can be judged by samples kept from training, as it was at earlier steps."""

    def remember(self) -> None:
        """Keep a copy of the parameters as they are now; called between two steps."""

    def judgements(self) -> Iterator[tuple[float, float, int]]:
        """Mean loss, share of wrong answers and number of samples for each copy, in order; called after the steps."""


@runtime_checkable
class Judged(Protocol):
    """A session that can also say how good its model is."""

    def quality(self) -> Mapping[str, Any]:
        """The fields of a ``quality`` event, empty where there is nothing to say; called once, after the steps."""
