"""``harness recommend``: how many cores, workers, nodes, and where the data; or why the data do not tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.campaign_choice import campaign_options, chosen
from harness.errors import UserError, nearest, of_the_system

if TYPE_CHECKING:
    from rich.console import Console

    from harness.analysis.capacity import Group
    from harness.analysis.recommend import Answer, Refused
    from harness.cli.request_lines import Request

EPILOG = """\b
Examples:
  harness recommend mission
  harness recommend mission --at-most cpu_cores=10 --share 0.9
  harness recommend alcf_threads_prefetch --queue workq -o request.sh
\b
A model is fitted to the campaign's trusted points; docs/analysis.md explains it and its limits.
Exit codes: 0 every question was answered, 1 at least one was refused (the reason is given), 2 bad input.
"""
LIMITED = ("cpu_cores", "workers", "parallel_threads")


@click.command(epilog=EPILOG)
@campaign_options
@click.option("--share", type=click.FloatRange(0.5, 1.0), default=0.95, show_default=True, help="Share of the ceiling.")
@click.option(
    "--at-most", "limits", multiple=True, metavar="KNOB=N", help="Ask for no more of cpu_cores (of a node), workers …"
)
@click.option("--queue", metavar="NAME", help="Queue that the directives are for; default: the campaign's.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the job script's head here; on this machine, a sweep.",
)
@click.option("--json", "as_json", is_flag=True, help="Print answers, intervals and parameters as JSON.")
def recommend(
    campaign: str,
    results: Path | None,
    share: float,
    limits: tuple[str, ...],
    queue: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Say how many cores, workers and nodes to ask for, and where to put the data."""
    layout = chosen(campaign, results)
    from rich.console import Console

    from harness.cli.request_lines import request_of
    from harness.jobs.campaign import read_cluster
    from harness.report.recommend_words import as_values

    described, groups = questions(layout)
    cluster = read_cluster(layout.cluster)
    most = {"cpu_cores": cluster.node.cores} | limits_of(limits)
    found = [(group, answered(group, most, share)) for group in groups]
    requests = [request_of(answer, group, described, cluster, queue) for group, answer in found]
    if as_json:
        values = [
            as_values(answer, group) | ({"request": wanted.as_values()} if wanted else {})
            for (group, answer), wanted in zip(found, requests, strict=True)
        ]
        click.echo(json.dumps(values, ensure_ascii=False, indent=1))
    else:
        console = Console(soft_wrap=True, highlight=False, emoji=False)
        for (group, answer), wanted in zip(found, requests, strict=True):
            show(console, group, answer, wanted)
    if output is not None:
        write_head(output, requests)
    raise SystemExit(0 if found and all(wanted is not None for wanted in requests) else 1)


def questions(layout: Any) -> tuple[Any, list[Group]]:
    """The campaign and its groups of comparable points."""
    from harness.analysis.campaigns import load_campaign
    from harness.analysis.capacity import groups_of
    from harness.analysis.points import point_results
    from harness.cli.collected import collected

    campaign = load_campaign(layout)
    scopes = {p.axes.storage: p.placement.data_scope for p in campaign.points.values()}
    return campaign, groups_of(point_results(collected(layout)), campaign.varied, scopes)


def answered(group: Group, limits: dict[str, int], share: float) -> Answer | Refused:
    from harness.analysis.recommend import recommend as recommended

    return recommended(group, limits, share)


def limits_of(texts: tuple[str, ...]) -> dict[str, int]:
    """``cpu_cores=8`` and the like.

    Raises:
        UserError: for another knob, or no whole number above zero.
    """
    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        if name not in LIMITED:
            raise UserError(f"--at-most {text}: {nearest(name, list(LIMITED))}")
        if not number.isdecimal() or int(number) < 1:
            raise UserError(f"--at-most {text}: {number!r} is no whole number above zero, such as {name}=8")
        found[name] = int(number)
    return found


def show(console: Console, group: Group, answer: Answer | Refused, wanted: Request | None) -> None:
    from rich.text import Text

    from harness.analysis.recommend import Refused
    from harness.report import recommend_words as words
    from harness.report.prose import print_prose

    console.print(Text(words.headline(group), "bold"))
    refused = isinstance(answer, Refused)
    lines = words.refusal_lines(answer, group) if isinstance(answer, Refused) else words.answer_lines(answer, group)
    for line in lines:
        head, colon, rest = line.partition(":")
        print_prose(console, Text.assemble((head + colon, "yellow" if refused else "cyan"), rest), indent=2)
    if not isinstance(answer, Refused) and len(answer.choices) > 1:
        _show_choices(console, answer)
    for line in wanted.lines if wanted else ():
        console.print(Text("    " + line))
    for reason in wanted.refusals if wanted else ():
        print_prose(console, Text(f"The cluster would refuse it: {reason}", "yellow"), indent=2)
    console.print()


def _show_choices(console: Console, answer: Answer) -> None:
    from rich.table import Table

    from harness.report.recommend_words import CHOICE_HEADER, choice_row

    table = Table(box=None, padding=(0, 1, 0, 1))
    for name in CHOICE_HEADER:
        table.add_column(name, justify="left" if name == "storage" else "right")
    for choice in answer.choices:
        table.add_row(*choice_row(choice))
    console.print(table, soft_wrap=False)


def write_head(path: Path, requests: list[Request | None]) -> None:
    """The job script's head of the only answer.

    Raises:
        UserError: where there is none, or more than one, or the file cannot be written.
    """
    from harness.files import write_atomically

    given = [wanted for wanted in requests if wanted is not None and wanted.lines]
    if len(given) != 1:
        raise UserError(
            f"-o needs exactly one recommendation that the cluster takes, and there are {len(given)}; none was written"
        )
    try:
        write_atomically(path, ("\n".join([*given[0].head, *given[0].lines]) + "\n").encode())
    except OSError as error:
        raise UserError(of_the_system(error, path)) from None
