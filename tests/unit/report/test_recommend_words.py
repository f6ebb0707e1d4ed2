"""What to ask for, in words: no range of one value, cores of a GPU, digits that the interval deserves."""

from __future__ import annotations

import pytest

from harness.analysis.capacity import Group
from harness.analysis.capacity_lanes import Setting
from harness.analysis.recommend import Range
from harness.report.recommend_words import request, span


def group(gpus: int = 0) -> Group:
    return Group({}, {"gpus_per_rank": gpus}, (), (), computes_on_cores=not gpus, loads_inline=True)


SETTING = Setting(cores=8, workers=6, threads=2, prefetch=4, storage="scratch", nodes=2, ranks_per_node=4)


def test_a_range_is_written_where_it_has_two_ends() -> None:
    ranges = {"cores": (8.0, 8.0), "workers": (4.0, 8.0), "threads": (2.0, 2.0), "prefetch": (4.0, 4.0)}
    ranges |= {"nodes": (2.0, 2.0), "ranks_per_node": (4.0, 4.0)}
    assert request(SETTING, group(), ranges) == (
        "8 CPU cores per rank, 6 workers per rank (4 to 8), 2 threads per rank, prefetch 4, data on scratch, "
        "2 nodes with 4 ranks each"
    )


def test_a_single_value_other_than_the_one_asked_for_is_told() -> None:
    assert "prefetch 4 (8 by the fits to redrawn data)" in request(SETTING, group(), {"prefetch": (8.0, 8.0)})


def test_a_range_of_cores_is_per_gpu_as_the_number_before_it() -> None:
    assert request(SETTING, group(gpus=2), {"cores": (6.0, 10.0)}).startswith("4 CPU cores per GPU (3 to 5), ")


@pytest.mark.parametrize(("nodes", "ranks", "said"), [(1, 1, "1 node with 1 rank"), (1, 4, "1 node with 4 ranks")])
def test_one_node_has_its_ranks_alone(nodes: int, ranks: int, said: str) -> None:
    assert request(Setting(nodes=nodes, ranks_per_node=ranks), group(), {}).endswith(said)


@pytest.mark.parametrize(
    ("quantity", "said"),
    [
        (Range(166.6, 151.9, 175.2), "167 [152, 175]"),
        (Range(3.329, 3.17, 3.66), "3.3 [3.2, 3.7]"),
        (Range(158563.0, 149788.0, 165389.0), "159000 [150000, 165000]"),
        (Range(320.0, 320.0, 320.0), "320.0"),
    ],
)
def test_as_many_digits_as_the_interval_deserves(quantity: Range, said: str) -> None:
    assert span(quantity) == said
