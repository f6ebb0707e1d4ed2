"""docs/configuration.md: every example loads and plans, every key and refusal code is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.config.cluster_file import parse_cluster
from harness.config.grid_reader import PART_KEYS
from harness.config.sweep_file import parse_sweep
from harness.plan.plan import plan

PROJECT = Path(__file__).parents[3]
GUIDE = (PROJECT / "docs" / "configuration.md").read_text()
BLOCKS = re.findall(r"```yaml\n# (sweep|cluster)\n(.*?)```", GUIDE, re.DOTALL)
CLUSTER = next(text for kind, text in BLOCKS if kind == "cluster")


@pytest.mark.parametrize("text", [text for kind, text in BLOCKS if kind == "sweep"], ids=lambda text: text.split()[1])
def test_every_sweep_plans_on_the_guides_cluster(text: str) -> None:
    campaign = plan(parse_sweep(text), parse_cluster(CLUSTER, Path("/")), now_unix_s=0.0)
    assert campaign.points
    assert not campaign.refusals
    assert not campaign.notes


def test_the_first_example_is_as_large_as_it_says() -> None:
    campaign = plan(parse_sweep(BLOCKS[0][1]), parse_cluster(CLUSTER, Path("/")), now_unix_s=0.0)
    assert campaign.excluded + len(campaign.points) == 4 * 2 * 2
    # workers 0 on scratch, and 16 workers on 8 cores, in both frameworks
    assert campaign.excluded == 2 + 4


def test_every_key_of_a_sweep_is_explained() -> None:
    for key in (*PART_KEYS, "parts", "repeats", "order_seed", "walltime", "memory", "cluster"):
        assert f"`{key}`" in GUIDE


def test_every_refusal_code_is_explained() -> None:
    sources = "".join((PROJECT / "harness" / "plan" / name).read_text() for name in ("place.py", "fit.py"))
    codes = set(re.findall(r'yield\s*\(?\s*"(\w+)"', sources)) | set(re.findall(r'return \[\("(\w+)"', sources))
    assert len(codes) >= 20
    assert {code for code in codes if f"`{code}`" not in GUIDE} == set()
