"""A campaign's table for those verbs that show it, with what could not be read told on stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import pandas as pd

    from harness.layout import CampaignLayout


def collected(layout: CampaignLayout) -> pd.DataFrame:
    """As :func:`harness.analysis.collect.collect`; what belongs to no run and is left out is told."""
    from harness.analysis.collect import collect_rows
    from harness.analysis.rows_table import to_frame

    damage: list[str] = []
    table = to_frame(collect_rows(layout, damage=damage))
    for text in damage:
        click.echo(f"harness: {text}", err=True)
    return table
