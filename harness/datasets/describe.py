"""What each data set is, in words and as facts."""

from __future__ import annotations

import textwrap
from typing import Any

from harness.catalog import DatasetSpec
from harness.datasets import published

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
