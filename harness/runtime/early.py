"""A signal that comes while Python still imports, held until there is evidence that it can be written into.

Imports take some tenths of a second, and mpirun leaves a rank about a second between TERM and KILL.
"""

from __future__ import annotations

import signal
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)
_held: list[int] = []


def hold() -> None:
    """Keep the signals that end a rank, from here on; a later handler takes over."""
    for number in SIGNALS:
        signal.signal(number, _keep)


def _keep(number: int, _frame: FrameType | None) -> None:
    _held.append(number)


def release() -> None:
    """Let them end the process again, as they do by themselves: there is nothing left to write."""
    if signal.getsignal(signal.SIGTERM) is _keep:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is _keep:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def first() -> int | None:
    """The first signal that was held, if any came."""
    return _held[0] if _held else None
