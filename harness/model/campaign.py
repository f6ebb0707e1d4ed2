"""A campaign: a sweep planned on a cluster. The content of ``campaign.json``, which the analysis side reads."""

from pydantic import Field

from harness.model.axes import Axes, Count, Frozen, PositiveInt
from harness.model.job import Placement

CAMPAIGN_SCHEMA = 1


class Task(Frozen):
    """One repeat of one point: what has to be measured once. Attempts are tries at a task."""

    point_id: str
    repeat: Count


class Refusal(Frozen):
    """A point that cannot run on this cluster. ``code`` is stable (such as cores_per_node), ``reason`` for people."""

    point_id: str
    axes: Axes
    code: str
    reason: str


class PlannedPoint(Frozen):
    axes: Axes
    placement: Placement


class Campaign(Frozen):
    """``varied`` names the axes that take more than one value, in the sweep's order, without those whose value follows
    from the others (by when, derive or the catalog); ``tasks`` are in run order. ``excluded`` and ``duplicates`` count
    the combinations that the sweep's exclude removed and those equal to another one.
    """

    schema_version: int = CAMPAIGN_SCHEMA
    name: str
    uid: str = Field("", description="made when the directory is; tells campaigns of one name and user apart")
    sweep: str
    description: str = ""
    sweep_file: str = ""
    cluster: str
    created_unix_s: float
    varied: tuple[str, ...]
    repeats: PositiveInt
    points: dict[str, PlannedPoint]
    tasks: tuple[Task, ...]
    refusals: tuple[Refusal, ...] = ()
    excluded: Count = 0
    duplicates: Count = 0
    notes: tuple[str, ...] = Field(
        (), description="what is probably a mistake in the sweep, such as an exclude without effect"
    )
