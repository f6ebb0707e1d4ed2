"""``harness next``: the points of a sweep worth measuring next, by what they would tell for their node-hours."""

from __future__ import annotations

import json

import click

from harness.cli.options import SweepChoice, sweep_options

EPILOG = """\b
Examples:
  harness next configs/sweeps/mission.yml --cluster nus-volta
  harness next configs/sweeps/alcf_threads_prefetch.yml --count 4 --json
\b
`harness run SWEEP --adaptive` measures them, one after the other, until the recommendation is settled.
Exit codes: 0 there is something to measure, or everything is settled; 2 bad input.
"""


@click.command("next", epilog=EPILOG)
@sweep_options
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="Points to name at once.")
@click.option("--json", "as_json", is_flag=True, help="Print point ids, axes and reasons as JSON.")
def next_(choice: SweepChoice, count: int, as_json: bool) -> None:
    """Name the points whose measurement would narrow the recommendation most, for each node-hour."""
    from rich.console import Console

    from harness.cli.adaptive_run import announce, questions_of

    planned, questions = questions_of(choice, count)
    if not as_json:
        console = Console(highlight=False, emoji=False)
        for question in questions:
            announce(console, planned, question)
        return
    values = [
        {
            "group": question.label,
            "settled": question.decision.settled,
            "reason": question.decision.reason,
            "measured": len(question.measured),
            "without_rate": len(question.without_rate),
            "planned": len(question.candidates),
            "next": [
                {"point_id": name, "axes": planned.points[name].axes.model_dump(exclude_defaults=True)}
                for name in question.decision.points
            ],
        }
        for question in questions
    ]
    click.echo(json.dumps(values, ensure_ascii=False, indent=1))
