"""Data sets: those that lie in the cluster's storages, or those that a sweep needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from harness.catalog import DATASETS
from harness.cli.health.check import Check, Patient
from harness.cli.health.paths import expanded
from harness.datasets import published
from harness.datasets.manifest import MANIFEST, missing, read_manifest
from harness.errors import UserError

AREA = "data"


def check(patient: Patient) -> Iterator[Check]:
    """Names and sizes only: ``harness data verify`` reads what is in the files."""
    if patient.needs is not None:
        yield from _needed(patient, patient.needs.data)
        return
    for name, storage in patient.cluster.storage.items():
        place = expanded(storage.path)
        if storage.scope == "node" or place is None or not Path(place).is_dir():
            continue
        path = Path(place)
        present = list(_present(path))
        if present:
            yield Check(AREA, name, "ok", f"{path}: {', '.join(present)}", facts={"data_sets": present})
        else:
            remedy = "harness data make FORMAT makes one; harness data describe lists them"
            yield Check(AREA, name, "note", f"{path}: no data set yet", remedy, {"data_sets": []})


def _needed(patient: Patient, data: frozenset[tuple[str, str, str]]) -> Iterator[Check]:
    if not data:
        yield Check(AREA, "sweep", "ok", "the sweep reads no data set")
    for place, name, encoding in sorted(data):
        path = expanded(place)
        if path is None:
            yield Check(AREA, name, "note", f"{place}: a variable in it is not set here, so it was not looked for")
        elif problem := missing(Path(path), name, encoding):
            said, _, remedy = problem.partition("; ")
            yield Check(AREA, name, "failure", said, remedy)
        else:
            yield Check(AREA, name, "ok", f"{name} ({encoding}) is in {path}")


def _present(storage: Path) -> Iterator[str]:
    """Data sets in the sub-directories of a storage, by the names that sweeps use."""
    try:
        places = sorted(entry for entry in storage.iterdir() if entry.is_dir())
    except OSError:
        return
    for place in places:
        if (place / MANIFEST).exists():
            try:
                request = read_manifest(place).request
            except UserError:
                yield f"{place.name} (damaged)"
                continue
            encoding = request.options.get("encoding")
            yield request.name + (f" as {encoding}" if encoding else "")
        elif place.name in DATASETS and published.find_layout(place, place.name):
            yield place.name
