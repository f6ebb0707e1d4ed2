"""The capacity model: what a setting's rate is, given a form and its parameters. Pure functions of numpy arrays.

Three lanes work at the same time on each rank, and the slowest sets the pace. Seconds per image of each:

- device: ``1/C`` on an accelerator; ``(1 + u (c-1)) / (C c)`` where the ``c`` cores of the rank compute themselves
  (Amdahl's law); where they prepare as well, ``1/(a c)`` or ``1/a`` more, and all of it ``1 + k w/c`` times as long
  with ``w`` workers; plus the gradient exchange over ``G`` ranks, ``r`` on each of ``N`` nodes: ``e (G-1)/G`` as a ring
  moves, or that and ``f (G-1)``, or ``e (r-1)/r + f (N-1)`` where nodes are told apart;
- preparation: ``(1 + s (n-1) + k n (n-1)) / (a n)`` with ``n`` preparing at once, Gunther's universal scalability
  law (Guerrilla Capacity Planning, 2007), or ``1 / (a n^g)``, diminishing returns without an end; ``n`` is the least
  of the cores, workers and threads that the form names;
- storage: ``r / S``, with ``S`` images/s of one storage, shared by the ``r`` ranks that read from it.

The lanes' times are joined by a p-norm, whose exponent says how well they overlap: 1 is their sum (nothing overlaps),
infinity their maximum. Without a worker, and without prefetch where the form says so, they are summed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Exponents beyond this are no softer than a maximum.
SHARPEST = 60.0


@dataclass(frozen=True)
class Setting:
    """What a job asks for and sets, as the model sees it; ``cores``, ``workers`` and ``threads`` are per rank.

    ``readers_share`` says whether all ranks share the storage's rate (a shared file system) or those of a node.
    """

    cores: float = 1.0
    workers: int = 0
    threads: int | None = None
    prefetch: int | None = None
    storage: str = ""
    nodes: int = 1
    ranks_per_node: int = 1
    readers_share: Literal["job", "node"] = "job"

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True)
class Form:
    """Which terms a model has.

    ``parallel``: the knobs whose least is the parallelism of the preparation; empty: none was varied. ``prefetch``
    places: batches are made only for free places of the buffer, so ``n`` is at most so many; levels: each depth
    changes the preparation by a factor of its own; overlap: none means no overlap. ``storage`` ceilings: each storage
    has its rate; factors: each changes the preparation, as read latency does. ``shared``: the cores that train prepare
    too, and the time of preparation adds to the device's: spread over the cores, or whole, where the threads that train
    wait for the one that a worker displaced. ``burden``: each worker for a core slows down what these compute.
    """

    parallel: tuple[str, ...] = ()
    saturation: Literal["linear", "amdahl", "universal", "power"] = "amdahl"
    compute: Literal["constant", "cores"] = "constant"
    prefetch: Literal["none", "places", "levels", "overlap"] = "none"
    storage: Literal["same", "ceilings", "factors"] = "same"
    exchange: Literal["none", "ring", "ring_and_ranks", "nodes"] = "none"
    join: Literal["soft", "hard"] = "soft"
    shared: Literal["no", "spread", "whole"] = "no"
    burden: bool = False
    inline: bool = False
    depths: tuple[int | None, ...] = ()
    storages: tuple[str, ...] = ()

    @property
    def prepares(self) -> bool:
        """Whether there is a lane of preparation apart from the device's."""
        return bool(self.parallel) or self.prefetch in ("levels", "overlap") or self.storage == "factors" or self.inline

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters, in the order of their vector of logarithms."""
        names = ["compute"]
        names += ["compute_serial"] if self.compute == "cores" else []
        names += ["burden"] if self.burden else []
        names += ["prepare"] if self.prepares else []
        if self.parallel:
            more = {"linear": [], "amdahl": ["serial"], "universal": ["serial", "crowding"], "power": ["returns"]}
            names += more[self.saturation]
        names += [f"depth {d}" for d in self.depths[:-1]] if self.prefetch == "levels" else []
        if self.storage == "ceilings":
            names += [f"storage {s}" for s in self.storages]
        elif self.storage == "factors":
            names += [f"latency {s}" for s in self.storages[1:]]
        names += {"none": [], "ring": ["ring"], "ring_and_ranks": ["ring", "ranks"], "nodes": ["ring", "nodes"]}[
            self.exchange
        ]
        return (*names, "sharpness") if self.join == "soft" else tuple(names)


@dataclass(frozen=True)
class Design:
    """Settings as columns, each of shape (settings,)."""

    cores: Floats
    workers: Floats
    threads: Floats
    prefetch: Floats
    ranks: Floats
    ranks_per_node: Floats
    readers: Floats
    depth: NDArray[np.object_]
    storage: NDArray[np.object_]

    @staticmethod
    def of(settings: Sequence[Setting]) -> Design:
        def column(values: Sequence[float]) -> Floats:
            return np.array(values, dtype=np.float64)

        return Design(
            cores=column([s.cores for s in settings]),
            workers=column([float(s.workers) for s in settings]),
            threads=column([float(s.cores if s.threads is None else s.threads) for s in settings]),
            prefetch=column([math.inf if s.prefetch is None else float(s.prefetch) for s in settings]),
            ranks=column([float(s.ranks) for s in settings]),
            ranks_per_node=column([float(s.ranks_per_node) for s in settings]),
            readers=column([float(s.ranks if s.readers_share == "job" else s.ranks_per_node) for s in settings]),
            depth=np.array([str(s.prefetch) for s in settings], dtype=object),
            storage=np.array([s.storage for s in settings], dtype=object),
        )


@dataclass(frozen=True)
class Lanes:
    """Seconds per image and rank: each of shape (…, settings). The device's lane is compute, exchange and shared
    together; ``shared`` is what preparation takes of the cores that compute."""

    compute: Floats
    shared: Floats
    exchange: Floats
    prepare: Floats
    storage: Floats


def lanes(form: Form, logs: Floats, design: Design) -> Lanes:
    """The lanes' times; ``logs``, shape (…, parameters): the parameters' logarithms in the order of ``form.names``."""
    value = {name: np.exp(logs[..., index])[..., None] for index, name in enumerate(form.names)}
    nothing = np.zeros(np.broadcast_shapes(value["compute"].shape, design.cores.shape))
    compute = nothing + 1 / value["compute"]
    if form.compute == "cores":
        compute = compute * (1 + value["compute_serial"] * (design.cores - 1)) / design.cores
    storage = nothing
    for name in form.storages if form.storage == "ceilings" else ():
        storage = storage + (design.storage == name) * design.readers / value[f"storage {name}"]
    burden = 1 + value["burden"] * design.workers / design.cores if form.burden else 1.0
    over = {"no": np.inf, "spread": design.cores, "whole": 1.0}[form.shared]
    shared = 1 / (value["prepare"] * over) if form.prepares else 0.0
    return Lanes(
        compute=compute * burden,
        shared=(nothing + shared) * burden,
        exchange=nothing + _exchange(form, value, design),
        prepare=nothing + _prepare(form, value, design) if form.prepares else nothing,
        storage=storage,
    )


def _exchange(form: Form, value: dict[str, Floats], design: Design) -> Floats | float:
    if form.exchange == "none":
        return 0.0
    if form.exchange == "nodes":
        nodes = design.ranks / design.ranks_per_node
        inside: Floats = value["ring"] * (design.ranks_per_node - 1) / design.ranks_per_node
        return inside + value["nodes"] * (nodes - 1)
    moved: Floats = value["ring"] * (design.ranks - 1) / design.ranks
    return moved + value["ranks"] * (design.ranks - 1) if form.exchange == "ring_and_ranks" else moved


def _prepare(form: Form, value: dict[str, Floats], design: Design) -> Floats:
    at_once = parallelism(form, design)
    loss: Floats | float = 1.0
    if "serial" in value:
        loss = loss + value["serial"] * (at_once - 1)
    if "crowding" in value:
        loss = loss + value["crowding"] * at_once * (at_once - 1)
    # no exponent of use is larger, and a larger one overflows while a fit looks about
    returns = np.minimum(value.get("returns", 1.0), 4.0)
    prepare: Floats = loss / (value["prepare"] * at_once**returns)
    for name, factor in value.items():
        kind, _, level = name.partition(" ")
        if kind in ("depth", "latency"):
            column = design.depth if kind == "depth" else design.storage
            prepare = prepare * np.where(column == level, factor, 1.0)
    return prepare


def parallelism(form: Form, design: Design) -> Floats:
    """How many batches are prepared at once, at least 1; shape (settings,)."""
    at_once = np.full_like(design.cores, np.inf if form.parallel else 1.0)
    for name in form.parallel:
        at_once = np.minimum(at_once, getattr(design, name))
    if form.prefetch == "places":
        at_once = np.minimum(at_once, design.prefetch)
    return np.maximum(at_once, 1.0)


def in_turns(form: Form, design: Design) -> NDArray[np.bool_]:
    """Where a rank loads and trains by turns, so that nothing overlaps, shape (settings,)."""
    found = np.zeros(len(design.ranks), dtype=bool)
    if form.inline:
        found |= design.workers == 0
    if form.prefetch == "overlap":
        found |= design.prefetch == 0
    return found


def predict(form: Form, logs: Floats, design: Design) -> Floats:
    """Logarithms of the images/s of the whole job, shape (…, settings)."""
    found = lanes(form, logs, design)
    device = found.compute + found.exchange
    times = np.stack([device + found.shared, found.prepare, found.storage])
    slowest = np.max(times, axis=0)
    joined = slowest
    if form.join == "soft":
        exponent = np.minimum(1 + np.exp(logs[..., -1]), SHARPEST)[..., None]
        joined = slowest * np.sum((times / slowest) ** exponent, axis=0) ** (1 / exponent)
    turns = in_turns(form, design)
    if turns.any():
        joined = np.where(turns, device + found.prepare + found.storage, joined)
    result: Floats = np.log(design.ranks / joined)
    return result
