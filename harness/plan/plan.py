"""A sweep on a cluster: points with ids, placements, refusals and the order of the runs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from harness.config.axis_types import OPTION_PREFIX, default_of
from harness.config.expressions import ExpressionError, evaluate, names_used
from harness.errors import ConfigError, Problem, UserError
from harness.model.axes import Axes, point_id
from harness.model.campaign import Campaign, PlannedPoint, Refusal, Task
from harness.model.cluster import Cluster
from harness.model.job import Placement
from harness.model.sharing import Sharing
from harness.model.sweep import Sweep
from harness.plan.defaults import fill
from harness.plan.expand import Combination, expand
from harness.plan.fit import misfits
from harness.plan.ladder import rungs
from harness.plan.place import Needs, Reason, Site, choose_queue, needs_of, place_needs, plural

#: each run is a job with a directory of its own
MAX_RUNS = 500_000


def plan(
    sweep: Sweep,
    cluster: Cluster,
    *,
    now_unix_s: float,
    queue: str | None = None,
    campaign_name: str | None = None,
    only: str | None = None,
    ladder: bool = False,
) -> Campaign:
    """The campaign of ``sweep`` on ``cluster``: a pure function of its arguments.

    ``only`` is an expression; points where it is false are left out. ``ladder`` adds the rungs below each point.

    Raises:
        UserError: nothing is left to run, with why.
    """
    expansion = expand(sweep)
    combinations, found = expansion.combinations, len(expansion.combinations)
    for number, values in enumerate(combinations):
        combinations[number] = fill(values)
    if only is not None:
        combinations = _select(combinations, only)
    if not combinations:
        raise UserError(_nothing_left(sweep, expansion.excluded, found, only))
    if ladder:
        combinations = [rung for values in combinations for rung in rungs(values)]
    varied = varied_axes(sweep, combinations)
    site = Site(cluster, choose_queue(cluster, queue), sweep.walltime_s, sweep.memory_bytes)
    points, refusals, duplicates = _place_all(combinations, site, sweep.file)
    if not points:
        raise UserError(_all_refused(sweep, cluster, refusals))
    if len(points) * sweep.repeats > MAX_RUNS:
        raise UserError(_too_many(sweep, len(points)))
    return Campaign(
        name=campaign_name or default_campaign_name(sweep, cluster) + ("-ladder" if ladder else ""),
        sweep=sweep.name,
        description=sweep.description,
        sweep_file=sweep.file,
        cluster=cluster.name,
        created_unix_s=now_unix_s,
        varied=varied,
        repeats=sweep.repeats,
        points=points,
        tasks=run_order(points, sweep.repeats, sweep.order_seed),
        refusals=tuple(refusals),
        excluded=expansion.excluded,
        duplicates=duplicates,
        notes=expansion.notes,
    )


def default_campaign_name(sweep: Sweep, cluster: Cluster) -> str:
    """The sweep's name on this machine, ``<sweep>-<cluster>`` elsewhere."""
    return sweep.name if cluster.scheduler == "local" else f"{sweep.name}-{cluster.name}"


def run_order(point_ids: Iterable[str], repeats: int, seed: int) -> tuple[Task, ...]:
    """All points once, in an order shuffled by ``seed``, then all again, for each repeat.

    Blocks keep a slow drift of the machine from falling on some points only. Points are sorted by a hash, so adding
    a point to a sweep leaves the order of the others as it was.
    """
    ids = list(point_ids)

    def place_in_block(repeat: int, point: str) -> bytes:
        return hashlib.sha256(f"{seed}/{repeat}/{point}".encode()).digest()

    share = Sharing()
    return tuple(
        share(Task(point_id=point, repeat=repeat))
        for repeat in range(repeats)
        for point in sorted(ids, key=lambda p: place_in_block(repeat, p))
    )


def to_axes(values: Mapping[str, Any]) -> Axes:
    """The axes of a combination. Options at their catalog default are left out, so that they enter no id.

    Raises:
        ValidationError: a value that its axis does not take.
    """
    given = {k.removeprefix(OPTION_PREFIX): v for k, v in values.items() if k.startswith(OPTION_PREFIX)}
    options = {name: v for name, v in given.items() if v != default_of(OPTION_PREFIX + name)}
    return Axes(**{k: v for k, v in values.items() if not k.startswith(OPTION_PREFIX)}, options=options)


