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

    from harness.analysis.findings import Finding
    from harness.report.findings_list import PointFindings

EPILOG = """\b
Examples:
  harness check quickstart
  harness check quickstart --severity error --json
Exit code: 0 nothing of this severity or worse was found, 1 something was, 2 bad input.
"""
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
    from harness.analysis.collect import collect
    from harness.report.findings_list import list_findings

    shown = _SEVERITIES[: _SEVERITIES.index(severity) + 1]
    listed = list_findings(collect(layout), load_campaign(layout), shown)
    if as_json:
        records = [
            {"point_id": one.point_id, "point": one.label, **asdict(finding)}
            for one in listed
            for finding in one.findings
        ]
        click.echo(json.dumps(records, ensure_ascii=False, indent=1, default=str))
    else:
        _print(listed, Console(soft_wrap=True))
    raise SystemExit(1 if listed else 0)


def _print(listed: list[PointFindings], console: Console) -> None:
    from rich.text import Text

    if not listed:
        console.print("No findings: every number stands as it is.")
    for one in listed:
        console.print(Text(f"{one.label}  ({one.point_id}, {one.where})", style="bold"))
        for finding in one.findings:
            console.print(_line(finding))


def _line(finding: Finding) -> object:
    from rich.text import Text

    return Text.assemble("  ", (finding.code, _COLOURS[finding.severity]), f"  {finding}")
