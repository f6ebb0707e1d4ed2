"""Point ids: pinned, and blind to everything but what is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.config.cluster_file import parse_cluster
from harness.config.sweep_file import parse_sweep
from harness.model.axes import Axes, point_id
from harness.plan.plan import plan, to_axes

# Written by hand; the ids are the first 16 digits that sha256sum gives for the canonical text.
GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "point_ids.json").read_text())
LOCAL = parse_cluster(
    "name: a\nscheduler: local\nnode: {cores_per_socket: 64}\nstorage: {hpctmp: {path: /d}}\n", Path("/")
)
OTHER = parse_cluster(
    "name: b\nscheduler: slurm\nnodes: 4\nnode: {cores_per_socket: 128, memory: 1tb}\nqueue: q\naccount: z\n"
    "storage: {hpctmp: {path: /e}}\n",
    Path("/"),
)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["id"])
def test_ids_are_pinned(case: dict[str, str]) -> None:
    assert point_id(Axes(**json.loads(case["canonical"]))) == case["id"]


def test_a_sweeps_points_have_the_pinned_ids() -> None:
    text = """\
name: x
base: {workload: dcgan_mnist, dataset: "digits:mnist", framework: tensorflow}
steps: {warmup: 5, timed: 25}
"""
    campaign = plan(parse_sweep(text), LOCAL, now_unix_s=0.0)
    assert list(campaign.points) == ["8664985c2a2dfd05"]
    assert "8664985c2a2dfd05" in {case["id"] for case in GOLDEN}


def test_writing_a_default_changes_no_id() -> None:
    def identity(base: str) -> str:
        (found,) = plan(parse_sweep(f"name: x\nbase: {{{base}}}\n"), LOCAL, now_unix_s=0.0).points
        return found

    bare = identity("workload: replay")
    assert bare == "a41b9414c67740ec"
    assert identity("workload: replay, framework: none, pipeline: scripted, batch_size: 32, comm: none") == bare
    assert identity("workload: replay, cpu_cores: 1, storage: hpctmp, prefetch: null") == bare
    assert identity("workload: replay, options: {produce_s: 0.01, clock: virtual}") == bare
    assert identity("workload: replay, options: {produce_s: 0.02}") != bare


def test_neither_cluster_nor_queue_nor_request_enters_the_id() -> None:
    text = "name: x\nbase: {workload: replay}\nmatrix: {cpu_cores: [1, 2]}\n"
    here = plan(parse_sweep(text), LOCAL, now_unix_s=0.0)
    there = plan(
        parse_sweep(text.replace("name: x", "name: y") + "walltime: 3h\nmemory: 3gb\nrepeats: 2\norder_seed: 4\n"),
        OTHER,
        now_unix_s=9.0,
        queue="big",
    )
    assert list(here.points) == list(there.points)


values = st.fixed_dictionaries(
    {"workload": st.just("replay")},
    optional={
        "cpu_cores": st.integers(1, 9),
        "workers": st.integers(0, 9),
        "prefetch": st.none() | st.integers(0, 9),
        "storage": st.text(min_size=1, max_size=9),
        "compile": st.booleans(),
        "options.produce_s": st.floats(0, 1),
    },
)


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_keys_does_not_matter(given_values: dict[str, Any], random: Any) -> None:
    keys = list(given_values)
    random.shuffle(keys)
    assert point_id(to_axes({k: given_values[k] for k in keys})) == point_id(to_axes(given_values))


@given(values, values)
def test_equal_ids_mean_equal_axes(first: dict[str, Any], second: dict[str, Any]) -> None:
    one, two = to_axes(first), to_axes(second)
    assert (point_id(one) == point_id(two)) == (one == two)
