"""Figures: one file each, with a pure ``data``, a ``draw``, and ``figure`` that joins them or says what is missing."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from harness.errors import UserError, of_the_system
from harness.files import write_atomically
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import (
    axis_grid,
    axis_lines,
    ceilings,
    encoding_bars,
    loss_rate,
    queue_grid,
    queue_surfaces,
    rate_against_axis,
    scaling_ranks,
    speedup_against_axis,
    step_times,
    storage_staging,
    style,
    time_against_axis,
    time_shares,
    utilisation,
)

FORMATS = ("png", "svg", "pdf")
DEFAULT_FORMATS = ("png", "svg")

Maker = Callable[[CampaignLayout, pd.DataFrame, Campaign], "Figure | str"]


@dataclass(frozen=True)
class DrawResult:
    """``files`` written, and ``skipped``: (figure, what its data lack)."""

    files: tuple[Path, ...]
    skipped: tuple[tuple[str, str], ...]


def _step_times(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    if not layout.steps_parquet.is_file():
        return f"no {layout.steps_parquet.name}; run `harness collect {campaign.name}`"
    return step_times.figure(pd.read_parquet(layout.steps_parquet), table, campaign)


MAKERS: dict[str, Maker] = {
    time_against_axis.NAME: lambda _layout, table, campaign: time_against_axis.figure(table, campaign),
    rate_against_axis.NAME: lambda _layout, table, campaign: rate_against_axis.figure(table, campaign),
    speedup_against_axis.NAME: speedup_against_axis.figure,
    time_shares.NAME: lambda _layout, table, campaign: time_shares.figure(table, campaign),
    step_times.NAME: _step_times,
    scaling_ranks.NAME: scaling_ranks.figure,
    axis_grid.NAME: axis_grid.figure,
    axis_lines.NAME: axis_lines.figure,
    encoding_bars.NAME: lambda _layout, table, campaign: encoding_bars.figure(table, campaign),
    storage_staging.NAME: lambda _layout, table, campaign: storage_staging.figure(table, campaign),
    queue_grid.NAME: queue_grid.figure,
    queue_surfaces.NAME: queue_surfaces.figure,
    loss_rate.NAME: lambda _layout, table, campaign: loss_rate.figure(table, campaign),
    utilisation.NAME: utilisation.figure,
    ceilings.NAME: lambda _layout, table, campaign: ceilings.figure(table, campaign),
}


def draw_all(
    layout: CampaignLayout,
    table: pd.DataFrame,
    campaign: Campaign,
    formats: Sequence[str] = DEFAULT_FORMATS,
    names: Sequence[str] = (),
) -> DrawResult:
    """Draw every figure (or those in ``names``) into the campaign's ``plots/``.

    Raises:
        UserError: for a directory that cannot be written.
    """
    files: list[Path] = []
    skipped: list[tuple[str, str]] = []
    for name in names or MAKERS:
        with style.applied():
            made = MAKERS[name](layout, table, campaign)
            if isinstance(made, str):
                skipped.append((name, made))
                continue
            files += [_save(made, layout.plots / f"{name}.{form}", form) for form in formats]
    return DrawResult(tuple(files), tuple(skipped))


def _save(figure: Figure, path: Path, form: str) -> Path:
    buffer = io.BytesIO()
    # no date inside, so that equal data give equal files
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with warnings.catch_warnings():
        # a name in a script that the font lacks shows as boxes; the table has it right
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(buffer, format=form, metadata=metadata)
    try:
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        raise UserError(of_the_system(error, path)) from None
    return path
