"""A campaign's directory and its campaign.json: made once, and widened when its sweep has changed since."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from harness.errors import UserError, nearest, of_the_system
from harness.files import read_file, write_atomically
from harness.jobs.ledger import read_statuses
from harness.layout import SHARD_ABOVE, CampaignLayout
from harness.model.axes import Axes
from harness.model.campaign import Campaign, PlannedPoint, Task
from harness.model.campaign_file import campaign_text, parse_campaign

if TYPE_CHECKING:
    from harness.model.cluster import Cluster


def read_campaign(path: Path) -> Campaign | None:
    """The campaign.json, or None where there is none.

    Raises:
        UserError: for one that is damaged or of another version.
    """
    try:
        return parse_campaign(read_file(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(of_the_system(error, path)) from None
    except ValidationError as error:
        text = str(error).splitlines()[0]
        raise UserError(f"{path} cannot be read: {text}; move the directory away, or restore the file") from None


def load_campaign(layout: CampaignLayout) -> Campaign:
    """The campaign that must be there.

    Raises:
        UserError: where it is not.
    """
    campaign = read_campaign(layout.meta)
    if campaign is None:
        parent = layout.root.parent
        names = sorted(path.parent.name for path in parent.glob("*/campaign.json"))
        hint = nearest(layout.root.name, names) if names else "start one with `harness run SWEEP.yml`"
        raise UserError(f"there is no campaign {layout.root.name!r} in {parent}; {hint}")
    return campaign


def read_cluster(path: Path) -> Cluster:
    """The cluster that a campaign runs on.

    Raises:
        UserError: where it is not there or makes no sense.
    """
    from harness.model.cluster import Cluster

    try:
        return Cluster.model_validate_json(read_file(path))
    except (OSError, ValidationError) as error:
        text = error.strerror if isinstance(error, OSError) else str(error).splitlines()[0]
        raise UserError(f"{path}: {text}; run the sweep again with `harness run` to have it written") from None


def scheduler_name(path: Path) -> str:
    """The scheduler of the cluster that a campaign runs on, by name; empty where its description is not there.

    Looking at a campaign needs no more of it, and the cluster's whole vocabulary takes its time to be imported.
    """
    try:
        return str(json.loads(read_file(path))["scheduler"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def open_campaign(layout: CampaignLayout, planned: Campaign, cluster: Cluster) -> Campaign:
    """Make or widen the campaign's directory for a fresh plan; returns what is now in campaign.json.

    Call it while holding the campaign's lock.
    """
    old = read_campaign(layout.meta)
    if old is not None and old.cluster != planned.cluster:
        raise UserError(
            f"{layout.root} holds measurements on cluster {old.cluster!r}, not {planned.cluster!r}; "
            "give this campaign another name with --campaign"
        )
    if old is None:
        planned = planned.model_copy(update={"uid": planned.uid or secrets.token_hex(8)})
        if len(planned.points) > SHARD_ABOVE and (not layout.runs.exists() or layout.shards[0].is_dir()):
            for shard in layout.shards:
                shard.mkdir(parents=True, exist_ok=True)
    merged = planned if old is None else merge(old, planned, _begun(layout, old, planned))
    if merged != old:
        write_atomically(layout.meta, campaign_text(merged))
    write_atomically(layout.cluster, cluster.model_dump_json(indent=1) + "\n")
    return merged


def _begun(layout: CampaignLayout, old: Campaign, planned: Campaign) -> set[Task]:
    """Tasks that have an attempt: by the ledger, and for those that the plan lacks by their directories, too, since the
    lines that told of them may be damaged."""
    from harness.jobs.attempts import attempts_on_disk  # who only looks at a campaign needs none of it

    begun = {Task(point_id=key.point_id, repeat=key.repeat) for key in read_statuses(layout.ledger)}
    still = set(planned.tasks)
    left = (task for task in old.tasks if task not in begun and task not in still)
    return begun | {task for task in left if any(attempts_on_disk(layout, task))}


def merge(old: Campaign, planned: Campaign, begun: Collection[Task]) -> Campaign:
    """The plan, and what the old campaign holds beyond it and has already begun to measure."""
    still = set(planned.tasks)
    kept = tuple(task for task in old.tasks if task in begun and task not in still)
    kept_points = {task.point_id: old.points[task.point_id] for task in kept}
    return planned.model_copy(
        update={
            "uid": old.uid,
            "created_unix_s": old.created_unix_s,
            "points": kept_points | planned.points,
            "tasks": (*planned.tasks, *kept),
            "varied": _varied(old, planned, list(kept_points.values())),
            "repeats": max([planned.repeats, *(task.repeat + 1 for task in kept)]),
        }
    )


def _varied(old: Campaign, planned: Campaign, kept: list[PlannedPoint]) -> tuple[str, ...]:
    """Axes that vary in the plan, in the kept points, or between the two where each holds one value of its own."""
    if not kept:
        return planned.varied
    these, those = ([_flat(point.axes) for point in points] for points in (list(planned.points.values()), kept))
    names = dict.fromkeys(name for values in (*these, *those) for name in values)
    between = [name for name in names if _differs(name, these, those)]
    return tuple(dict.fromkeys([*planned.varied, *old.varied, *between]))


def _flat(axes: Axes) -> dict[str, str]:
    """Axis → value as text, the options under dotted names."""
    values = axes.model_dump()
    options = {f"options.{name}": value for name, value in values.pop("options").items()}
    return {name: str(value) for name, value in (values | options).items()}


def _differs(name: str, these: list[dict[str, str]], those: list[dict[str, str]]) -> bool:
    here, there = ({values.get(name) for values in points} for points in (these, those))
    return len(here) == len(there) == 1 and here != there