def varied_axes(sweep: Sweep, combinations: list[Combination]) -> tuple[str, ...]:
    """Axes with more than one value: those of matrix and zip as written, then those that do not follow from them."""
    written = list(dict.fromkeys(axis for grid in sweep.grids for axis in grid.varied))
    others = [axis for axis in dict.fromkeys(axis for c in combinations for axis in c) if axis not in written]
    varied: list[str] = []
    for axis in [*written, *others]:
        values = [str(c.get(axis, default_of(axis))) for c in combinations]
        if len(set(values)) > 1 and (axis in written or not _follows(values, varied, combinations)):
            varied.append(axis)
    return tuple(varied)


def _follows(values: list[str], varied: list[str], combinations: list[Combination]) -> bool:
    """Whether the values are a function of the ``varied`` axes."""
    seen: dict[tuple[str, ...], str] = {}
    keys = (tuple(str(c.get(axis, default_of(axis))) for axis in varied) for c in combinations)
    return all(seen.setdefault(key, value) == value for key, value in zip(keys, values, strict=True))


def _select(combinations: list[Combination], only: str) -> list[Combination]:
    try:
        names_used(only)
        return [values for values in combinations if evaluate(only, values)]
    except ExpressionError as error:
        raise UserError(f"--only: {error}") from None


def _place_all(
    combinations: list[Combination], site: Site, file: str
) -> tuple[dict[str, PlannedPoint], list[Refusal], int]:
    """Points, refusals, and how many combinations are equal to another one. ``combinations`` is used up: a hundred
    thousand of them and their points need not be in memory together."""
    points: dict[str, PlannedPoint] = {}
    refusals: dict[str, Refusal] = {}
    placed: dict[Needs, Placement | list[Reason]] = {}
    share = Sharing()
    total = len(combinations)
    combinations.reverse()
    while combinations:
        axes = share(_axes(combinations.pop(), file))
        identity = point_id(axes)
        if identity in points or identity in refusals:
            continue
        result = misfits(axes) or _placed(needs_of(axes), site, placed)
        if isinstance(result, Placement):
            points[identity] = share(PlannedPoint(axes=axes, placement=result))
        else:
            text = "; ".join(reason for _, reason in result)
            refusals[identity] = Refusal(point_id=identity, axes=axes, code=result[0][0], reason=text)
    return points, list(refusals.values()), total - len(points) - len(refusals)


def _placed(needs: Needs, site: Site, known: dict[Needs, Placement | list[Reason]]) -> Placement | list[Reason]:
    """Points of equal needs get one and the same placement."""
    if needs not in known:
        known[needs] = place_needs(needs, site)
    return known[needs]


def _axes(values: Combination, file: str) -> Axes:
    try:
        return to_axes(values)
    except ValidationError as error:
        first = error.errors()[0]
        axis = ".".join(str(part) for part in first["loc"])
        raise ConfigError([Problem(file, 0, f"{axis}: {first['input']!r} is not allowed", first["msg"])]) from None


def _nothing_left(sweep: Sweep, excluded: int, expanded: int, only: str | None) -> str:
    if only is not None and expanded:
        return f"--only {only!r} holds for none of the {expanded} points of {sweep.name}"
    return f"{sweep.file or sweep.name}: the sweep expands to nothing: all {excluded} combinations are excluded"


def _too_many(sweep: Sweep, points: int) -> str:
    runs = f"{plural(points, 'point')} × {sweep.repeats:,} repeats are {points * sweep.repeats:,} runs"
    return f"{sweep.file or sweep.name}: {runs}; a campaign may have {MAX_RUNS:,}: lower repeats, or split the sweep"


def _all_refused(sweep: Sweep, cluster: Cluster, refusals: list[Refusal]) -> str:
    """The reasons, each kind once with how many points have it first and one of them as the example."""
    counts = Counter(refusal.code for refusal in refusals)
    examples = {refusal.code: refusal.reason for refusal in reversed(refusals)}
    head = f"{sweep.file or sweep.name}: none of {plural(len(refusals), 'point')} can run on cluster {cluster.name}:"
    return "\n".join([head, *(f"  {count} × such as: {examples[code]}" for code, count in counts.most_common())])
