"""``--set``: the axis takes the value everywhere, whatever the file says of it."""

from __future__ import annotations

import pytest

from harness.config.overrides import override
from harness.config.sweep_file import parse_sweep
from harness.errors import UserError
from harness.model.sweep import Sweep
from harness.plan.expand import expand

SWEEP = parse_sweep(
    """\
name: x
base: {workload: replay, storage: hpctmp}
matrix: {cpu_cores: [1, 2], workers: [1, 2]}
zip: [{nodes: [1, 2], batch_size: [32, 64]}]
include: [{cpu_cores: 1, echo: 2}]
when: [{where: "workers == 2", set: {prefetch: 8}}]
derive: {parallel_threads: cpu_cores}
walltime: 1h
"""
)


def values(sweep: Sweep, axis: str) -> set[object]:
    return {combination.get(axis) for combination in expand(sweep).combinations}


def test_nothing_set_changes_nothing() -> None:
    assert override(SWEEP, []) == SWEEP


@pytest.mark.parametrize("axis", ["cpu_cores", "nodes", "echo", "prefetch", "parallel_threads", "max_queue_size"])
def test_an_axis_takes_the_value_in_every_combination(axis: str) -> None:
    assert values(override(SWEEP, [f"{axis}=7"]), axis) == {7}


def test_several_values_become_the_matrix_and_keep_the_axiss_place() -> None:
    result = override(SWEEP, ["cpu_cores=4,8,16", "precision=[fp32, bf16]"])
    assert list(result.grids[0].matrix) == ["cpu_cores", "workers", "precision"]
    assert result.grids[0].matrix["cpu_cores"] == (4, 8, 16)
    assert values(result, "precision") == {"fp32", "bf16"}


def test_a_zipped_axis_leaves_its_group() -> None:
    result = override(SWEEP, ["nodes=4"])
    assert result.grids[0].zip == ({"batch_size": (32, 64)},)
    assert override(result, ["batch_size=8"]).grids[0].zip == ()


def test_the_sweeps_own_keys() -> None:
    result = override(
        SWEEP, ["repeats=5", "order_seed=3", "walltime=12:00:00", "memory=2gb", "steps.timed=9", "steps.warmup=auto"]
    )
    assert (result.repeats, result.order_seed, result.walltime_s, result.memory_bytes) == (5, 3, 43200, 2 * 1024**3)
    assert values(result, "steps_timed") == {9}
    assert values(result, "steps_warmup") == {None}


def test_options_and_text() -> None:
    result = override(SWEEP, ["options.produce_s=1e-3", "storage=a b=$(id)", "options.produce_script=[0.1, 2]"])
    assert values(result, "options.produce_s") == {0.001}
    assert values(result, "storage") == {"a b=$(id)"}
    assert result.grids[0].base["options.produce_script"] == [0.1, 2]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("cpu_cores", "has no '='; write --set axis=value"),
        ("cpu_core=1", "unknown key 'cpu_core'; did you mean 'cpu_cores'?"),
        ("cpu_cores=x", "--set cpu_cores: cpu_cores: 'x' is no whole number"),
        ("cpu_cores=0", "0 is not allowed"),
        ("cpu_cores=", "cpu_cores is empty"),
        ("cpu_cores=1,,2", "cpu_cores is empty"),
        ("cpu_cores=[]", "is an empty list"),
        ("workload=replai", "did you mean 'replay'?"),
        ("cpu_cores=[1", "not readable as YAML"),
        ("walltime=90", "'90' is no duration"),
        ("repeats=0", "0 is not allowed"),
        ("=1", "unknown key ''"),
    ],
)
def test_clear_messages(setting: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        override(SWEEP, [setting])
    assert message in str(caught.value)
