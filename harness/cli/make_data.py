"""``harness run --make-data``: made data sets that a sweep on this machine lacks, in the sizes its file gives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.catalog import dataset_directory, reads_data, split_dataset
from harness.cli.health.paths import expanded
from harness.datasets.manifest import missing
from harness.errors import UserError
from harness.model.campaign import PlannedPoint

if TYPE_CHECKING:
    from rich.console import Console

    from harness.cli.options import SweepChoice

_COUNTS = ("train", "test", "classes")


def make_missing(choice: SweepChoice, console: Console) -> None:
    """Make and convert what a sweep's points read and is not there; real data sets are for ``harness data fetch``.

    Raises:
        UserError: the data lie on another machine, or cannot be made.
    """
    from harness.plan.load import load_scaled

    campaign, cluster = choice.plan()
    if cluster.scheduler != "local":
        raise UserError(
            f"--make-data makes data on this machine, and {cluster.name} is another; "
            "use `harness data make` and `harness data convert` on one of its login nodes"
        )
    sizes = load_scaled(choice.sweep, choice.scale).data
    wanted = {_place(point): point.axes.dataset for point in campaign.points.values() if _made(point)}
    for (directory, encoding), name in wanted.items():
        assert name is not None
        native = directory if encoding == "native" else directory.with_name(dataset_directory(name))
        if missing(native, name):
            _make(native, name, sizes.get(name, {}), console)
        if encoding != "native" and missing(directory, name, encoding):
            _convert(native, directory, encoding, sizes.get(name, {}), console)


def _made(point: PlannedPoint) -> bool:
    """Whether the point reads data, and generated ones."""
    name = point.axes.dataset
    return name is not None and reads_data(name, point.axes.pipeline) and split_dataset(name)[0] != "real"


def _place(point: PlannedPoint) -> tuple[Path, str]:
    """Where the data must lie before the run, and in which encoding.

    Raises:
        UserError: nobody knows from here.
    """
    place = point.placement.stage_from or point.placement.data_path
    text = expanded(place)
    if text is None:
        raise UserError(f"--make-data: {place}: a variable in it is not set here")
    return Path(text), point.axes.encoding


def _make(path: Path, name: str, sizes: Mapping[str, int], console: Console) -> None:
    from harness.cli.data import request_of
    from harness.cli.parts_progress import bar
    from harness.datasets.make import make
    from harness.datasets.parts import usable_cpus

    origin, form = split_dataset(name)
    train, test, classes = (sizes.get(key) for key in _COUNTS)
    request = request_of(form, origin, 0, train, test, classes, None)
    with bar(f"making {name}") as progress:
        manifest = make(path, request, workers=usable_cpus(), progress=progress)
    console.print(f"made {name}: {manifest.total_files:,} files in {path}", markup=False, soft_wrap=True)


def _convert(source: Path, path: Path, encoding: str, sizes: Mapping[str, int], console: Console) -> None:
    from harness.cli.parts_progress import bar
    from harness.datasets.convert.run import DECODED, Settings, convert
    from harness.datasets.parts import usable_cpus

    side = sizes.get("side") if encoding in DECODED else None
    settings = Settings(encoding, side=side, shard_samples=sizes.get("shard_samples"))
    with bar(f"converting to {encoding}") as progress:
        manifest = convert(source, path, settings, usable_cpus(), progress)
    name, count = manifest.request.name, manifest.total_files
    console.print(f"made {name} as {encoding}: {count:,} files in {path}", markup=False, soft_wrap=True)
