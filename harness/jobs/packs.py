"""Attempts of one pack, told apart: the scheduler knows one job, and their claims say which of them runs."""

from __future__ import annotations

from collections.abc import Collection

from harness.jobs.attempts import Workshop, has_started
from harness.jobs.ledger import Ledger
from harness.model.job import JobState, Observation
from harness.model.ledger import AttemptKey

WAITS = "waits for its turn in its pack"


class Packs:
    """What follows for an attempt from its place in a pack; of no consequence for any other attempt."""

    def __init__(self, workshop: Workshop, ledger: Ledger):
        self._workshop, self._ledger = workshop, ledger
        self._orders: dict[str, tuple[AttemptKey, ...]] = {}

    def holds(self, key: AttemptKey) -> bool:
        status = self._ledger.statuses[key]
        return bool(status.group) and status.index is None

    def has_others(self, key: AttemptKey, chosen: Collection[AttemptKey]) -> bool:
        """Whether the attempt's pack has others that have not ended and are not among ``chosen``."""
        group = self._ledger.statuses[key].group
        return self.holds(key) and any(
            status.group == group and not status.state.ended and other not in chosen
            for other, status in self._ledger.statuses.items()
        )

    def has_moved_on(self, key: AttemptKey) -> bool:
        """Whether an attempt behind this one has begun, so that the pack itself was not stopped in this one."""
        if not self.holds(key):
            return False
        return any(has_started(self._workshop.paths(other)) for other in self._behind(key))

    def of_attempt(self, key: AttemptKey, observation: Observation) -> Observation:
        """What an observation of the pack says of one attempt: while the pack runs, others wait."""
        is_running = self.holds(key) and observation.state is JobState.RUNNING
        if is_running and not has_started(self._workshop.paths(key)):
            return observation.model_copy(update={"state": JobState.QUEUED, "reason": WAITS})
        return observation

    def what_ended(self, key: AttemptKey, told: Observation | None) -> Observation | None:
        """The scheduler's word on the end of an attempt's job, as far as that is what ended the attempt: a pack that
        went on, or that came to its own end, did not."""
        if told is not None and self.holds(key):
            is_innocent = told.state is JobState.SUCCEEDED or self.has_moved_on(key)
            return None if is_innocent else told
        return told

    def is_nameless(self, key: AttemptKey) -> bool:
        """Whether an attempt was in a group of which it is not known any more how its job was made: in an array its
        element's id is then unknown, and any element alive may be it."""
        return self.holds(key) and key not in self._order(key)

    def _order(self, key: AttemptKey) -> tuple[AttemptKey, ...]:
        name = self._ledger.statuses[key].group
        if name not in self._orders:
            self._orders |= {group.name: group.attempts for group in self._workshop.groups_on_disk()}
        return self._orders.setdefault(name, ())

    def _behind(self, key: AttemptKey) -> tuple[AttemptKey, ...]:
        order = self._order(key)
        return order[order.index(key) + 1 :] if key in order else ()
