"""Runs in words: their label, the colour of their state, their time."""

from __future__ import annotations

from harness.cli.axis_words import axis_text
from harness.model.campaign import Campaign
from harness.model.job import JobState
from harness.model.ledger import AttemptKey

COLOURS = {
    JobState.SUCCEEDED: "green",
    JobState.FAILED: "red",
    JobState.TIMED_OUT: "red",
    JobState.LOST: "red",
    JobState.CANCELLED: "yellow",
}


def label(campaign: Campaign, key: AttemptKey) -> str:
    """A run in the words of its sweep: the varied axes, the repeat (a canary is one beyond the last), and the attempt
    where it is not the first."""
    axes = campaign.points[key.point_id].axes
    words = [f"{axis}={axis_text(axes, axis)}" for axis in campaign.varied] or [f"point {key.point_id[:8]}"]
    is_extra = key.repeat >= campaign.repeats
    repeat = [f"repeat {key.repeat + 1} of {campaign.repeats}"] if campaign.repeats > 1 and not is_extra else []
    repeat += ["canary"] if is_extra else []
    attempt = [f"attempt {key.attempt}"] if key.attempt > 1 else []
    return ", ".join([" ".join(words), *repeat, *attempt])


def clock_text(seconds: float) -> str:
    """Seconds for people: 8 s, 2 min 05 s, 3 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole // 60 % 60:02d} min"
