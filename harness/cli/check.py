"""``harness check``: what makes a campaign's numbers doubtful, and what to do about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.campaign_choice import campaign_options, chosen

if TYPE_CHECKING:
    from rich.console import Console

    from harness.report.findings_list import FindingGroup

EPILOG = """\b
Examples:
  harness check quickstart
  harness check quickstart --severity error --json
Exit code: 0 nothing of this severity or worse was found, 1 something was, 2 bad input.
"""
#: Points named under a finding in the terminal.
MOST_POINTS = 10
_SEVERITIES = ("error", "warning", "info")
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


@click.command(epilog=EPILOG)
@campaign_options
@click.option(
    "--severity", type=click.Choice(_SEVERITIES), default="warning", show_default=True, help="Least severity shown."
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def check(campaign: str, results: Path | None, severity: str, as_json: bool) -> None:
    """List findings: what makes a campaign's numbers doubtful, and what to do."""
    layout = chosen(campaign, results)
    from rich.console import Console

    from harness.analysis.campaigns import load_campaign
    from harness.cli.collected import collected
    from harness.report.findings_list import list_findings

    shown = _SEVERITIES[: _SEVERITIES.index(severity) + 1]
    listed = list_findings(collected(layout), load_campaign(layout), shown)
    if as_json:
        click.echo(json.dumps([asdict(group) for group in listed], ensure_ascii=False, indent=1, default=str))
    else:
        _print(listed, Console(emoji=False, highlight=False))
    raise SystemExit(1 if listed else 0)


def _print(groups: list[FindingGroup], console: Console) -> None:
    from rich.text import Text

    from harness.report.prose import print_prose

    if not groups:
        console.print("No findings of this severity or worse.")
    for group in groups:
        head = f"  {group.message}, at {len(group.occurrences)} point{'s' * (len(group.occurrences) > 1)}"
        print_prose(console, Text.assemble((group.code, _COLOURS[group.severity]), head))
        for occurrence in group.occurrences[:MOST_POINTS]:
            print_prose(console, str(occurrence), indent=4)
        if len(group.occurrences) > MOST_POINTS:
            print_prose(console, f"… and {len(group.occurrences) - MOST_POINTS} more; --json names all", indent=4)
        if group.advice:
            print_prose(console, f"→ {group.advice}", indent=4)
