"""``harness plan``: what a sweep would run on a cluster, and what it could not."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import click

from harness.cli.axis_words import axis_text
from harness.cli.options import SweepChoice, sweep_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from harness.model.campaign import Campaign
    from harness.model.cluster import Cluster
    from harness.model.job import Placement

SHOWN_ROWS = 50

EPILOG = """\b
Examples:
  harness plan configs/sweeps/quickstart.yml
  harness plan configs/sweeps/nus_cpu_cores.yml --cluster nus-volta --only "cpu_cores <= 10"
  harness plan configs/sweeps/quickstart.yml --set repeats=1 --set cpu_cores=1,2 --json
\b
Exit codes: 0 at least one point can run (refused ones are listed), 2 bad input, or no point can run.
"""


@click.command(epilog=EPILOG)
@sweep_options
@click.option(
    "--json", "as_json", is_flag=True, help="The campaign as JSON: points, placements, tasks, refusals, cost."
)
@click.option("--all", "show_all", is_flag=True, help=f"Every row, not the first {SHOWN_ROWS} only.")
def plan(choice: SweepChoice, as_json: bool, show_all: bool) -> None:
    """Expand a sweep on a cluster: points, placements, refusals and the cost at most. Nothing is written."""
    campaign, cluster = choice.plan()
    if as_json:
        import json

        click.echo(json.dumps({**campaign.model_dump(mode="json"), "cost": cost(campaign)}, ensure_ascii=False))
        return
    _show(campaign, [*campaign.notes, *_lost_log(campaign, cluster, choice)], None if show_all else SHOWN_ROWS)


def cost(campaign: Campaign) -> dict[str, Any]:
    """What the campaign uses at most, every run taking its whole time limit."""
    placements = [campaign.points[task.point_id].placement for task in campaign.tasks]
    return {
        "runs": len(campaign.tasks),
        "walltime_s": sum(p.walltime_s for p in placements),
        "core_hours": sum(p.walltime_s * p.nodes * p.cores_per_node for p in placements) / 3600,
        "gpu_hours": sum(p.walltime_s * p.nodes * p.gpus_per_node for p in placements) / 3600,
    }


def _lost_log(campaign: Campaign, cluster: Cluster, choice: SweepChoice) -> list[str]:
    from harness.layout import is_plain

    directory = choice.layout(campaign).root.absolute()
    if is_plain(str(directory)):
        return []
    from harness.jobs.render import lost_log

    first = next(iter(campaign.points.values())).placement
    return list(filter(None, [lost_log(cluster, first, directory)]))


def _show(campaign: Campaign, notes: Sequence[str], rows: int | None) -> None:
    from rich.console import Console
    from rich.text import Text

    from harness.report.prose import print_prose

    console = Console(highlight=False, emoji=False)
    # a pipe or file has no edge at which a table's rows must fold
    wide = console if console.is_terminal else Console(highlight=False, emoji=False, width=max(console.width, 200))
    print_prose(console, Text.assemble((campaign.name, "bold"), f" on {campaign.cluster}: {campaign.description}"))
    requests = {point_id: _request(point.placement) for point_id, point in campaign.points.items()}
    differing, shared = _differing(list(requests.values()), campaign.varied)
    following = _following(campaign, {*campaign.varied, *next(iter(requests.values()))})
    wide.print(_points_table(campaign, requests, [*campaign.varied, *following], differing, rows))
    for line in [*([f"Every point: {', '.join(shared)}."] if shared else []), *_totals(campaign)]:
        print_prose(console, line)
    for note in notes:
        print_prose(console, Text.assemble(("note:", "yellow"), f" {note}"))
    if campaign.refusals:
        console.print(f"\n[yellow]{len(campaign.refusals)} refused:[/]")
        wide.print(_refusals_table(campaign, rows))


def _request(placement: Placement) -> dict[str, str]:
    """What a run asks for, by the axis it comes from where there is one."""
    from harness.units import format_bytes, format_duration

    return {
        "nodes": str(placement.nodes),
        "ranks_per_node": str(placement.ranks_per_node),
        "cpu_cores": str(placement.cores_per_node),
        "GPUs per node": str(placement.gpus_per_node),
        "memory": format_bytes(placement.memory_bytes) if placement.memory_bytes else "the site's default",
        "walltime": format_duration(placement.walltime_s),
    }


def _differing(requests: list[dict[str, str]], varied: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The columns that differ between points and are no axis of the table already; and what all points share."""
    columns = [column for column in requests[0] if column not in varied]
    differing = [column for column in columns if len({r[column] for r in requests}) > 1]
    return differing, [f"{column} {requests[0][column]}" for column in columns if column not in differing]


