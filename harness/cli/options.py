"""What plan, render, run and submit share: the sweep, the cluster, and the options that change them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from harness.layout import CampaignLayout, ProjectLayout, project_root

if TYPE_CHECKING:
    from harness.model.campaign import Campaign
    from harness.model.cluster import Cluster

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class SweepChoice:
    """What the user named on the command line."""

    sweep: Path
    cluster: str | None
    queue: str | None
    campaign: str | None
    overrides: tuple[str, ...]
    only: str | None
    results: Path | None
    project_root: Path
    scale: str | None = None
    ladder: bool = False

    def plan(self) -> tuple[Campaign, Cluster]:
        """The campaign and its cluster.

        Raises:
            UserError: bad input, or nothing that could run.
        """
        from harness.plan.load import plan_from_files

        return plan_from_files(
            self.sweep,
            self.cluster,
            self.project_root,
            time.time(),
            overrides=self.overrides,
            queue=self.queue,
            campaign_name=self.campaign,
            only=self.only,
            scale=self.scale,
            ladder=self.ladder,
        )

    @property
    def results_root(self) -> Path:
        """The directory that holds campaigns, absolute."""
        return (self.results or ProjectLayout(self.project_root).results).absolute()

    def layout(self, campaign: Campaign) -> CampaignLayout:
        return CampaignLayout(self.results_root / campaign.name)


def sweep_choice(
    sweep: Path,
    cluster: str | None,
    queue: str | None,
    campaign: str | None,
    overrides: tuple[str, ...],
    only: str | None,
    results: Path | None,
    scale: str | None = None,
    ladder: bool = False,
) -> SweepChoice:
    """The options of :func:`sweep_options` as one value; the project is found from here, else from the sweep's file."""
    root = project_root(Path.cwd())
    if not (root / "configs" / "clusters").is_dir():
        root = project_root(sweep.absolute().parent)
    return SweepChoice(sweep, cluster, queue, campaign, overrides, only, results, root, scale, ladder)


def sweep_options(command: Command) -> Command:
    """Add the shared options; the command receives them as ``choice``, a :class:`SweepChoice`."""
    from functools import wraps

    @wraps(command)
    def with_choice(*args: Any, **kwargs: Any) -> Any:
        names = ("sweep", "cluster", "queue", "campaign", "overrides", "only", "results", "scale", "ladder")
        choice = sweep_choice(**{name: kwargs.pop(name) for name in names})
        return command(*args, choice=choice, **kwargs)

    decorated: Any = with_choice
    for decorator in reversed(_DECORATORS):
        decorated = decorator(decorated)
    return decorated  # type: ignore[no-any-return]


_DECORATORS: tuple[Callable[[Any], Any], ...] = (
    click.argument("sweep", type=click.Path(path_type=Path)),
    click.option("--cluster", metavar="NAME|PATH", help="A file of configs/clusters/ by name, or a path."),
    click.option("--queue", metavar="NAME", help="Queue or partition; default: the cluster's own."),
    click.option("--campaign", metavar="NAME", help="Name of the results' directory; default: sweep[-cluster]."),
    click.option(
        "--set",
        "overrides",
        metavar="KEY=VALUE",
        multiple=True,
        help="Give an axis this value, or several: --set cpu_cores=1,2. Also repeats, walltime, steps.timed …",
    ),
    click.option("--scale", metavar="NAME", help="A size that the sweep's file offers under scales:, such as smoke."),
    click.option(
        "--ladder", is_flag=True, help="Add to each point the rungs below it, which tell where its time goes."
    ),
    click.option("--only", metavar="EXPR", help="Keep the points where the expression holds."),
    click.option(
        "--results", type=click.Path(path_type=Path), metavar="DIR", help="Where campaigns lie; default: results/."
    ),
)
