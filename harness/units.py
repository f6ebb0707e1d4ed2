"""Durations and sizes: from the words people write to seconds and bytes, and back."""

from __future__ import annotations

import re

_DURATION_UNITS_S = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_SIZE_UNITS = {"b": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
#: more digits are no time and no memory of this world, and overflow what reckons with them
_DIGITS = r"\d{1,15}"


def parse_duration_s(text: str) -> int:
    """Seconds in ``HH:MM:SS``, ``MM:SS``, ``D-HH:MM:SS`` or ``90s``, ``30m``, ``2h``, ``1d``.

    A bare number is refused: schedulers read it differently (PBS seconds, Slurm minutes).

    Raises:
        ValueError: with the accepted forms in its message.
    """
    text = text.strip()
    if match := re.fullmatch(rf"(?:({_DIGITS})-)?({_DIGITS}):([0-5]?\d)(?::([0-5]?\d))?", text):
        days, first, second, third = match.groups()
        if third is None:
            if days is not None:
                raise ValueError(f"{text!r} is no duration: with days, write D-HH:MM:SS")
            return int(first) * 60 + int(second)
        return int(days or 0) * 86400 + int(first) * 3600 + int(second) * 60 + int(third)
    if match := re.fullmatch(rf"({_DIGITS})\s*(s|min|m|h|d)", text):
        return int(match[1]) * _DURATION_UNITS_S[match[2]]
    raise ValueError(f'{text!r} is no duration: write "HH:MM:SS" in quotes, or 90s, 30m, 2h, 1d')


def format_duration(seconds: float) -> str:
    """``HH:MM:SS``, the form that PBS, Torque and Slurm all read alike; parts of a second round up."""
    whole = int(seconds) + (seconds > int(seconds))
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def parse_bytes(text: str) -> int:
    """Bytes in ``80gb``, ``80GiB``, ``512M``: all powers of 1024, as schedulers count memory.

    Raises:
        ValueError: with the accepted forms in its message.
    """
    match = re.fullmatch(rf"({_DIGITS}(?:\.\d+)?)\s*([kmgtp])?(i?b)?", text.strip().lower())
    if not match or not (match[2] or match[3]):
        raise ValueError(f"{text!r} is no size: write a number with a unit, such as 80gb, 512mb or 4GiB")
    return int(float(match[1]) * 1024 ** _SIZE_UNITS[match[2] or "b"])


def format_bytes(count: float) -> str:
    """A size for people, with powers of 1024 named as such: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("unreachable")
