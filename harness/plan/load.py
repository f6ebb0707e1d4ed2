"""From the files a user names to a campaign: the one call behind plan, render, run and submit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.config.cluster_file import load_cluster
from harness.config.overrides import override
from harness.config.scales import scaled
from harness.config.sweep_file import load_sweep, name_problem
from harness.errors import UserError
from harness.model.campaign import Campaign
from harness.model.cluster import Cluster
from harness.model.sweep import Sweep
from harness.plan.plan import plan

DEFAULT_CLUSTER = "local"


def plan_from_files(
    sweep_path: Path,
    cluster_name: str | None,
    project_root: Path,
    now_unix_s: float,
    overrides: Sequence[str] = (),
    queue: str | None = None,
    campaign_name: str | None = None,
    only: str | None = None,
    scale: str | None = None,
    ladder: bool = False,
) -> tuple[Campaign, Cluster]:
    """Load a sweep and a cluster, take its variant ``scale``, apply ``overrides`` (``axis=value``), and plan.

    ``cluster_name`` None means the sweep's own choice, else ``local``.

    Raises:
        UserError: bad input, or nothing that could run.
    """
    if campaign_name is not None and (problem := name_problem(campaign_name)):
        raise UserError(f"--campaign: {problem}")
    sweep = override(load_scaled(sweep_path, scale), overrides)
    cluster = load_cluster(cluster_name or sweep.cluster or DEFAULT_CLUSTER, project_root)
    campaign = plan(
        sweep, cluster, now_unix_s=now_unix_s, queue=queue, campaign_name=campaign_name, only=only, ladder=ladder
    )
    return campaign, cluster


def load_scaled(path: Path, scale: str | None) -> Sweep:
    """The sweep in a file, in the size asked for.

    Raises:
        UserError: bad input.
    """
    sweep = load_sweep(path)
    return scaled(sweep, scale) if scale else sweep
