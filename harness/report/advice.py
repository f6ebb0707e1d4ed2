"""What the capacity model recommends, question by question, ready to be shown: answers first, refusals with reasons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from harness.analysis.capacity import Group, groups_of
from harness.analysis.points import point_results
from harness.analysis.recommend import Answer, Refused, recommend
from harness.model.campaign import Campaign
from harness.report.recommend_words import CHOICE_HEADER, answer_lines, choice_row, headline, refusal_lines

#: More questions than this are not asked: each costs seconds of fitting.
MOST_QUESTIONS = 12
#: What a reader must see at once; the rest says how sure it is.
FIRST = ("Ask for", "Expect", "Limited by", "No recommendation", "Fastest measured", "Next")

Directives = Callable[[Answer, Group], Sequence[str]]


@dataclass(frozen=True)
class Advice:
    """``first`` and ``more`` are (what it is, in words); ``choices`` the table of layouts, its header first, where
    there are several; ``directives`` lines of a job script."""

    title: str
    answered: bool
    first: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...]
    choices: tuple[tuple[str, ...], ...] = ()
    directives: tuple[str, ...] = ()


def advices(
    table: pd.DataFrame,
    campaign: Campaign,
    limits: Mapping[str, int] | None = None,
    directives: Directives | None = None,
) -> tuple[list[Advice], int]:
    """The advice of each question, answers before refusals, and how many further questions were not asked.

    ``limits`` are the most of each knob that may be asked for; ``directives`` gives an answer's job-script lines.
    """
    scopes = {p.axes.storage: p.placement.data_scope for p in campaign.points.values()}
    groups = groups_of(point_results(table), campaign.varied, scopes)
    asked = sorted(groups, key=lambda group: -len(group.observations))[:MOST_QUESTIONS]
    found = [_advice(group, recommend(group, limits), directives) for group in groups if group in asked]
    return sorted(found, key=lambda one: not one.answered), len(groups) - len(asked)


def _advice(group: Group, found: Answer | Refused, directives: Directives | None) -> Advice:
    if isinstance(found, Refused):
        first, more = _parted(refusal_lines(found, group))
        return Advice(headline(group), False, first, more)
    first, more = _parted(answer_lines(found, group))
    choices = (CHOICE_HEADER, *(tuple(choice_row(one)) for one in found.choices)) if len(found.choices) > 1 else ()
    lines = tuple(directives(found, group)) if directives else ()
    return Advice(headline(group), True, first, more, choices, lines)


def _parted(lines: Sequence[str]) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    pairs = [tuple(line.split(": ", 1)) for line in lines]
    first = tuple((name, said) for name, said in pairs if name in FIRST)
    return first, tuple((name, said) for name, said in pairs if name not in FIRST)
