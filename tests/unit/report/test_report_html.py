"""The report's words and its data: what to request, and that nothing of the campaign can break the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect
from harness.cli.main import cli
from harness.model.axes import Axes
from harness.report import html
from harness.report.advice import advices
from harness.report.html.traces import thinned
from harness.report.request import requests


def campaign(
    root: Path, step_s: dict[int, float], repeats: int = 3, spread: float = 0.01, **more: object
) -> FakeCampaign:
    made = FakeCampaign(root, "c", varied=("cpu_cores",), repeats=repeats)
    for cores, seconds in step_s.items():
        for repeat in range(repeats):
            steps = [1.0] + [seconds * (1 + spread * (repeat - 1))] * 20
            made.add(Axes(workload="replay", cpu_cores=cores, steps_timed=20), FakeRun([steps], **more), repeat=repeat)  # type: ignore[arg-type]
    return made


def said(made: FakeCampaign) -> list[str]:
    saved = made.save()
    return requests(collect(made.layout), saved)


def test_the_least_that_is_nearly_as_fast_is_requested(tmp_path: Path) -> None:
    assert said(campaign(tmp_path, {1: 0.2, 2: 0.1, 4: 0.098})) == [
        "replay: request 2 cpu cores for 320 [312, 328] images/s, against 327 [319, 335] with 4 cpu cores."
    ]


def test_a_rate_that_still_rises_is_said_to(tmp_path: Path) -> None:
    (sentence,) = said(campaign(tmp_path, {1: 0.2, 2: 0.1}))
    assert sentence.endswith("The rate still rises there; more was not measured.")


def test_a_gain_within_chance_is_not_sold(tmp_path: Path) -> None:
    (sentence,) = said(campaign(tmp_path, {1: 0.2, 2: 0.17}, spread=0.2))
    assert "cannot be told from chance: repeat before paying for it." in sentence


def test_no_advice_without_points_to_rely_on(tmp_path: Path) -> None:
    made = FakeCampaign(tmp_path, "c", repeats=1)
    for cores in (1, 2):
        ramp = list(np.linspace(0.1, 0.4, 21) / cores)
        made.add(Axes(workload="replay", cpu_cores=cores, steps_timed=20), FakeRun([ramp]))
    assert said(made) == ["replay: no advice, since fewer than two of its points can be relied on."]


def test_where_no_amount_varies_the_fastest_is_named_and_those_like_it(tmp_path: Path) -> None:
    made = FakeCampaign(tmp_path, "c", varied=("storage",), repeats=3)
    for storage, seconds in (("a", 0.1), ("b", 0.1005), ("c", 0.3)):
        for repeat in range(3):
            steps = [1.0] + [seconds * (1 + 0.02 * (repeat - 1))] * 20
            made.add(Axes(workload="replay", storage=storage, steps_timed=20), FakeRun([steps]), repeat=repeat)
    (sentence,) = said(made)
    assert sentence.startswith("replay: the fastest was a with 320 [")
    assert sentence.endswith("images/s. Not to be told apart from it: b.")


@pytest.mark.parametrize("points", [13, 14])
def test_the_fastest_of_many_is_said_to_owe_something_to_luck(points: int, tmp_path: Path) -> None:
    made = FakeCampaign(tmp_path, "c", varied=("storage",), repeats=3)
    for point in range(points):
        for repeat in range(3):
            steps = [1.0] + [0.1 * (1 + 0.001 * point + 0.02 * (repeat - 1))] * 20
            made.add(Axes(workload="replay", storage=f"s{point:02}", steps_timed=20), FakeRun([steps]), repeat=repeat)
    (sentence,) = said(made)
    assert ("It is the best of 14 alike, so its rate is likely too high" in sentence) == (points == 14)


def test_a_refusal_or_an_answer_comes_with_its_reason(tmp_path: Path) -> None:
    made = campaign(tmp_path, {1: 0.2, 2: 0.1})
    saved = made.save()
    ((refused,), more) = advices(collect(made.layout), saved)
    assert (refused.title.endswith("(2 points)"), refused.answered, more) == (True, False, 0)
    assert refused.first[0] == ("No recommendation", "2 points were measured; the model needs 4 or more")
    assert [name for name, _ in refused.first] == ["No recommendation", "Fastest measured", "Next"]
    flat = campaign(tmp_path / "flat", {1: 0.2, 2: 0.1, 4: 0.0999, 8: 0.0998})
    saved = flat.save()
    ((answered,), _) = advices(collect(flat.layout), saved, {"cpu_cores": 8}, lambda answer, _: [answer.limited_by])
    assert answered.answered and answered.first[0][0] == "Ask for"
    assert answered.first[0][1].startswith("2 CPU cores")
    assert len(answered.directives) == 1


def test_nothing_of_a_campaign_can_end_the_script(tmp_path: Path) -> None:
    made = FakeCampaign(tmp_path, "c", varied=("storage",), repeats=1)
    for name in ("</script><!--<script>", "b"):
        attempt = made.add(Axes(workload="replay", storage=name, steps_timed=20), FakeRun([[1.0] + [0.2] * 20]))
        attempt.script.write_bytes(b"echo '</SCRIPT>' \xff\n")
    saved = made.save()
    page = html.build(made.layout, collect(made.layout), saved)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data is not None
    loaded = json.loads(data[1])
    assert sorted(dict(p["axes"])["storage"] for p in loaded["points"]) == ["</script><!--<script>", "b"]
    assert all("</SCRIPT>" in run["script"] for p in loaded["points"] for run in p["runs"])
    assert "</script><!--" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page.split("<body>")[1].split("<script>")[0])


def test_an_empty_campaign_has_a_report(tmp_path: Path) -> None:
    made = FakeCampaign(tmp_path, "c")
    made.plan(Axes(workload="replay"))
    made.save()
    done = CliRunner().invoke(cli, ["report", str(made.layout.root), "--json"], standalone_mode=False)
    told = json.loads(done.output)
    assert told["file"] == str(made.layout.report)
    assert "Nothing was measured" in made.layout.report.read_text(encoding="utf-8")


def test_thinning_keeps_the_slow_steps() -> None:
    values = np.ones(10_000)
    values[[17, 5003, 9999]] = 50.0
    kept = thinned(values, 200)
    assert len(kept) <= 200 and {17, 5003, 9999} <= set(kept)
    assert thinned(values[:5], 200) == [0, 1, 2, 3, 4]
