"""What a sweep's points need of the place where they run."""

from __future__ import annotations

import time
from pathlib import Path

from harness.catalog import NO_FRAMEWORK, reads_data
from harness.cli.health.check import Needs
from harness.plan.load import plan_from_files


def needs_of(sweep: Path, cluster: str, project_root: Path) -> Needs:
    """The needs of all points that can run on the cluster.

    Raises:
        UserError: the sweep is bad, or none of its points can run there.
    """
    campaign, _ = plan_from_files(sweep, cluster, project_root, time.time())
    software, data = set(), set()
    for point in campaign.points.values():
        software |= {name for name in (point.axes.framework, point.axes.comm) if name and name != NO_FRAMEWORK}
        if point.axes.dataset and reads_data(point.axes.dataset, point.axes.pipeline):
            place = point.placement.stage_from or point.placement.data_path
            data.add((place, point.axes.dataset, point.axes.encoding))
    return Needs(frozenset(software), frozenset(data))
