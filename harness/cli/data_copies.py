"""``harness data fetch``, ``convert`` and ``stage``: published, re-encoded and nearer copies of data sets."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harness.cli.data_options import directory_of, place_options, report, workers_option

if TYPE_CHECKING:
    from harness.datasets.manifest import Manifest


FETCH_EPILOG = """\b
Examples:
  harness data fetch mnist
  harness data fetch cifar10 --to /scratch/me/cifar10
"""


@click.command(epilog=FETCH_EPILOG, short_help="Download a published data set.")
@click.argument("form", metavar="mnist|cifar10|caltech256")
@place_options
@click.option(
    "--mirrors",
    type=click.Path(path_type=Path),
    help="YAML list of the files, their checksums and mirrors  [default: the project's configs/mirrors.yml]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the manifest's facts as JSON.")
def fetch(form: str, to: Path | None, storage: str, cluster: str, mirrors: Path | None, as_json: bool) -> None:
    """Download a published data set, on a machine with network; a set that is already there is left alone.

    Transfers are resumed and every file is checked by its MD5. Exit codes: 0 there, 2 bad input or no mirror gave it.
    """
    from harness.catalog import DATASETS, lookup
    from harness.cli.parts_progress import bar
    from harness.config.mirror_file import load_mirrors
    from harness.datasets.fetch import fetch as fetch_set
    from harness.datasets.fetch import is_fetched
    from harness.datasets.published import HOW_TO_GET
    from harness.errors import UserError
    from harness.layout import project_root

    lookup(DATASETS, form, "data set format")
    mirrors = mirrors or project_root(Path.cwd()) / "configs" / "mirrors.yml"
    sources = load_mirrors(mirrors)
    if form not in sources:
        raise UserError(f"{mirrors} names no mirror of {form}. {form}: {HOW_TO_GET[form]}")
    path = directory_of(form, to, storage, cluster)
    if found := is_fetched(path, form):
        report(path, found, "already there", as_json)
        return
    started_s = time.monotonic()
    with bar(f"fetching {form}") as progress:
        manifest = fetch_set(path, form, sources[form], progress)
    report(path, manifest, f"fetched in {time.monotonic() - started_s:.1f} s", as_json)


CONVERT_EPILOG = """\b
Examples:
  harness data convert synthetic:imagenet --encoding tfrecord
  harness data convert digits:mnist --encoding npy --to /scratch/me/digits.npy
Encodings: tfrecord, tfrecord_decoded, lmdb, npy, webdataset, jpeg
"""


@click.command(epilog=CONVERT_EPILOG, short_help="Store a data set in another encoding.")
@click.argument("what", metavar="NAME|DIRECTORY")
@click.option("--encoding", required=True, help="Form of the stored samples, see below.")
@place_options
@click.option("--side", type=click.IntRange(min=1), help="Edge of decoded images  [default: 256; small sets: own]")
@click.option("--quality", type=click.IntRange(1, 100), default=95, show_default=True, help="Of resized JPEGs.")
@click.option("--shard-bytes", default="128mb", show_default=True, help="Size of a shard, about.")
@click.option("--shard-samples", type=click.IntRange(min=1), help="Samples of a shard, instead of its size.")
@click.option("--seed", default=0, show_default=True, help="Shuffles the training samples.")
@click.option("--skip-corrupt", is_flag=True, help="Leave out images that cannot be decoded, and count them.")
@workers_option
@click.option("--force", is_flag=True, help="Replace a converted set that is already there.")
@click.option("--json", "as_json", is_flag=True, help="Print the conversion's facts as JSON.")
def convert(
    what: str,
    encoding: str,
    to: Path | None,
    storage: str,
    cluster: str,
    side: int | None,
    quality: int,
    shard_bytes: str,
    shard_samples: int | None,
    seed: int,
    skip_corrupt: bool,
    workers: int | None,
    force: bool,
    as_json: bool,
) -> None:
    """Store a data set in another encoding, beside it unless --to says where; time and bytes are recorded.

    After an interruption the same command goes on where it stopped. Exit codes: 0 there, 2 bad input.
    """
    from harness.cli.parts_progress import bar
    from harness.datasets.convert.run import Settings
    from harness.datasets.convert.run import convert as convert_set
    from harness.datasets.parts import usable_cpus

    source = (Path(what) if Path(what).is_dir() else directory_of(what, None, storage, cluster)).resolve()
    target = to or source.with_name(f"{source.name}.{encoding}")
    settings = Settings(encoding, side, quality, _size(shard_bytes), shard_samples, seed, skip_corrupt)
    with bar(f"converting {what} to {encoding}") as progress:
        manifest = convert_set(source, target, settings, workers or usable_cpus(), progress, force)
    _report_conversion(target, manifest, as_json)


def _size(text: str) -> int:
    from harness.errors import UserError
    from harness.units import parse_bytes

    try:
        return parse_bytes(text)
    except ValueError as error:
        raise UserError(f"--shard-bytes: {error}") from None


def _report_conversion(path: Path, manifest: Manifest, as_json: bool) -> None:
    from harness.units import format_bytes

    conversion = manifest.conversion
    assert conversion is not None
    if as_json:
        click.echo(json.dumps({"path": str(path), "name": manifest.request.name} | conversion.model_dump()))
        return
    before, after = format_bytes(conversion.source_bytes), format_bytes(conversion.bytes)
    rate = conversion.samples / conversion.work_s if conversion.work_s else 0.0
    click.echo(
        f"{manifest.request.name} as {manifest.request.options['encoding']}: {conversion.samples:,} samples, "
        f"{before} to {after} in {path}\n"
        f"  {conversion.wall_s:.1f} s with {conversion.workers} workers; {rate:,.0f} samples/s and worker"
        + (f"; {conversion.skipped} corrupt images left out" if conversion.skipped else "")
        + ("; resumed, so the time is not the whole" if conversion.resumed else "")
    )


STAGE_EPILOG = """\b
Examples:
  harness data stage results/data/hpctmp/digits-mnist /scratch/me/digits-mnist
  harness data stage /hpctmp/me/imagenet "$TMPDIR/imagenet" --streams 16 --json
"""


@click.command(epilog=STAGE_EPILOG, short_help="Copy a data set to another storage.")
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("target", type=click.Path(path_type=Path))
@click.option("--streams", type=click.IntRange(min=1), default=8, show_default=True, help="Files copied at a time.")
@click.option("--json", "as_json", is_flag=True, help="Print what was copied as JSON.")
def stage(source: Path, target: Path, streams: int, as_json: bool) -> None:
    """Copy a data set to another storage, every file checked against the manifest on the way.

    Exit codes: 0 copied, 2 bad input, a damaged file or a full disk.
    """
    from harness.cli.parts_progress import bar
    from harness.datasets.stage import stage as stage_set
    from harness.units import format_bytes

    with bar(f"staging to {target}", resumable=False) as progress:
        staged = stage_set(source, target, streams, progress)
    if as_json:
        click.echo(json.dumps(vars(staged)))
        return
    rate = format_bytes(staged.bytes / staged.seconds) if staged.seconds else "?"
    checked = "checksums matched" if staged.verified else "there are no checksums to check against"
    click.echo(
        f"staged {staged.files:,} files, {format_bytes(staged.bytes)} in {staged.seconds:.1f} s ({rate}/s): {checked}"
    )
