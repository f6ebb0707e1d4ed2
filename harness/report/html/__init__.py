"""A campaign's report: one HTML file that holds everything it needs, its charts' program too, and opens offline."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

import harness
from harness.analysis.points import point_results
from harness.errors import UserError, of_the_system
from harness.files import write_atomically
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.advice import Directives, advices
from harness.report.findings_list import list_findings
from harness.report.html import charts, content
from harness.report.request import requests
from harness.report.words import summary

_HERE = Path(__file__).parent


def build(
    layout: CampaignLayout,
    table: pd.DataFrame,
    campaign: Campaign,
    limits: Mapping[str, int] | None = None,
    directives: Directives | None = None,
) -> str:
    """The page. ``table`` is what :func:`harness.analysis.collect.collect` gave for this campaign just now; ``limits``
    and ``directives`` are what :func:`harness.report.advice.advices` takes."""
    results = point_results(table)
    points = content.points_data(layout, table, results, campaign)
    grid = content.points_table(results, campaign)
    drawn, missing = charts.all_charts(layout, table, campaign, points, [row.index for row in grid.rows])
    advice, not_asked = advices(table, campaign, limits, directives)
    environment = Environment(loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined)
    environment.filters["code"] = _code
    template = environment.get_template("page.html.j2")
    return template.render(
        campaign=campaign,
        version=harness.__version__,
        facts=content.facts(table, campaign),
        advice=advice,
        not_asked=not_asked,
        requests=requests(table, campaign),
        sentences=summary(table, campaign),
        findings=list_findings(table, campaign, ("error", "warning", "info")),
        charts=drawn,
        missing=missing,
        grid=grid,
        made=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        css=Markup((_HERE / "page.css").read_text(encoding="utf-8")),
        script=Markup((_HERE / "page.js").read_text(encoding="utf-8")),
        plotly=Markup(get_plotlyjs()),
        data=_embedded({"charts": drawn, "points": points}),
    )


def write(
    layout: CampaignLayout,
    table: pd.DataFrame,
    campaign: Campaign,
    path: Path,
    limits: Mapping[str, int] | None = None,
    directives: Directives | None = None,
) -> None:
    """Write the page.

    Raises:
        UserError: for a path that cannot be written.
    """
    page = build(layout, table, campaign, limits, directives)
    try:
        write_atomically(path, page.encode("utf-8", "replace"))
    except OSError as error:
        raise UserError(of_the_system(error, path)) from None


def _code(sentence: str) -> Markup:
    """A sentence whose parts in backticks are shown as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(sentence))))


def _embedded(value: Mapping[str, Any]) -> Markup:
    """JSON that may stand inside a script element: no text in it can end the element or begin a comment."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))
