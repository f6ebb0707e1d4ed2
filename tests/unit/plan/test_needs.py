"""What a placement depends on: points that agree in it are placed alike, so it is worked out once for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.config.cluster_file import parse_cluster
from harness.model.axes import Axes
from harness.model.sweep import Grid, Sweep
from harness.plan import plan as planning
from harness.plan.defaults import fill
from harness.plan.place import Needs, Site, place, place_needs

SITE = parse_cluster(
    """\
name: site
scheduler: pbs
nodes: 4
node: {sockets: 2, cores_per_socket: 10, gpus: 4, memory: 100gb}
memory_per_core: 4gb
storage:
  hpctmp: {path: /hpctmp}
  scratch: {path: /scratch, scope: node, stage_from: hpctmp}
""",
    Path("/"),
)
#: another value of each, one at a time
CHANGES: dict[str, Any] = {
    "nodes": 2,
    "ranks_per_node": 2,
    "cpu_cores": 8,
    "gpus_per_rank": 1,
    "storage": "scratch",
    "dataset": "photos:cifar10",
    "encoding": "npy",
}
POINT = fill({"workload": "resnet20_cifar10", "cpu_cores": 4, "framework": "torch"})


@pytest.mark.parametrize("axis", CHANGES)
def test_each_need_changes_the_placement(axis: str) -> None:
    one, other = (place(Axes(**values), Site(SITE, None)) for values in (POINT, {**POINT, axis: CHANGES[axis]}))
    assert not isinstance(one, list)
    assert not isinstance(other, list)
    assert one != other


def test_points_of_equal_needs_share_one_placement_and_others_have_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Needs] = []

    def noted(needs: Needs, site: Site) -> Any:
        asked.append(needs)
        return place_needs(needs, site)

    monkeypatch.setattr(planning, "place_needs", noted)
    grid = Grid(base=dict(POINT), matrix={"cpu_cores": (1, 2, 30), "seed": (1, 2, 3), "batch_size": (8, 16)})
    campaign = planning.plan(Sweep(name="s", grids=(grid,)), SITE, now_unix_s=0.0)
    assert sorted(needs.cpu_cores for needs in asked) == [1, 2, 30]
    by_cores: dict[int, set[int]] = {}
    for point in campaign.points.values():
        by_cores.setdefault(point.axes.cpu_cores, set()).add(id(point.placement))
        assert point.placement == place(point.axes, Site(SITE, None))
    assert {cores: len(placements) for cores, placements in by_cores.items()} == {1: 1, 2: 1}
    assert [refusal.axes.cpu_cores for refusal in campaign.refusals] == [30] * 6
    assert {refusal.code for refusal in campaign.refusals} == {"cores_per_node"}
