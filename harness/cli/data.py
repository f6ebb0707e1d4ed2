"""``harness data``: make, verify and describe data sets."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli.data_copies import convert, fetch, stage
from harness.cli.data_options import directory_of, place_options, report, workers_option

if TYPE_CHECKING:
    from harness.datasets.manifest import Request
    from harness.datasets.verify import FileCheck

_FEW_FILES = 50

EPILOG = """\b
Examples:
  harness data make mnist --origin digits
  harness data make cifar10 --origin photos --storage scratch --cluster local
  harness data verify digits:mnist
"""


class PlainGroup(click.Group):
    """A group that shows its sub-commands in the order in which they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=PlainGroup, epilog=EPILOG)
def data() -> None:
    """Make, fetch, verify, convert, stage and describe data sets."""


MAKE_EPILOG = """\b
Examples:
  harness data make mnist --origin digits
  harness data make cifar10 --origin photos --train 5000 --test 1000 --to /scratch/me/photos-cifar10
"""


@data.command(epilog=MAKE_EPILOG, short_help="Make a data set in its true on-disk format.")
@click.argument("form", metavar="FORMAT")
@click.option("--origin", default="synthetic", show_default=True, help="synthetic; digits (mnist); photos (cifar10).")
@place_options
@click.option("--seed", default=0, show_default=True, help="Equal seeds give equal files.")
@click.option("--train", type=int, help="Training samples  [default: as published; 512 to 6400 of the large sets]")
@click.option("--test", type=int, help="Test samples  [default: as published; 128 to 640 of the large sets]")
@click.option("--classes", type=int, help="Classes of imagenet, 1 to 1000  [default: 100]")
@click.option("--layout", type=click.Choice(["python", "binary"]), help="CIFAR-10's batches  [default: python]")
@workers_option
@click.option("--force", is_flag=True, help="Replace a made set that is already there.")
@click.option("--json", "as_json", is_flag=True, help="Print the manifest's facts as JSON.")
def make(
    form: str,
    origin: str,
    to: Path | None,
    storage: str,
    cluster: str,
    seed: int,
    train: int | None,
    test: int | None,
    classes: int | None,
    layout: str | None,
    workers: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Make a data set in its true on-disk format; a set that is already there is left alone.

    FORMAT is mnist, cifar10, imagenet, caltech256 or chestxray14. Large sets are made by several processes; after
    an interruption the same command goes on where it stopped.

    Exit codes: 0 there or made, 2 bad input or something else is in the way.
    """
    from harness.cli.parts_progress import bar
    from harness.datasets.make import is_made
    from harness.datasets.make import make as make_set
    from harness.datasets.parts import usable_cpus

    request = request_of(form, origin, seed, train, test, classes, layout)
    path = directory_of(request.name, to, storage, cluster)
    if not force and (found := is_made(path, request)):
        report(path, found, "already there", as_json)
        return
    started_s = time.monotonic()
    with bar(f"making {request.name}") as progress:
        manifest = make_set(path, request, force, workers or usable_cpus(), progress)
    report(path, manifest, f"made in {time.monotonic() - started_s:.1f} s", as_json)


def request_of(
    form: str,
    origin: str,
    seed: int,
    train: int | None,
    test: int | None,
    classes: int | None,
    layout: str | None,
) -> Request:
    """What ``harness data make`` with these options makes; None: the default.

    Raises:
        UserError: an option that the format does not have.
    """
    from harness.catalog import DATASETS, lookup
    from harness.datasets.make import DEFAULT_CLASSES, DEFAULT_COUNTS
    from harness.datasets.manifest import Request
    from harness.errors import UserError

    lookup(DATASETS, form, "data set format")
    if layout and form != "cifar10":
        raise UserError("--layout is for cifar10 only")
    if classes is not None and form not in DEFAULT_CLASSES:
        raise UserError(f"--classes is for {', '.join(DEFAULT_CLASSES)} only")
    if test is not None and "test" not in DEFAULT_COUNTS[form]:
        raise UserError(f"--test: {form} has no test split")
    if seed < 0:
        raise UserError(f"--seed {seed}: a seed is 0 or more")
    asked = {"train": train, "test": test}
    counts = {split: default if (n := asked[split]) is None else n for split, default in DEFAULT_COUNTS[form].items()}
    options: dict[str, Any] = {"layout": layout or "python"} if form == "cifar10" else {}
    if form in DEFAULT_CLASSES:
        options["classes"] = DEFAULT_CLASSES[form] if classes is None else classes
    return Request(format=form, origin=origin, seed=seed, counts=counts, options=options)


VERIFY_EPILOG = """\b
Examples:
  harness data verify digits:mnist
  harness data verify /scratch/me/photos-cifar10 --json
"""


@data.command(epilog=VERIFY_EPILOG, short_help="Check every file against its checksum.")
@click.argument("what", metavar="NAME|DIRECTORY")
@place_options
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.pass_context
def verify(ctx: click.Context, what: str, to: Path | None, storage: str, cluster: str, as_json: bool) -> None:
    """Check every file of a data set against its checksum.

    Exit codes: 0 all match, 1 a file is missing or differs or has no checksum to match, 2 no data set there.
    """
    from harness.cli.parts_progress import bar
    from harness.datasets.verify import OK
    from harness.datasets.verify import verify as verify_set

    path = Path(what) if Path(what).is_dir() and to is None else directory_of(what, to, storage, cluster)
    name, checks = verify_set(path)
    verdicts = []
    with bar(f"verifying {name}", resumable=False) as progress:
        for check in checks:
            verdicts.append(check)
            progress(len(verdicts), 0)
    whole = all(check.verdict == OK for check in verdicts)
    if as_json:
        files = [vars(check) for check in verdicts]
        click.echo(json.dumps({"path": str(path), "name": name, "ok": whole, "files": files}))
    else:
        _show(verdicts)
        outcome = f"all {len(verdicts):,} files match" if whole else "NOT verified"
        click.echo(f"{name} in {path}: {outcome}")
    ctx.exit(0 if whole else 1)


def _show(verdicts: list[FileCheck]) -> None:
    """A line for each file; of many only those that are not right."""
    from harness.datasets.verify import OK

    for check in verdicts:
        if len(verdicts) <= _FEW_FILES or check.verdict != OK:
            click.echo(f"{check.verdict:8}{check.file}" + (f": {check.detail}" if check.detail else ""))


DESCRIBE_EPILOG = """\b
Examples:
  harness data describe
  harness data describe cifar10
  harness data describe results/data/hpctmp/digits-mnist
"""


@data.command(epilog=DESCRIBE_EPILOG, short_help="Say what each data set is and how to get it.")
@click.argument("what", metavar="[FORMAT|DIRECTORY]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the descriptions as JSON.")
def describe(what: str | None, as_json: bool) -> None:
    """Say what each data set is and how to get it, or what the set in a directory is."""
    from harness.catalog import DATASETS, lookup, split_dataset
    from harness.datasets.describe import as_text, facts, manifest_text
    from harness.datasets.manifest import read_manifest

    if what and Path(what).is_dir():
        manifest = read_manifest(Path(what))
        click.echo(manifest.model_dump_json() if as_json else manifest_text(manifest))
        return
    specs = [lookup(DATASETS, split_dataset(what)[1], "data set format")] if what else list(DATASETS.values())
    if as_json:
        click.echo(json.dumps([facts(spec) for spec in specs]))
    else:
        click.echo("\n\n".join(as_text(spec) for spec in specs))


for command in (fetch, convert, stage):
    data.add_command(command)
