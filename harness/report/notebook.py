"""What the notebooks share: a campaign opened, its figures as objects to display, the published tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.campaigns import load_campaign
from harness.analysis.capacity import Group, Observation, groups_of
from harness.analysis.capacity_lanes import Setting
from harness.analysis.collect import collect
from harness.analysis.points import PointResult, point_results
from harness.analysis.recommend import Answer, recommend
from harness.errors import UserError
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report import grid, plots, tables
from harness.report.plots import style
from harness.report.recommend_words import answer_lines, headline, refusal_lines


def results_root(start: Path | None = None) -> Path:
    """The nearest ``results`` directory with published tables, at or above ``start`` (default: working directory).

    Raises:
        UserError: there is none.
    """
    here = (start or Path.cwd()).absolute()
    for directory in (here, *here.parents):
        if (directory / "results" / "published").is_dir():
            return directory / "results"
    raise UserError(f"no results/published at or above {here}; open the notebook inside the checkout")


@dataclass(frozen=True)
class Opened:
    """A campaign with its table of runs."""

    layout: CampaignLayout
    campaign: Campaign
    table: pd.DataFrame

    @property
    def results(self) -> list[PointResult]:
        return point_results(self.table)

    def points(self) -> str:
        """The table of points in Markdown."""
        return tables.to_markdown(grid.points_grid(self.table, self.campaign))

    def pivot(self, rows: str, columns: str) -> str:
        """Tables of images/s of two axes in Markdown, one for each value of the other axes."""
        found = grid.pivot_grids(self.table, self.campaign, rows, columns)
        return "\n\n".join(tables.to_markdown(one) for one in found)

    def figure(self, name: str) -> Figure:
        """The figure of ``harness plot --only name``.

        Raises:
            UserError: the data do not support it; the message says what is missing.
        """
        with style.applied():
            made = plots.MAKERS[name](self.layout, self.table, self.campaign)
        if isinstance(made, str):
            raise UserError(f"{name}: {made}")
        return made

    def groups(self) -> list[Group]:
        """What the capacity model is fitted to."""
        scopes = {p.axes.storage: p.placement.data_scope for p in self.campaign.points.values()}
        return groups_of(self.results, self.campaign.varied, scopes)

    def recommendation(self, **limits: int) -> str:
        """The recommendation, or its refusal, in Markdown."""
        return "\n\n".join(_recommended(group, limits) for group in self.groups())


def _recommended(group: Group, limits: dict[str, int]) -> str:
    found = recommend(group, limits)
    lines = answer_lines(found, group) if isinstance(found, Answer) else refusal_lines(found, group)
    return "\n".join([f"**{headline(group)}**", "", *(f"- {line}" for line in lines)])


def opened(name: str, results: Path | None = None) -> Opened:
    """A campaign of ``results`` (default: those of the checkout), such as ``sample/storage``.

    Raises:
        UserError: there is no such campaign.
    """
    layout = CampaignLayout((results or results_root()) / name)
    return Opened(layout, load_campaign(layout), collect(layout))


def published(name: str) -> pd.DataFrame:
    """A table of ``results/published``, numbers as published."""
    return pd.read_csv(results_root() / "published" / f"{name}.csv", comment="#")


def published_group(table: pd.DataFrame, **columns: Any) -> Group:
    """A published table as observations; ``columns`` maps a field of :class:`Setting` to a column or to a function
    of a row. Published rates have no interval."""
    observations = []
    for _, row in table.iterrows():
        fields: dict[str, Any] = {name: int(row[c] if isinstance(c, str) else c(row)) for name, c in columns.items()}
        observations.append(Observation(Setting(**fields), float(row["images_per_second"]), float("nan")))
    return Group({}, {}, tuple(observations), (), False, False)
