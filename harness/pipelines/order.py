"""Which samples make up which batch of a rank: epochs, each in an order of its own, laid end to end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Order:
    """The samples of one rank's batches, numbered from 0 without end.

    Each epoch is a fresh permutation of the ``samples``; rank ``r`` of ``w`` takes the positions r, r+w, r+2w, … So
    over every epoch's positions each sample is delivered once over all ranks, the ranks' parts are disjoint, and batch
    ``i`` of all ranks together is batch ``i`` of a single rank with a batch size ``w`` times as large. Every batch is
    full: it may reach from one epoch into the next. Example echoing takes each of a rank's samples ``echo`` times in a
    row.
    """

    def __init__(self, samples: int, batch_size: int, *, rank: int, world: int, seed: int, echo: int = 1):
        self._samples = samples
        self._batch_size = batch_size
        self._rank = rank
        self._world = world
        self._seed = seed
        self._echo = echo
        self._orders: dict[int, NDArray[np.int64]] = {}

    def __len__(self) -> int:
        """Batches that hold this rank's part of an epoch, the last perhaps reaching into the next."""
        return -(-self._samples * self._echo // (self._batch_size * self._world))

    def indices(self, index: int) -> NDArray[np.int64]:
        """Which samples make up batch ``index``, ``(b,)``; safe to call from several threads at once."""
        numbers = np.arange(index * self._batch_size, (index + 1) * self._batch_size) // self._echo
        places = numbers * self._world + self._rank
        epochs, offsets = np.divmod(places, self._samples)
        chosen = np.empty(self._batch_size, np.int64)
        for epoch in np.unique(epochs):
            here = epochs == epoch
            chosen[here] = self._order(int(epoch))[offsets[here]]
        return chosen

    def copies(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Batch ``index`` without its copies: ``(samples (k,), which of them (b,))``."""
        numbers = np.arange(index * self._batch_size, (index + 1) * self._batch_size) // self._echo
        which = numbers - numbers[0]
        return self.indices(index)[np.searchsorted(which, np.arange(which[-1] + 1))], which

    def fresh(self, index: int) -> int:
        """How many samples of batch ``index`` are the first copies."""
        first, end = index * self._batch_size, (index + 1) * self._batch_size
        return -(-end // self._echo) - -(-first // self._echo)

    def random(self, index: int) -> np.random.Generator:
        """The random numbers that belong to batch ``index`` of this rank, whoever makes it."""
        return np.random.default_rng((self._seed, 1, self._rank, index))

    def _order(self, epoch: int) -> NDArray[np.int64]:
        # Two threads may compute one permutation, which is harmless; the dict is replaced whole, so readers are safe.
        order = self._orders.get(epoch)
        if order is None:
            order = np.random.default_rng((self._seed, 0, epoch)).permutation(self._samples)
            self._orders = {old: kept for old, kept in self._orders.items() if old >= epoch - 1} | {epoch: order}
        return order
