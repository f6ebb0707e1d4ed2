"""A first look at a run's speed while the campaign goes on; the table computes the true figure."""

from __future__ import annotations

from harness.files import read_json_lines
from harness.layout import AttemptLayout

#: the part of a run's steps, at its beginning, that is left out as warm-up here
SKIPPED_SHARE = 0.25


def rough_images_per_s(paths: AttemptLayout, ranks: int) -> float | None:
    """Fresh images per second over all ranks, as in the table, but for the first quarter; None: nothing was timed."""
    rates = [_of_rank(paths, rank) for rank in range(ranks)]
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known and len(known) == ranks else None


def _of_rank(paths: AttemptLayout, rank: int) -> float | None:
    begins: list[float] = []
    ends: list[float] = []
    images: list[int] = []
    for record in read_json_lines(paths.events(rank)):
        if record.get("event") == "steps":
            begins += record.get("begin_s", [])
            ends += record.get("end_s", [])
            images += record.get("fresh", [])
    first = int(len(ends) * SKIPPED_SHARE)
    if len(ends) <= first or not len(begins) == len(ends) == len(images):
        return None
    elapsed_s = ends[-1] - begins[first]
    return sum(images[first:]) / elapsed_s if elapsed_s > 0 else None
