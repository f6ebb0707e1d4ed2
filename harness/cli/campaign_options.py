"""What the verbs share that act on a campaign already begun, and the options of those that submit."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.layout import CampaignLayout, ProjectLayout, project_root

Command = TypeVar("Command", bound=Callable[..., Any])

jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Jobs at a time; default: one here, for neighbours disturb, and what the queue allows elsewhere.",
)
_HOW: tuple[Callable[[Any], Any], ...] = (
    jobs_option,
    click.option(
        "--mode",
        type=click.Choice(("auto", "single", "array", "pack")),
        default="auto",
        show_default=True,
        help="One job per run, job arrays, or packs of runs one after the other in one job.",
    ),
    click.option(
        "--max-queued",
        type=click.IntRange(min=1),
        metavar="N",
        help="Your queued and running jobs in all, others than this campaign's counted; default: the queue's limit.",
    ),
    click.option(
        "--rate",
        type=click.FloatRange(min=0, min_open=True),
        metavar="R",
        help="Submissions per second at most; default: 5 on a cluster.",
    ),
)


def how_options(command: Command) -> Command:
    """Add --jobs, --mode, --max-queued and --rate; the command receives ``how``, a :class:`harness.jobs.modes.How`."""
    from functools import wraps

    @wraps(command)
    def with_how(
        *args: Any, jobs: int | None, mode: str, max_queued: int | None, rate: float | None, **kwargs: Any
    ) -> Any:
        from harness.jobs.modes import How

        return command(*args, how=How(mode, jobs, max_queued, rate), **kwargs)

    decorated: Any = with_how
    for decorator in reversed(_HOW):
        decorated = decorator(decorated)
    return decorated  # type: ignore[no-any-return]


retries_option = click.option(
    "--retries",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="New attempts of a run that fails, is lost or exceeds its walltime; default: 0.",
)


def campaign_argument(command: Command) -> Command:
    """Add ``CAMPAIGN`` and ``--results``; the command receives ``layout``, a :class:`CampaignLayout`."""
    from functools import wraps

    @wraps(command)
    def with_layout(*args: Any, campaign: str, results: Path | None, **kwargs: Any) -> Any:
        return command(*args, layout=campaign_layout(campaign, results), **kwargs)

    decorated: Any = with_layout
    decorated = click.option(
        "--results", type=click.Path(path_type=Path), metavar="DIR", help="Where campaigns lie; default: results/."
    )(decorated)
    return click.argument("campaign")(decorated)  # type: ignore[no-any-return]


def handle(layout: CampaignLayout) -> str:
    """What to write after a verb to mean this campaign: its name where that is enough, quoted for a shell."""
    here = layout.root.parent == ProjectLayout(project_root(Path.cwd())).results.absolute()
    if here and not layout.root.name.startswith("-"):  # that would be read as an option
        return shlex.quote(layout.root.name)
    return shlex.quote(str(layout.root))


def campaign_layout(campaign: str, results: Path | None) -> CampaignLayout:
    """A campaign by its name, or by its directory. Whether it is there is left to who opens it."""
    directory = Path(campaign)
    if results is None and (directory / "campaign.json").is_file():
        return CampaignLayout(directory.absolute())
    root = results or ProjectLayout(project_root(Path.cwd())).results
    return CampaignLayout(root.absolute() / campaign)
