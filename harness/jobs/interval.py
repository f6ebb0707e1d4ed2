"""Questions that come ever more rarely while nothing changes."""

from __future__ import annotations


class Interval:
    """The time between two questions: short after something happened, then growing up to ``most_s``."""

    def __init__(self, first_s: float, most_s: float, factor: float = 1.5):
        self.first_s, self.most_s, self.factor = first_s, most_s, factor
        self.current_s, self.next_s = first_s, 0.0

    def is_due(self, now: float) -> bool:
        return now >= self.next_s

    def asked(self, now: float) -> None:
        self.next_s = now + self.current_s
        self.current_s = min(self.current_s * self.factor, self.most_s)

    def restart(self, now: float) -> None:
        self.current_s = self.first_s
        self.next_s = min(self.next_s, now + self.first_s)
