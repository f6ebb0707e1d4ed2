"""What the sub-verbs of ``harness data`` share: where a set lies, how many workers, how a set is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from harness.datasets.manifest import Manifest


def place_options(command: Any) -> Any:
    """--to, --storage and --cluster: where a data set lies."""
    for option in (
        click.option("--cluster", default="local", show_default=True, help="Cluster file or name, for --storage."),
        click.option("--storage", default="hpctmp", show_default=True, help="Storage of the cluster to use."),
        click.option("--to", type=click.Path(path_type=Path), help="Directory of the set itself, instead."),
    ):
        command = option(command)
    return command


def workers_option(command: Any) -> Any:
    kind = click.IntRange(min=1)
    return click.option("--workers", type=kind, help="Processes  [default: one for each usable CPU]")(command)


def directory_of(name: str, to: Path | None, storage: str, cluster: str) -> Path:
    """The directory of data set ``name``: ``to``, or its place under a cluster's storage."""
    if to is not None:
        return to
    from harness.cli.data_place import directory
    from harness.layout import project_root

    return directory(name, storage, cluster, project_root(Path.cwd()))


def report(path: Path, manifest: Manifest, what: str, as_json: bool) -> None:
    from harness.units import format_bytes

    request = manifest.request
    if as_json:
        facts = {"path": str(path), "name": request.name, "bytes": manifest.total_bytes}
        facts["files"] = manifest.total_files
        click.echo(json.dumps(facts | request.model_dump()))
        return
    counts = ", ".join(f"{count:,} {split}" for split, count in request.counts.items())
    size = format_bytes(manifest.total_bytes)
    click.echo(f"{request.name}: {what}: {counts}; {manifest.total_files:,} files, {size} in {path}")
