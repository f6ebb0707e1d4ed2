"""Whether a success still stands for what is planned now: where a run was placed decides what it measured."""

from __future__ import annotations

from pydantic import ValidationError

from harness.files import read_file
from harness.jobs.tasks import Statuses
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.model.job import JobState, Placement, RunSpec
from harness.model.ledger import AttemptKey

#: of a placement, what may change without another measurement; all else must match: queue (its nodes are of one
#: kind), request, and the directory of the data
_FREE = frozenset({"walltime_s", "account", "project"})


def outdated(campaign: Campaign, layout: CampaignLayout, statuses: Statuses) -> dict[AttemptKey, list[str]]:
    """The successes that were placed otherwise than the campaign now plans, each with the fields that differ."""
    found = {}
    for key, status in statuses.items():
        planned = campaign.points.get(key.point_id)
        if status.state is JobState.SUCCEEDED and planned is not None:
            placed = _placement(layout, key)
            if placed is not None and (fields := _differing(placed, planned.placement)):
                found[key] = fields
    return found


def _placement(layout: CampaignLayout, key: AttemptKey) -> Placement | None:
    """Where an attempt was placed, by its point.json; None where that cannot be read any more."""
    try:
        return RunSpec.model_validate_json(read_file(layout.attempt(*key).point)).placement
    except (OSError, ValidationError):
        return None


def _differing(one: Placement, other: Placement) -> list[str]:
    return [name for name in Placement.model_fields if name not in _FREE and getattr(one, name) != getattr(other, name)]
