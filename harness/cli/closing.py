"""The end of ``harness run``: the table, the plots, and what they say in words."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from harness.layout import CampaignLayout

REPORT_LIBRARIES = {"matplotlib", "numpy", "orjson", "pandas", "plotly", "pyarrow", "scipy"}


def close(layout: CampaignLayout, console: Console) -> list[Path]:
    """Collect, tabulate, plot and summarise; returns the files made. Says so where the libraries for it are missing."""
    try:
        return _report(layout, console)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in REPORT_LIBRARIES:
            raise
        console.print(
            f"no table and no plots: {error.name} is not installed here (pip install -e '.[report]'); "
            "the evidence is complete, so `harness collect` can follow anywhere",
            markup=False,
            soft_wrap=True,
        )
        return []


def _report(layout: CampaignLayout, console: Console) -> list[Path]:
    from harness.analysis.campaigns import load_campaign
    from harness.analysis.collect import collect
    from harness.report.plots import draw_all
    from harness.report.prose import print_prose
    from harness.report.tables import render_terminal
    from harness.report.words import summary

    campaign = load_campaign(layout)
    with console.status("collecting and drawing …"):
        table = collect(layout)
        drawn = draw_all(layout, table, campaign)
    render_terminal(table, campaign, console)
    files = [layout.runs_csv, layout.runs_parquet, *drawn.files]
    for sentence in summary(table, campaign):
        print_prose(console, sentence, hanging=0)
    for path in files:
        console.print(f"  {_short(path)}", style="dim", markup=False, soft_wrap=True)
    return files


def _short(path: Path) -> str:
    """Relative to the working directory where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
