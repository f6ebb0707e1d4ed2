"""A stored reference of a campaign, and whether a later one fell behind it: for continuous integration. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.analysis.compare import Side, oriented
from harness.analysis.points import PointResult
from harness.analysis.stats import UNKNOWN, Estimate, surely_unlike_one
from harness.errors import UserError

Verdict = Literal["kept", "regressed", "missing", "doubtful"]


class StoredPoint(BaseModel):
    """An estimate: value, standard error of its logarithm (None: unknown) and its degrees of freedom (None: many)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str
    value: float
    se_log: float | None
    df: float | None
    runs: int


class Reference(BaseModel):
    """The content of a reference file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    campaign: str
    cluster: str
    metric: str
    higher_is_better: bool
    conditions: dict[str, list[str]]
    points: dict[str, StoredPoint]


@dataclass(frozen=True)
class Check:
    """One point of the reference now: ``ratio`` above 1 is better than then."""

    point_id: str
    label: str
    then: Estimate
    now: Estimate
    ratio: Estimate
    verdict: Verdict


def store(side: Side, metric: str, higher_is_better: bool, labels: Mapping[str, str]) -> Reference:
    """A reference of the points that can be relied on.

    Raises:
        UserError: where there is none.
    """
    points = {
        point: StoredPoint(
            label=labels[point],
            value=estimate.value,
            se_log=_finite(estimate.se_log),
            df=_finite(estimate.df),
            runs=side.results[point].runs,
        )
        for point, estimate in side.values.items()
        if side.results[point].trusted and math.isfinite(estimate.value)
    }
    if not points:
        raise UserError(f"{side.name} has no point that can be relied on; see `harness check {side.name}`")
    conditions = {name: list(values) for name, values in side.conditions.items()}
    return Reference(
        campaign=side.name,
        cluster=side.cluster,
        metric=metric,
        higher_is_better=higher_is_better,
        conditions=conditions,
        points=points,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def parse(text: str | bytes, name: str) -> Reference:
    """The reference in a file.

    Raises:
        UserError: for text that is none.
    """
    try:
        return Reference.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(f"{name}: no reference ({where}: {first['msg']}); write one with --save-reference") from None


def check(reference: Reference, side: Side, tolerance: float) -> list[Check]:
    """Every point of the reference against now.

    *regressed*: worse by more than ``tolerance``, and surely so among all points compared, where the ratio has an
    interval: of builds in which nothing changed one in forty fails by chance, however many points they have. A point
    that was not measured, or cannot be relied on now, is not kept either: absence is never success.
    """
    ends = [(_then(stored), side.values.get(point, UNKNOWN)) for point, stored in reference.points.items()]
    ratios = [oriented(now, then, reference.higher_is_better) for then, now in ends]
    surely = surely_unlike_one(ratios)
    told = zip(reference.points.items(), ends, ratios, surely, strict=True)
    found = []
    for (point, stored), (then, now), ratio, sure in told:
        measured, slower = math.isfinite(now.value), ratio.value < 1 - tolerance and (sure or not ratio.known)
        verdict = _verdict(side.results[point], slower) if measured else "missing"
        found.append(Check(point, stored.label, then, now, ratio, verdict))
    return found


def _then(stored: StoredPoint) -> Estimate:
    kind: Any = "none" if stored.se_log is None else "within" if stored.runs == 1 else "between"
    error = math.nan if stored.se_log is None else stored.se_log
    return Estimate(stored.value, error, math.inf if stored.df is None else stored.df, stored.runs, kind)


def _verdict(result: PointResult, slower: bool) -> Verdict:
    if not result.trusted:
        return "doubtful"
    return "regressed" if slower else "kept"


def to_json(reference: Reference) -> str:
    """The file's content, stable line by line."""
    return json.dumps(reference.model_dump(), indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"
