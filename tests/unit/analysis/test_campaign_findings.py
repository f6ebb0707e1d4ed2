"""What only the runs of a campaign together show."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.campaign_findings import advised, campaign_findings
from harness.analysis.collect import collect
from harness.analysis.points import point_results
from harness.model.axes import Axes


def steps(step_s: float) -> list[float]:
    return [1.0] + [step_s] * 40


def axes_of(**axes: Any) -> Axes:
    return Axes(**{"workload": "replay", "framework": "none", "steps_timed": 40, **axes})


def found_in(campaign: FakeCampaign) -> dict[str, Any]:
    campaign.save()
    table = collect(campaign.layout)
    return {one.finding.code: one for one in campaign_findings(table, point_results(table))}


def at(layout: Any, unix_s: float, job: str) -> None:
    record = json.loads(layout.exit.read_text())
    layout.exit.write_text(json.dumps(record | {"started_unix_s": unix_s, "ended_unix_s": unix_s + 9, "job_id": job}))


@pytest.mark.parametrize(("last_s", "drifts"), [(0.25, True), (0.202, False)])
def test_a_canary_that_drifts(tmp_path: Path, last_s: float, drifts: bool) -> None:
    campaign = FakeCampaign(tmp_path)
    runs = [(axes_of(seed=1), 0.2, 0), (axes_of(seed=2), 0.2, 0), (axes_of(seed=1), last_s, 1)]
    for number, (axes, step_s, repeat) in enumerate(runs):
        at(campaign.add(axes, FakeRun([steps(step_s)]), repeat=repeat), 1000.0 + 60 * number, "pack7")
    found = found_in(campaign)
    assert ("canary_drift" in found) is drifts
    if drifts:
        assert found["canary_drift"].finding.evidence == {"job": "pack7", "change": "-20%"}


@pytest.mark.parametrize(("slower", "drifts"), [(0.03, True), (0.0, False)])
def test_repeats_that_slow_down_in_the_course_of_a_campaign(tmp_path: Path, slower: float, drifts: bool) -> None:
    campaign = FakeCampaign(tmp_path)
    noise = [0.001, -0.001, 0.0005, -0.0005]
    for number in range(12):
        step_s = 0.2 * (1 + slower * number + noise[number % 4])
        layout = campaign.add(axes_of(seed=number % 4), FakeRun([steps(step_s)]), repeat=number // 4)
        at(layout, 1000.0 + 60 * number, str(number))
    assert ("machine_drift" in found_in(campaign)) is drifts


@pytest.mark.parametrize(("second", "mixed"), [(1_000, True), (99_000_000, False)])
def test_cold_and_warm_repeats_of_unknown_cache(tmp_path: Path, second: int, mixed: bool) -> None:
    campaign = FakeCampaign(tmp_path)
    for repeat, read in enumerate((100_000_000, second)):
        events = [
            {"event": "io", "t_s": t, "at": word, "read_bytes": value, "rchar_bytes": 0, "cpu_s": 0.0}
            for t, word, value in ((0.0, "begin", 0), (9.0, "end", read))
        ]
        campaign.add(axes_of(), FakeRun([steps(0.2)], events=events), repeat=repeat)
    assert ("cold_and_warm_mixed" in found_in(campaign)) is mixed


@pytest.mark.parametrize(("each", "is_found"), [(4 * 10**8, True), (5 * 10**7, False)])
def test_memory_that_workers_cost(tmp_path: Path, each: int, is_found: bool) -> None:
    campaign = FakeCampaign(tmp_path, varied=("workers",))
    for workers in (1, 5):
        layout = campaign.add(axes_of(workers=workers), FakeRun([steps(0.2)]))
        sample = {"t_s": 5.0, "unix_s": 1006.0, "rss_bytes": 10**9 + workers * each}
        layout.samples("n1").write_text(json.dumps(sample) + "\n")
    found = found_in(campaign)
    assert ("memory_grows_with_workers" in found) is is_found
    if is_found:
        evidence = found["memory_grows_with_workers"].finding.evidence
        assert evidence == {"bytes_per_worker": 400_000_000, "workers": [1, 5]}


def test_workers_are_those_of_all_ranks_of_a_node(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, varied=("workers",))
    for workers in (1, 5):
        axes = axes_of(workers=workers, ranks_per_node=4, cpu_cores=4)
        layout = campaign.add(axes, FakeRun([steps(0.2)] * 4))
        sample = {"t_s": 5.0, "unix_s": 1006.0, "rss_bytes": 10**9 + 4 * workers * 10**8}
        layout.samples("n1").write_text(json.dumps(sample) + "\n")
    found = found_in(campaign)["memory_grows_with_workers"].finding
    assert found.evidence == {"bytes_per_worker": 10**8, "workers": [1, 5]}


def test_what_became_slower_all_the_while_was_not_tried(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, varied=("workers",))
    waits = [0.0] + [0.1] * 40
    campaign.add(axes_of(workers=1), FakeRun([steps(0.2)], waits=waits))
    campaign.add(axes_of(workers=2), FakeRun([[0.02 * (1 + step / 4) for step in range(41)]]))
    campaign.save()
    results = point_results(collect(campaign.layout))
    [waiting] = [f for f in results[0].findings if f.code in ("pipeline_bound", "input_bound_idle_cores")]
    assert "without help" not in advised(waiting, results[0], results).advice


def test_advice_knows_what_was_tried(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, varied=("workers", "prefetch"))
    waits = [0.0] + [0.1] * 40
    for workers, step_s in ((1, 0.4), (2, 0.2)):
        for prefetch in (1, 8):
            campaign.add(axes_of(workers=workers, prefetch=prefetch), FakeRun([steps(step_s)], waits=waits))
    campaign.save()
    results = point_results(collect(campaign.layout))
    words = {}
    for result in results:
        [waiting] = [f for f in result.findings if f.code == "pipeline_bound"]
        words[result.axes["workers"], result.axes["prefetch"]] = advised(waiting, result, results).advice
    faster = "All else equal, it ran faster here with 2 workers (× 2.00): use that."
    assert words[1, 1] == f"{faster} Already varied without help: prefetch."
    assert words[2, 8] == (
        "Already varied without help: workers, prefetch. Left to try: parallel threads, storage, encoding."
    )


@pytest.mark.parametrize(
    ("scatter", "said"), [(0.02, "All else equal, it ran faster here with 2"), (0.3, "Perhaps by chance it ran")]
)
def test_what_was_faster_by_chance_is_no_help(tmp_path: Path, scatter: float, said: str) -> None:
    campaign = FakeCampaign(tmp_path, varied=("workers",))
    for workers, step_s in ((1, 0.22), (2, 0.2)):
        for repeat in range(3):
            slower = step_s * (1 + scatter * (repeat - 1))
            campaign.add(axes_of(workers=workers), FakeRun([steps(slower)], waits=[0.0] + [0.1] * 40), repeat=repeat)
    campaign.save()
    results = point_results(collect(campaign.layout))
    slow = next(result for result in results if result.axes["workers"] == 1)
    waiting = next(f for f in slow.findings if f.code == "pipeline_bound")
    assert advised(waiting, slow, results).advice.startswith(said)


def test_no_more_is_proposed_than_it_takes(tmp_path: Path) -> None:
    """8 workers are 2 % faster than 2, which were twice as fast as 1."""
    campaign = FakeCampaign(tmp_path, varied=("workers",))
    for workers, step_s in ((1, 0.4), (2, 0.2), (8, 0.196)):
        campaign.add(axes_of(workers=workers), FakeRun([steps(step_s)], waits=[0.0] + [0.1] * 40))
    campaign.save()
    results = point_results(collect(campaign.layout))
    waiting = next(f for f in results[0].findings if f.code == "pipeline_bound")
    told = advised(waiting, results[0], results).advice
    assert told == "All else equal, it ran faster here with 2 workers (× 2.00): use that."


@pytest.mark.parametrize("other", ["2.13.0", "3.0"])
def test_points_that_are_compared_under_other_conditions(tmp_path: Path, other: str) -> None:
    campaign = FakeCampaign(tmp_path, varied=("workers",))
    for workers, version in ((1, "2.13.0"), (2, "2.13.0"), (4, other)):
        run = FakeRun([steps(0.2)], versions={"python": "3.11.2", "torch": version})
        campaign.add(axes_of(workers=workers, framework="torch", workload="lenet_mnist"), run)
    found = found_in(campaign)
    assert ("conditions_differ" in found) is (other != "2.13.0")
    if other != "2.13.0":
        assert len(found["conditions_differ"].point_ids) == 1
        assert found["conditions_differ"].finding.evidence["difference"].startswith("framework_version was 3.0")
