"""Names of attempts and jobs, apart from the vocabulary's models: what knows paths alone need not import pydantic."""

from __future__ import annotations

import hashlib

ID_LENGTH = 16
#: numbers of repeats, attempts and ranks have at most so many digits; greater ones stand only in damaged files
NUMBER_DIGITS = 9
NUMBER_LIMIT = 10**NUMBER_DIGITS
_NAME_DIGITS = 8
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


def attempt_name(repeat: int, attempt: int) -> str:
    """Directory name of an attempt under its point: ``r0a1`` is the first try at repeat 0."""
    return f"r{repeat}a{attempt}"


def job_name(campaign: str, point_id: str, repeat: int, attempt: int, campaign_uid: str = "") -> str:
    """The scheduler's name of a job: unique per campaign, letters and digits only, at most 15 of them.

    Fifteen is the limit of Torque's qsub -N. Reconciliation after a crash looks jobs up by this name, so it hashes
    the campaign too: two campaigns may hold the same point, and two checkouts of one user the same campaign's name.
    The user's own words never enter it.
    """
    return f"h{_word(campaign, campaign_uid, point_id)}{attempt_name(repeat, attempt)}"


def group_job_name(campaign: str, number: int, campaign_uid: str = "") -> str:
    """The scheduler's name of an array or a pack: as :func:`job_name`, for the group of this number (from 1)."""
    return f"h{_word(campaign, campaign_uid, 'group')}g{number}"


def _word(campaign: str, campaign_uid: str, subject: str) -> str:
    """Eight letters and digits that stand for the subject of a campaign."""
    parts = [campaign, *([campaign_uid] if campaign_uid else []), subject]
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    number, word = int.from_bytes(digest[:8], "big"), ""
    for _ in range(_NAME_DIGITS):
        number, digit = divmod(number, 36)
        word += _BASE36[digit]
    return word
