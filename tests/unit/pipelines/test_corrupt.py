"""Lost images: named up to a number, counted, and the end of the run unless they may be skipped."""

from __future__ import annotations

import pytest

from harness.errors import UserError
from harness.pipelines.corrupt import NAMED, Losses, Lost


@pytest.fixture
def notes():
    return []


def losses(notes, skip=True):
    return Losses(skip, lambda kind, **facts: notes.append((kind, facts["code"], facts["evidence"])))


def test_each_is_named_once_and_counted_each_time(notes):
    account = losses(notes)
    account.add([Lost("a.jpg", "cut off"), Lost("b.jpg", "empty")])
    account.add([Lost("a.jpg", "cut off")])
    account.summarise()
    assert notes == [
        ("finding", "corrupt_image", {"file": "a.jpg", "reason": "cut off"}),
        ("finding", "corrupt_image", {"file": "b.jpg", "reason": "empty"}),
        ("finding", "corrupt_images", {"skipped": 3, "files": 2}),
    ]


def test_many_are_counted_but_not_all_named(notes):
    account = losses(notes)
    account.add(Lost(f"{number}.jpg", "cut off") for number in range(NAMED + 5))
    account.summarise()
    account.summarise()
    assert len(notes) == NAMED + 1
    assert notes[-1] == ("finding", "corrupt_images", {"skipped": NAMED + 5, "files": NAMED + 5})


def test_nothing_lost_is_not_worth_a_word(notes):
    losses(notes).summarise()
    assert notes == []


def test_the_first_ends_the_run_where_none_may_be_skipped(notes):
    with pytest.raises(UserError, match="a.jpg: cut off; .* corrupt: skip"):
        losses(notes, skip=False).add([Lost("a.jpg", "cut off")])