def _following(campaign: Campaign, shown: Collection[str]) -> list[str]:
    """Axes beside those ``shown`` whose values differ and follow from the varied ones by the sweep's ``when`` or
    ``derive``; not those that are everywhere what the catalog gives the workload."""
    from harness.config.axis_types import OPTION_PREFIX
    from harness.model.axes import Axes
    from harness.plan.defaults import fill

    points = [point.axes for point in campaign.points.values()]
    names = []
    for name in Axes.model_fields:
        first = getattr(points[0], name)
        if name in ("options", *shown) or all(getattr(axes, name) == first for axes in points):
            continue
        others = ({axis: value for axis, value in axes if axis != name} for axes in points)
        if any(fill(known).get(name) != getattr(axes, name) for known, axes in zip(others, points, strict=True)):
            names.append(name)
    options = dict.fromkeys(OPTION_PREFIX + name for axes in points for name in axes.options)
    names += [name for name in options if len({axis_text(axes, name) for axes in points}) > 1]
    return [name for name in names if name not in shown]


def _points_table(
    campaign: Campaign,
    requests: dict[str, dict[str, str]],
    shown: list[str],
    differing: list[str],
    rows: int | None,
) -> Table:
    cells = [
        (
            point_id[:8],
            *(axis_text(point.axes, axis) for axis in shown),
            *(requests[point_id][c] for c in differing),
        )
        for point_id, point in list(campaign.points.items())[:rows]
    ]
    table = _table(("point", *shown, *differing), cells)
    _mark_rest(table, len(campaign.points), rows)
    return table


def _refusals_table(campaign: Campaign, rows: int | None) -> Table:
    cells = [
        (*(axis_text(refusal.axes, axis) for axis in campaign.varied), refusal.reason)
        for refusal in campaign.refusals[:rows]
    ]
    table = _table((*campaign.varied, "why it cannot run here"), cells)
    _mark_rest(table, len(campaign.refusals), rows)
    return table


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """In the style of ``harness table``: numbers to the right, no frame."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for place, column in enumerate(columns):
        numeric = column != "point" and all(row[place].isdecimal() for row in rows)
        table.add_column(escape(column), overflow="fold", justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _mark_rest(table: Table, total: int, rows: int | None) -> None:
    if rows is not None and total > rows:
        table.add_row(f"… {total - rows} more; --all shows them")


def _totals(campaign: Campaign) -> list[str]:
    from harness.plan.place import plural
    from harness.units import format_duration

    used = cost(campaign)
    paths = dict.fromkeys(point.placement.data_path for point in campaign.points.values())
    sources = dict.fromkeys(point.placement.stage_from for point in campaign.points.values())
    staged = [path for path in sources if path]
    gpus = f", {used['gpu_hours']:.1f} GPU-hours" if used["gpu_hours"] else ""
    lines = [
        f"Data: {', '.join(paths)}" + (f"; staged from {', '.join(staged)}" if staged else "") + ".",
        f"{plural(used['runs'], 'run')} ({plural(len(campaign.points), 'point')} × {campaign.repeats}); at most "
        f"{used['core_hours']:.1f} core-hours{gpus}, {format_duration(used['walltime_s'])} one after another.",
    ]
    if campaign.excluded or campaign.duplicates:
        excluded = plural(campaign.excluded, "combination")
        lines.append(f"{excluded} excluded, {campaign.duplicates} equal to another one.")
    return lines
