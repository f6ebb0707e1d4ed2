"""What each data set is, in words and as facts."""

from __future__ import annotations

import textwrap
from typing import Any

from harness.catalog import DatasetSpec
from harness.datasets import published
from harness.datasets.manifest import Manifest
from harness.units import format_bytes

ORIGINS = {
    "real": "the published set; recognised by its checksums",
    "digits": "1,797 real handwritten digits that come with scikit-learn, brought to 28×28, varied by affine changes",
    "photos": "crops of the ten colour photographs that come with scikit-image and scikit-learn; one is one class",
    "synthetic": "smooth patterns with noise, learnable, from numpy alone",
}
_OF_TREES = {
    "real": "the published set; recognised by its numbers of images, for no checksums are published",
    "synthetic": "views of the photographs that come with scikit-image and scikit-learn, statistically like the real",
}


def facts(spec: DatasetSpec) -> dict[str, Any]:
    """A data set's description for scripts."""
    names = {origin: spec.name if origin == "real" else f"{origin}:{spec.name}" for origin in spec.origins}
    return {
        "format": spec.name,
        "description": spec.description,
        "sample_shape": list(spec.sample_shape),
        "classes": spec.classes,
        "samples": published.COUNTS[spec.name],
        "names": names,
        "files": list(published.LAYOUTS[spec.name][0]),
        "get": published.HOW_TO_GET[spec.name],
    }


def as_text(spec: DatasetSpec) -> str:
    """A data set's description for people."""
    known = facts(spec)
    counts = ", ".join(f"{count:,} {split}" for split, count in known["samples"].items())
    lines = [f"{spec.name}: {spec.description}", f"  {counts}; {spec.classes} classes", "  names for a sweep:"]
    lines += [f"    {name:24}{_origin(spec, origin)}" for origin, name in known["names"].items()]
    lines.append(f"  files: {', '.join(known['files'])}")
    lines += textwrap.wrap(f"real:  {known['get']}", 100, initial_indent="  ", subsequent_indent=" " * 9)
    lines += [f"  make:  harness data make {spec.name} --origin {o}" for o in spec.origins if o != "real"]
    return "\n".join(lines)


def _origin(spec: DatasetSpec, origin: str) -> str:
    return (ORIGINS if spec.in_memory else ORIGINS | _OF_TREES)[origin]


def manifest_text(manifest: Manifest) -> str:
    """What the set in a directory is, for people."""
    request, conversion = manifest.request, manifest.conversion
    counts = ", ".join(f"{count:,} {split}" for split, count in request.counts.items())
    options = ", ".join(f"{name} {value}" for name, value in request.options.items())
    versions = ", ".join(f"{name} {version}" for name, version in manifest.made_with.items())
    lines = [
        f"{request.name}: {counts}; {manifest.total_files:,} files, {format_bytes(manifest.total_bytes)}",
        f"  seed {request.seed}" + (f", {options}" if options else ""),
        f"  made by {manifest.made_by}" + (f" with {versions}" if versions else ""),
    ]
    if conversion is not None:
        lines.append(
            f"  converted from {conversion.source} ({format_bytes(conversion.source_bytes)}) in "
            f"{conversion.work_s:.1f} s of work by {conversion.workers} workers, {conversion.wall_s:.1f} s elapsed"
            f"{' since it was resumed' if conversion.resumed else ''}, {conversion.skipped} images left out"
        )
    return "\n".join(lines)
