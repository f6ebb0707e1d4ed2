"""Whether the data are those that a point names, said in its results; no framework is imported here."""

from __future__ import annotations

from harness.catalog import split_dataset
from harness.runtime.interfaces import RunContext


def check_origin(context: RunContext, found: str, origin: str) -> None:
    """A finding where the data, which are called ``found``, are of another origin than the point says."""
    asked = context.axes.dataset
    wanted, form = split_dataset(asked)
    if origin == wanted:
        return
    advice = f"the directory holds {found}; name that in the sweep, or put {asked} there"
    if origin == "unknown":
        advice = f"nothing says which files these are, so results call them unknown; see: harness data describe {form}"
    evidence = {"wanted": asked, "found": found, "path": str(context.data_path)}
    context.note("finding", code="data_origin", evidence=evidence, advice=advice)
