"""``harness render``: the job scripts of a sweep, to read or to submit by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.options import SweepChoice, sweep_options

if TYPE_CHECKING:
    from collections import Counter

    from harness.jobs.attempts import Workshop
    from harness.jobs.submission import Batch, Submission
    from harness.model.campaign import Campaign, Task
    from harness.model.cluster import Cluster
    from harness.model.ledger import AttemptKey

EPILOG = """\b
Examples:
  harness render configs/sweeps/quickstart.yml -o /tmp/look
  harness render configs/sweeps/nus_cpu_cores.yml --cluster nus-volta --only "cpu_cores == 10" -o results/by-hand
  harness render configs/sweeps/nus_cpu_cores.yml --cluster nus-volta --mode array -o results/by-hand
  harness render --examples
\b
Exit codes: 0 all scripts written, 2 bad input, no point can run, or DIR holds a campaign already.
"""


def write_shipped_examples(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    """Instead of a sweep's scripts: those under jobscripts/examples, for the shipped clusters and sweeps."""
    if not wanted or context.resilient_parsing:
        return
    from harness.errors import UserError
    from harness.jobs.examples import write_examples
    from harness.jobs.render import checkout

    root = checkout()
    if root is None:
        raise UserError("the examples belong to a checkout of the harness, and this one is installed")
    for path in write_examples(root, root / "jobscripts" / "examples"):
        click.echo(path)
    context.exit()


@click.command(epilog=EPILOG)
@sweep_options
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="New directory of the campaign; a script submitted by hand leaves its evidence there.",
)
@click.option(
    "--mode",
    type=click.Choice(("auto", "single", "array", "pack")),
    default="single",
    show_default=True,
    help="One job per run, job arrays, or packs; submit the scripts that are printed, not those inside them.",
)
@click.option(
    "--examples",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=write_shipped_examples,
    help="Only write the checkout's jobscripts/examples anew; no SWEEP, no DIR.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the scripts' paths, job names and points as JSON.")
def render(choice: SweepChoice, output: Path, mode: str, as_json: bool) -> None:
    """Write job.sh and point.json of every run of a sweep, without submitting anything.

    The directory is a campaign's: after submitting scripts by hand, collect and table read it as any other.
    """
    campaign, cluster = choice.plan()
    jobs = write_scripts(campaign, cluster, output.absolute(), choice.project_root, mode)
    if as_json:
        import json

        rows = [
            {"script": str(job.script), "job_name": job.job_name, "group": job.group, **_first(job)} for job in jobs
        ]
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for job in jobs:
        click.echo(job.script)
    refused = f"; {len(campaign.refusals)} points refused, see harness plan" if campaign.refusals else ""
    click.echo(f"{len(jobs)} scripts for {cluster.scheduler} on {cluster.name}{refused}", err=True)


def _first(job: Submission) -> dict[str, Any]:
    """The point and repeat of a job alone; those of a group stand in its group.json."""
    key = job.keys[0]
    return {} if job.group else {"point_id": key.point_id, "repeat": key.repeat}


def write_scripts(
    campaign: Campaign, cluster: Cluster, directory: Path, project_root: Path, mode: str = "single"
) -> list[Submission]:
    """A new campaign directory with the first attempt of every task, and the jobs to submit.

    Raises:
        UserError: the directory holds a campaign already, or a script cannot be rendered; nothing is written then.
    """
    from collections import Counter
    from dataclasses import replace

    import harness
    from harness.errors import UserError
    from harness.jobs.attempts import Workshop
    from harness.jobs.campaign import open_campaign
    from harness.jobs.durable import sync_file_system
    from harness.jobs.modes import How, plan_batches
    from harness.jobs.render import Scripts
    from harness.jobs.session import git_commit
    from harness.jobs.submission import write
    from harness.layout import CampaignLayout

    layout = CampaignLayout(directory)
    if layout.meta.exists() or layout.runs.exists():
        raise UserError(f"{directory} holds a campaign already; name a new directory, or remove that one")
    workshop = Workshop(
        campaign,
        cluster,
        layout,
        Scripts(cluster, project_root).job,
        harness.__version__,
        git_commit(project_root),
        project_root,
    )
    plan = plan_batches(campaign, cluster, campaign.tasks, How(mode), directory.name)
    _try_scripts(workshop)  # all problems show before the first file is written
    workshop = replace(workshop, campaign=open_campaign(layout, campaign, cluster))
    made: Counter[Task] = Counter()
    jobs = [write(workshop, batch, _new_keys(batch, made)) for batch in plan.batches]
    sync_file_system(layout.root)
    return jobs


def _try_scripts(workshop: Workshop) -> None:
    """Render one script of each request: what cannot be rendered is said of the first that asks so."""
    tried = set()
    for task in workshop.campaign.tasks:
        point = workshop.campaign.points[task.point_id]
        request = (point.placement, point.axes.dataset is None)
        if request not in tried:
            tried.add(request)
            spec = workshop.spec(task, 1)
            workshop.render(spec, workshop.layout.attempt(task.point_id, task.repeat, 1).root)


def _new_keys(batch: Batch, made: Counter[Task]) -> tuple[AttemptKey, ...]:
    """The attempts of a batch, counted in ``made``: two packs may have one and the same run as their canary."""
    from harness.model.ledger import AttemptKey

    made.update(batch.tasks)
    return tuple(AttemptKey(task.point_id, task.repeat, made[task]) for task in batch.tasks)
