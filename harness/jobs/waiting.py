"""What those who wait for a campaign are told meanwhile, each thing once: why nothing begins, which jobs are held, and
that the scheduler does not answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from harness.jobs.causes import cause_of, next_step
from harness.jobs.ledger import Ledger
from harness.jobs.site import Site
from harness.jobs.watch import Watcher
from harness.model.job import JobState
from harness.model.ledger import AttemptStatus

#: a job that waits for nothing begins within a moment, and a busy server answers
TURN_S = 10.0
#: what differs between two tellings of one reason: amounts, and the nodes that it names
_DETAILS = re.compile(r"\d+|\(.*|,.*")


class Waiting:
    """``clock`` is monotonic seconds; ``scheduler`` is the cluster's, whose words a next step is given in."""

    def __init__(
        self,
        site: Site,
        ledger: Ledger,
        watcher: Watcher,
        clock: Callable[[], float],
        say: Callable[[str], None],
        scheduler: str,
    ):
        self._site, self._ledger, self._watcher, self._clock = site, ledger, watcher, clock
        self._say, self._scheduler = say, scheduler
        self._said: set[str] = set()
        self._idle_since = self._answered = clock()
        self._is_away = False

    def look(self) -> None:
        """Say what is new, after the site was asked or not."""
        self._tell_of_silence()
        now, active = self._clock(), [self._ledger.statuses[key] for key in self._watcher.active()]
        waiting = self._watcher.waiting()
        self._tell_of_held([status for status in waiting if cause_of(status) == "held"])
        if not active or any(status.state is JobState.RUNNING for status in active):
            self._idle_since = now
        elif now - self._idle_since > TURN_S:
            self._tell_why([status for status in waiting if cause_of(status) != "held"])

    def for_room(self, lacking: str) -> None:
        """Our own limit leaves no room, and nothing of ours is under way whose end could be seen to make some."""
        if not self._watcher.active():
            self._once("room", f"waiting for room in the queue: {lacking}")

    def refused(self, message: str, again_s: float) -> None:
        """The scheduler takes no more jobs for the moment."""
        words = _line(message)
        self._once(words, f"not taken for now: {words}; offered again every {again_s:.0f} s")

    def unclear(self, message: str) -> None:
        """A submission that may have happened."""
        words = _line(message)
        self._once(
            words, f"no clear answer to a submission: {words}; its job is looked for by name before it is repeated"
        )

    def _once(self, what: str, text: str) -> None:
        if what not in self._said:
            self._said.add(what)
            self._say(text)

    def _tell_of_silence(self) -> None:
        now = self._clock()
        if not self._site.silence:
            self._answered = now
            if self._is_away:
                self._is_away = False
                self._say("the scheduler answers again")
        elif now - self._answered > TURN_S and not self._is_away:
            self._is_away = True
            self._say(f"the scheduler does not answer: {_line(self._site.silence)}; it is asked until it does")

    def _tell_of_held(self, held: list[AttemptStatus]) -> None:
        if held:
            first = held[0]
            count = "1 job is" if len(held) == 1 else f"{len(held)} jobs are"
            why = f" ({first.reason})" if first.reason else ""
            self._once(f"held {first.reason}", f"{count} held{why}: {next_step(first, self._scheduler, '')}")

    def _tell_why(self, waiting: list[AttemptStatus]) -> None:
        if self._site.is_local:
            self._once("turn", "waiting for CPUs: other local jobs hold them, or need the machine alone")
            return
        reasons = Counter(status.reason for status in waiting if status.reason)
        if fresh := {kind for reason in reasons if (kind := _DETAILS.sub("", reason)) not in self._said}:
            self._said |= fresh
            words = ", ".join(f"{_line(reason)} ({count})" for reason, count in reasons.most_common())
            self._say(f"nothing of ours runs yet; the scheduler says: {words}")


def _line(text: str) -> str:
    return " ".join(text.split())
