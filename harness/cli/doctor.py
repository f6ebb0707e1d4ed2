"""``harness doctor``: whether this place can run the harness's jobs, and what to do where it cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.layout import project_root

if TYPE_CHECKING:
    from rich.console import Console

    from harness.cli.health.check import Check, Patient

AREAS = ("scheduler", "mpi", "software", "binding", "storage", "data")
_MARKS = {
    "ok": ("ok", "green"),
    "note": ("note", "cyan"),
    "warning": ("warn", "yellow"),
    "failure": ("FAIL", "bold red"),
}

EPILOG = """\b
Examples:
  harness doctor
  harness doctor --cluster mine --sweep configs/sweeps/nus_cpu_cores.yml
  harness doctor --cluster mine --job-script > doctor.sh && sbatch doctor.sh
  harness doctor --cluster mine --in-job --nodes 2 --ranks-per-node 4
\b
Exit codes: 0 nothing is wrong, 1 warnings or failures, 2 bad input.
"""


@click.command(epilog=EPILOG)
@click.option("--cluster", default="local", show_default=True, metavar="NAME|PATH", help="The cluster to look at.")
@click.option("--sweep", type=click.Path(path_type=Path), help="Look for what this sweep needs.")
@click.option(
    "--only",
    type=click.Choice(AREAS),
    multiple=True,
    help="Look at this area alone (GPUs: software; quotas: storage); may be repeated.",
)
@click.option(
    "--in-job", is_flag=True, help="This runs inside a job: look at GPUs, binding and the node's storage too."
)
@click.option("--job-script", is_flag=True, help="Print a job script that runs the doctor in a job, and do no more.")
@click.option("--nodes", type=click.IntRange(1), default=1, show_default=True, help="Nodes of the look at binding.")
@click.option("--ranks-per-node", type=click.IntRange(1), help="Ranks per node there  [default: 2, or 1 on one core]")
@click.option("--cores-per-rank", type=click.IntRange(1), help="Cores of each  [default: the node's, shared evenly]")
@click.option("--no-speed", is_flag=True, help="Do not measure the storages' speed (a few seconds each).")
@click.option("--json", "as_json", is_flag=True, help="Print the checks as JSON.")
def doctor(
    cluster: str,
    sweep: Path | None,
    only: tuple[str, ...],
    in_job: bool,
    job_script: bool,
    nodes: int,
    ranks_per_node: int | None,
    cores_per_rank: int | None,
    no_speed: bool,
    as_json: bool,
) -> None:
    """Look at MPI, frameworks, GPUs, binding, storage and scheduler; say what is wrong and what to do about it.

    On a login node what only a job can show is left out: --job-script prints a job that looks from inside.
    """
    from rich.console import Console
    from rich.text import Text

    from harness.cli.health.check import Patient, Request
    from harness.cli.health.needs import needs_of
    from harness.config.cluster_file import load_cluster

    root = project_root(Path.cwd())
    described = load_cluster(cluster, root)
    # one console for both, so that the spinner makes way for the lines
    console = Console(stderr=as_json, soft_wrap=True, emoji=False)
    status = console.status("looking")
    patient = Patient(
        cluster=described,
        project_root=root,
        in_job=in_job or described.scheduler == "local",
        say=lambda text: status.update(Text(text)),
        request=Request(nodes, ranks_per_node, cores_per_rank),
        measure_speed=not no_speed,
        needs=needs_of(sweep, cluster, root) if sweep else None,
    )
    if job_script:
        from harness.cli.health.job import script

        click.echo(script(patient, cluster, sweep, only), nl=False)
        return
    with status:
        checks = _looked_at(patient, only or AREAS, None if as_json else console)
    if as_json:
        click.echo(json.dumps([vars(check) for check in checks], ensure_ascii=False, indent=1, default=str))
    else:
        _summarise(checks)
    raise SystemExit(1 if any(check.status in ("warning", "failure") for check in checks) else 0)


def _looked_at(patient: Patient, areas: tuple[str, ...], console: Console | None) -> list[Check]:
    """All checks; with a console each is printed as soon as it is known."""
    checks, area = [], ""
    for check in _checks(patient, areas):
        checks.append(check)
        if console is not None:
            if check.area != area:
                console.print(f"[bold]{check.area}[/bold]")
                area = check.area
            _print(check, console)
    return checks


def _checks(patient: Patient, areas: tuple[str, ...]) -> Iterator[Check]:
    import importlib

    for area in AREAS:
        if area in areas:
            yield from importlib.import_module(f"harness.cli.health.{area}").check(patient)


def _print(check: Check, console: Console) -> None:
    from rich.text import Text

    word, colour = _MARKS[check.status]
    console.print(Text.assemble("  ", (f"{word:5}", colour), f"{check.name}: {check.message}"))
    if check.remedy:
        console.print(Text(f"       → {check.remedy}"))


def _summarise(checks: list[Check]) -> None:
    counts = {status: sum(check.status == status for check in checks) for status in _MARKS}
    found = [
        f"{counts[status]} {status}{'s' * (counts[status] > 1)}" for status in ("failure", "warning") if counts[status]
    ]
    click.echo(f"{', '.join(found) or 'nothing wrong'} in {len(checks)} check{'s' * (len(checks) != 1)}")
