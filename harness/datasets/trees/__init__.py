"""Making the sets that are trees of image files: one file for each format, with a common way of cutting the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harness.datasets.manifest import Request
from harness.datasets.parts import Produced

PART_IMAGES = 64


@dataclass(frozen=True)
class TreePart:
    """Images ``start`` to ``stop`` of a split, to be written under ``root``."""

    root: Path
    request: Request
    split: str
    start: int
    stop: int


@dataclass(frozen=True)
class TreeMaker:
    """A format's maker: ``images`` writes a part, ``extras`` the tables and oddities around the images."""

    images: Callable[[TreePart], list[Produced]]
    extras: Callable[[Path, Request], list[Produced]]
    mean_bytes: int


def cut(root: Path, request: Request) -> list[TreePart]:
    """The work in parts of equal size: small enough to share out and to redo, large enough to journal."""
    return [
        TreePart(root, request, split, start, min(start + PART_IMAGES, count))
        for split, count in request.counts.items()
        for start in range(0, count, PART_IMAGES)
    ]


def spread(total: int, weights: list[float]) -> list[int]:
    """``total`` images over classes in proportion to ``weights``, at least one for each."""
    whole = sum(weights)
    exact = [total * weight / whole for weight in weights]
    counts = [max(1, int(value)) for value in exact]
    by_remainder = sorted(range(len(exact)), key=lambda k: (int(exact[k]) - exact[k], k))
    missing = total - sum(counts)
    for k in range(abs(missing)):
        place = by_remainder[k % len(counts)] if missing > 0 else max(range(len(counts)), key=lambda c: counts[c])
        counts[place] += 1 if missing > 0 else -1
    return counts
