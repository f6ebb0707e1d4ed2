"""What collect, table, plot and check share: which campaign is meant, and the extra packages they need."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from harness.errors import UserError
from harness.layout import CampaignLayout, ProjectLayout, project_root

Command = TypeVar("Command", bound=Callable[..., Any])

NEEDED = ("numpy", "orjson", "pandas", "pyarrow", "scipy", "matplotlib")


def results_option(command: Command) -> Command:
    """The option --results."""
    return click.option(
        "--results",
        type=click.Path(path_type=Path, file_okay=False),
        help="Directory that holds campaigns; default: results/ of the project.",
    )(command)


def campaign_options(command: Command) -> Command:
    """The argument CAMPAIGN and the option --results."""
    return click.argument("campaign")(results_option(command))


def need_packages() -> None:
    """Raises:
    UserError: where packages for the analysis are missing.
    """
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(f"the analysis needs {', '.join(missing)}; install them with: pip install '.[report]'")


def chosen(campaign: str, results: Path | None) -> CampaignLayout:
    """The campaign by name, or by the path of its directory.

    Raises:
        UserError: where there is none of this name, or packages for the analysis are missing.
    """
    need_packages()
    named = (results or ProjectLayout(project_root(Path.cwd())).results) / campaign
    path = Path(campaign)
    layout = CampaignLayout(path if (path / "campaign.json").is_file() else named)
    if not layout.meta.is_file():
        from harness.analysis.campaigns import load_campaign

        load_campaign(layout)
    return layout
