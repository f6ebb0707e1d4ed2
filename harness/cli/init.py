"""``harness init``: a cluster file from what the site tells of itself."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.layout import ProjectLayout, project_root

if TYPE_CHECKING:
    from harness.jobs.survey.facts import Batch
    from harness.jobs.survey.look import Surroundings

EPILOG = """\b
Examples:
  harness init
  harness init mine --queue gpu
  harness init mine --print
\b
Exit codes: 0 written, 1 the scheduler does not answer, 2 bad input, or the file is there already.
"""
_SCHEDULERS = ("slurm", "pbs", "torque", "local")


@click.command(epilog=EPILOG)
@click.argument("name", required=False)
@click.option("--scheduler", type=click.Choice(_SCHEDULERS), help="Which to ask; default: the one in PATH.")
@click.option("--queue", metavar="NAME", help="Describe this queue's nodes; default: the site's default queue.")
@click.option("--print", "only_print", is_flag=True, help="Print the file instead of writing it.")
@click.option("--force", is_flag=True, help="Replace a file that is there already.")
@click.option("--json", "as_json", is_flag=True, help="Print where the file is, and its marks, as JSON.")
def init(
    name: str | None, scheduler: str | None, queue: str | None, only_print: bool, force: bool, as_json: bool
) -> None:
    """Look at this site and write configs/clusters/NAME.yml; what could not be known is marked in it.

    Asks the scheduler for nodes and queues, and this machine for MPI, modules and file systems. Nothing is submitted.
    NAME is by default the cluster's own.
    """
    from harness.config.cluster_file import parse_cluster
    from harness.files import write_atomically
    from harness.jobs.survey.describe import cluster_file, marks

    root = project_root(Path.cwd())
    if name is not None and not only_print:
        _refuse(ProjectLayout(root).clusters / f"{_checked(name)}.yml", force)
    found = _look(scheduler, queue)
    name = name or _own_name(found)
    text = cluster_file(name, found, queue)
    path = ProjectLayout(root).clusters / f"{_checked(name)}.yml"
    parse_cluster(text, root, str(path))
    if only_print:
        click.echo(text, nl=False)
        return
    _refuse(path, force)
    write_atomically(path, text)
    _tell(path, name, marks(text), as_json)


def _tell(path: Path, name: str, listed: list[tuple[int, str]], as_json: bool) -> None:
    if as_json:
        remarks = [{"line": line, "remark": remark} for line, remark in listed]
        click.echo(json.dumps({"path": str(path), "name": name, "marks": remarks}, ensure_ascii=False))
        return
    click.echo(f"wrote {path}")
    for line, remark in listed:
        click.echo(f"  line {line}: {remark}")
    click.echo(f"next: {'correct what is marked, then ' if listed else ''}harness doctor --cluster {shlex.quote(name)}")


def _checked(name: str) -> str:
    from harness.config.sweep_file import name_problem
    from harness.errors import UserError

    if problem := name_problem(name):
        raise UserError(f"cluster {problem}")
    return name


def _refuse(path: Path, force: bool) -> None:
    from harness.errors import UserError

    if path.exists() and not force:
        raise UserError(
            f"{path} is there already; choose another name, see it with --print, or replace it with --force"
        )


def _look(scheduler: str | None, queue: str | None) -> Surroundings:
    """The site; a queue that it does not have is refused."""
    from harness.errors import UserError, nearest
    from harness.jobs import shell
    from harness.jobs.survey.ask import NoAnswer, recognise
    from harness.jobs.survey.look import look

    named: dict[str, list[Batch]] = {"slurm": ["slurm"], "pbs": ["pbs"], "torque": ["torque"], "local": []}
    try:
        found = look(named[scheduler] if scheduler else recognise(), lambda argv: shell.run(argv, timeout_s=60))
    except NoAnswer as error:
        raise NoAnswer(f"{error}\ntry again later; where jobs go to no scheduler, say --scheduler local") from None
    if queue and (found.site is None or found.site.queue(queue) is None):
        names = [known.name for known in found.site.queues] if found.site else []
        raise UserError(f"no queue {queue!r} here; " + (nearest(queue, names) if names else "there is no scheduler"))
    return found


def _own_name(found: Surroundings) -> str:
    """The scheduler's name of the cluster, else this machine's, with what no file name should hold left out."""
    import re

    own = found.site.name if found.site else found.host
    return re.sub(r"[^A-Za-z0-9_-]+", "-", own.partition(".")[0]).strip("-") or "mine"
