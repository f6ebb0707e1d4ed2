"""The rungs below a point, and that they are planned as points of their own."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plan.defaults import fill
from harness.plan.ladder import rungs

RUNG_AXES = ("feed", "comm", "cache", "pipeline", "encoding")


def told(**values: Any) -> list[tuple[Any, ...]]:
    filled = fill(values)
    whole = {"feed": "pipeline", "cache": "unknown", "encoding": "native"}
    return [tuple({**whole, **rung}[axis] for axis in RUNG_AXES) for rung in rungs(filled)]


def test_of_files_on_two_ranks() -> None:
    asked = {"workload": "resnet_imagenet", "framework": "torch", "ranks_per_node": 2, "options.box_crops": True}
    assert told(**asked) == [
        ("device", "none", "unknown", "torch_files", "native"),
        ("device", "mpi4py", "unknown", "torch_files", "native"),
        ("host", "mpi4py", "unknown", "torch_files", "native"),
        ("pipeline", "mpi4py", "unknown", "torch_memory", "npy"),
        ("pipeline", "mpi4py", "warm", "torch_files", "native"),
        ("pipeline", "mpi4py", "cold", "torch_files", "native"),
        ("pipeline", "mpi4py", "unknown", "torch_files", "native"),
    ]


@pytest.mark.parametrize("values", [{"workload": "replay"}, {"workload": "dcgan_mnist", "framework": "tensorflow"}])
def test_of_data_in_memory_there_is_nothing_to_read(values: dict[str, Any]) -> None:
    ladder = told(**values)
    assert [rung[0] for rung in ladder] == ["device", "host", "pipeline"]
    assert {rung[2:] for rung in ladder} == {ladder[-1][2:]}


def test_the_point_itself_is_last_and_unchanged() -> None:
    asked = fill({"workload": "replay", "workers": 3, "cache": "cold", "options.produce_s": 0.02})
    assert rungs(asked)[-1] == asked
