"""An adaptive campaign: what to measure next of a sweep, and the loop that measures it until the answer is settled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from harness.cli.campaign_run import Wishes, run_sweep
from harness.cli.options import SweepChoice
from harness.cli.outcome import Outcome
from harness.errors import UserError

if TYPE_CHECKING:
    from harness.analysis.adaptive import Candidate, Decision
    from harness.analysis.capacity import Group
    from harness.model.campaign import Campaign


@dataclass(frozen=True)
class Question:
    """Points of a sweep that differ in knobs alone, what was measured of them, and what to measure next.

    ``without_rate``: of those measured, the ones whose runs gave no rate; they are not proposed again.
    """

    label: str
    candidates: Sequence[Candidate]
    measured: frozenset[str]
    without_rate: frozenset[str]
    decision: Decision


def questions_of(choice: SweepChoice, count: int = 1) -> tuple[Campaign, list[Question]]:
    """The plan of a sweep, and a question for each group of its comparable points.

    Raises:
        UserError: bad input, or nothing that could run.
    """
    from harness.analysis.campaigns import load_campaign
    from harness.analysis.collect import collect
    from harness.analysis.points import point_results

    planned, _ = choice.plan()
    layout = choice.layout(planned)
    results, minutes = [], {}
    if layout.meta.is_file():
        table = collect(layout)
        known = set(planned.points) & set(load_campaign(layout).points)
        results = [r for r in point_results(table) if r.point_id in known]
        minutes = {str(k): float(v) for k, v in table.groupby("point_id")["job_s"].mean().items() if v == v}
    grouped = _grouped(planned)
    return planned, [_question(planned, ids, results, minutes, count) for ids in grouped.values()]


def _grouped(planned: Campaign) -> dict[str, list[str]]:
    """Ids of the planned points by what they have in common beside the knobs."""
    from harness.analysis.capacity import BESIDE

    found: dict[str, list[str]] = {}
    for point_id, point in planned.points.items():
        key = point.axes.model_dump_json(exclude=set(BESIDE))
        found.setdefault(key, []).append(point_id)
    return found


def _question(
    planned: Campaign, ids: Sequence[str], results: Sequence[object], lasted_s: Mapping[str, float], count: int
) -> Question:
    from harness.analysis.adaptive import decide
    from harness.analysis.points import PointResult

    here = set(ids)
    mine = [r for r in results if isinstance(r, PointResult) and r.point_id in here]
    candidates = _candidates(planned, ids, lasted_s)
    measured = frozenset(r.point_id for r in mine)
    failed = frozenset(r.point_id for r in mine if not r.runs)
    group = _group(planned, ids, mine)
    return Question(group.label, candidates, measured, failed, decide(group, candidates, measured, count=count))


def _group(planned: Campaign, ids: Sequence[str], results: Sequence[object]) -> Group:
    """What was measured; an empty group that still has its name where nothing was."""
    from harness.analysis.capacity import BESIDE, Group, groups_of, key_of
    from harness.analysis.points import PointResult

    known = [r for r in results if isinstance(r, PointResult)]
    scopes = {p.axes.storage: p.placement.data_scope for p in planned.points.values()}
    axes = planned.points[ids[0]].axes
    values = axes.model_dump(exclude={"options"}) | {f"options.{k}": v for k, v in axes.options.items()}
    named = [n for n in planned.varied if n not in BESIDE] or ["workload", "framework"]
    key = key_of(values, named)
    groups = groups_of(known, planned.varied, scopes)
    if not groups:
        return Group(key, values, (), (), False, True)
    return replace(groups[0], key=key)


def _candidates(planned: Campaign, ids: Sequence[str], lasted_s: Mapping[str, float]) -> list[Candidate]:
    """A point's hours are those that it took, else the mean of those measured, else its walltime."""
    from harness.analysis.adaptive import Candidate
    from harness.analysis.capacity import setting_of

    usual = sum(lasted_s.values()) / len(lasted_s) if lasted_s else None
    scopes = {p.axes.storage: p.placement.data_scope for p in planned.points.values()}
    found = []
    for point_id in ids:
        point = planned.points[point_id]
        seconds = lasted_s.get(point_id) or usual or float(point.placement.walltime_s)
        hours = point.placement.nodes * seconds * planned.repeats / 3600
        found.append(Candidate(point_id, setting_of(point.axes.model_dump(), scopes), hours))
    return found


def run_adaptively(choice: SweepChoice, wishes: Wishes, console: Console) -> Outcome:
    """Measure what narrows the recommendation, until it is settled for every group of points.

    Raises:
        UserError: bad input, or --fresh, whose earlier results would settle the answer before anything is measured.
    """
    if wishes.fresh:
        raise UserError("--adaptive goes by what was measured, and --fresh sets that aside; leave one of them out")
    outcome: Outcome | None = None
    while True:
        planned, questions = questions_of(choice)
        chosen = frozenset(point for question in questions for point in question.decision.points)
        if not chosen:
            break
        for question in questions:
            announce(console, planned, question)
        outcome = run_sweep(choice, replace(wishes, points=chosen), console)
        if outcome.interrupted:
            return outcome
    measured = frozenset(point for question in questions for point in question.measured)
    outcome = outcome or run_sweep(choice, replace(wishes, points=measured), console)
    for question in questions:
        announce(console, planned, question)
    return outcome


def announce(console: Console, planned: Campaign, question: Question) -> None:
    """What to measure next, or what is settled and what that saved."""
    from harness.analysis.adaptive import saving
    from harness.analysis.scaling import label
    from harness.report.prose import print_prose

    decision = question.decision
    head = Text.assemble((question.label, "bold"), f": {decision.reason}")
    print_prose(console, head)
    if failed := len(question.without_rate):
        points = "1 point has no rate and is" if failed == 1 else f"{failed} points have no rate and are"
        print_prose(console, f"{points} not measured again here: `harness status {planned.name}` says why", indent=2)
    for point in decision.points:
        values = planned.points[point].axes.model_dump()
        console.print(f"  next  {label({n: values.get(n) for n in planned.varied if n in values})}", markup=False)
    if decision.settled:
        spent, whole = saving(question.candidates, question.measured)
        percent = f"{spent / whole:.0%}" if whole else "–"
        print_prose(
            console,
            f"measured {len(question.measured)} of {len(question.candidates)} points, "
            f"{spent:.3g} of {whole:.3g} node-hours ({percent}); `harness recommend {planned.name}` gives the answer",
            indent=2,
        )
