"""``harness recommend`` and ``harness next`` from evidence on disk: answers with directives, refusals with reasons."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun

from harness.cli.main import cli
from harness.config.cluster_file import load_cluster
from harness.errors import UserError
from harness.model.axes import Axes

ROOT = Path(__file__).resolve().parents[3]
IMAGES, STEPS = 32, 60


def durations(rate: float, seed: int, noise: float = 0.02) -> list[float]:
    """Step times whose rate is ``rate`` images/s, give or take."""
    generator = np.random.default_rng(seed)
    return [IMAGES / rate * (1 + noise * float(x)) for x in generator.standard_normal(STEPS)]


def rate_of(cores: int, workers: int) -> float:
    """A GPU takes 800 images/s, a core prepares 110 of them, a worker uses one core."""
    return float((800.0**-8 + (110.0 * min(cores, workers)) ** -8) ** (-1 / 8))


def make(root: Path, **changes: object) -> FakeCampaign:
    """Cores × workers on a PBS cluster, two repeats each."""
    campaign = FakeCampaign(root, "grid", varied=("cpu_cores", "workers"), repeats=2)
    for cores in (1, 2, 4, 8, 16):
        for workers in (1, 4, 16):
            axes = Axes(
                workload="resnet_imagenet",
                framework="torch",
                pipeline="torch_files",
                dataset="imagenet",
                batch_size=IMAGES,
                cpu_cores=cores,
                workers=workers,
                gpus_per_rank=1,
                **changes,  # type: ignore[arg-type]
            )
            for repeat in range(2):
                run = FakeRun([durations(rate_of(cores, workers), 100 * cores + 10 * workers + repeat)])
                campaign.add(axes, run, repeat)
    campaign.save()
    cluster = load_cluster("generic-pbspro", ROOT)
    node = cluster.node.model_copy(update={"sockets": 1, "cores_per_socket": 32, "gpus": 4})
    cluster = cluster.model_copy(update={"node": node, "queues": {}, "queue": "gpu"})
    campaign.layout.cluster.write_text(cluster.model_dump_json())
    return campaign


def invoke(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, list(words))
    if isinstance(result.exception, Exception) and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_answer_has_its_interval_its_cost_and_the_directives(tmp_path: Path) -> None:
    make(tmp_path)
    code, text = invoke("recommend", "grid", "--results", str(tmp_path))
    assert code == 0
    assert "Ask for: 8 CPU cores per GPU" in text and "images/s" in text and "core-hours" in text
    assert "Limited by: the model's own computing" in text
    assert "#PBS -l select=1:ncpus=8" in text and "mpirun" in text


def test_json_holds_errors_of_held_out_points_and_the_request(tmp_path: Path) -> None:
    make(tmp_path)
    head = tmp_path / "request.sh"
    code, text = invoke("recommend", "grid", "--results", str(tmp_path), "--json", "-o", str(head))
    (answer,) = json.loads(text)
    assert code == 0
    assert answer["setting"]["cores"] == 8 and answer["setting"]["workers"] in (8, 9, 10)
    assert answer["held_out_median"] <= 0.04 and len(answer["held_out"]) == 15
    assert answer["images_per_s"]["low"] < rate_of(8, 9) < answer["images_per_s"]["high"]
    assert (answer["interval"], answer["points_run_once"]) == ("model", 0)
    assert answer["request"]["axes"]["cpu_cores"] == 8 and answer["request"]["axes"]["gpus_per_rank"] == 1
    lines = head.read_text().splitlines()
    assert lines[0] == "#!/bin/bash" and lines[1:] == answer["request"]["lines"]


def test_cores_can_be_limited(tmp_path: Path) -> None:
    make(tmp_path)
    _, text = invoke("recommend", "grid", "--results", str(tmp_path), "--at-most", "cpu_cores=4", "--json")
    (answer,) = json.loads(text)
    assert answer["setting"]["cores"] == 4
    assert answer["images_per_s"]["value"] == pytest.approx(440, rel=0.03)
    assert answer["limited_by"] == "preparation"


@pytest.mark.parametrize("text", ["cpu_core=4", "cpu_cores=none", "cpu_cores=0"])
def test_a_limit_that_makes_no_sense_is_refused(tmp_path: Path, text: str) -> None:
    make(tmp_path)
    with pytest.raises(UserError, match="--at-most"):
        invoke("recommend", "grid", "--results", str(tmp_path), "--at-most", text)


def test_unsteady_runs_and_wrong_bindings_are_no_ground_for_advice(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "bad", varied=("cpu_cores",), repeats=1)
    for cores in (1, 2, 4, 8):
        axes = Axes(workload="lenet_mnist", framework="torch", cpu_cores=cores, gpus_per_rank=1)
        unsteady = [0.1 * 1.05**step for step in range(STEPS)]
        campaign.add(axes, FakeRun([unsteady]))
    campaign.save()
    campaign.layout.cluster.write_text(load_cluster("generic-pbspro", ROOT).model_dump_json())
    code, text = invoke("recommend", "bad", "--results", str(tmp_path))
    assert code == 1
    assert "No recommendation" in text and "steady" in text and "steps" in text
    assert "#PBS" not in text


def test_binding_not_achieved_is_named_as_the_reason(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "bound", varied=("cpu_cores",), repeats=1)
    finding = {"event": "finding", "t_s": 0.0, "code": "fewer_cores_than_requested", "severity": "warning"}
    for cores in (1, 2, 4, 8):
        axes = Axes(workload="lenet_mnist", framework="torch", cpu_cores=cores, gpus_per_rank=1)
        campaign.add(axes, FakeRun([durations(100.0 * cores, cores)], events=[finding]))
    campaign.save()
    campaign.layout.cluster.write_text(load_cluster("generic-pbspro", ROOT).model_dump_json())
    code, text = invoke("recommend", "bound", "--results", str(tmp_path), "--json")
    (answer,) = json.loads(text)
    assert code == 1 and answer["refused"]["code"] == "binding"
    assert len(answer["left_out"]) == 4


@pytest.mark.parametrize(
    ("run", "code", "told"),
    [
        ({"exit_code": 1, "cause": "exit"}, "failed", "no run succeeded (4 of 4"),
        ({"events": [{"event": "finding", "t_s": 0.0, "code": "ranks_diverged"}]}, "doubtful", "different parameters"),
    ],
)
def test_failed_and_doubtful_runs_are_no_ground_for_advice(
    tmp_path: Path, run: dict[str, object], code: str, told: str
) -> None:
    campaign = FakeCampaign(tmp_path, "bad", varied=("cpu_cores",), repeats=1)
    for cores in (1, 2, 4, 8):
        axes = Axes(workload="lenet_mnist", framework="torch", cpu_cores=cores, gpus_per_rank=1)
        campaign.add(axes, FakeRun([durations(100.0 * cores, cores)], **run))  # type: ignore[arg-type]
    campaign.save()
    campaign.layout.cluster.write_text(load_cluster("generic-pbspro", ROOT).model_dump_json())
    status, text = invoke("recommend", "bad", "--results", str(tmp_path), "--json")
    (answer,) = json.loads(text)
    assert status == 1 and answer["refused"]["code"] == code
    assert answer["refused"]["advice"] and len(answer["left_out"]) == 4
    shown = " ".join(invoke("recommend", "bad", "--results", str(tmp_path))[1].split())
    assert told.split(" (")[0] in shown and "harness check" in shown


def test_rungs_whose_batch_is_held_are_no_questions(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, "ladder", varied=("workers", "feed"), repeats=2)
    for number, (workers, feed) in enumerate([(w, f) for w in (1, 2, 4, 8) for f in ("pipeline", "host", "device")]):
        axes = Axes(workload="lenet_mnist", framework="torch", cpu_cores=8, workers=workers, feed=feed)
        for repeat in range(2):
            rate = 100.0 * workers if feed == "pipeline" else 900.0
            campaign.add(axes, FakeRun([durations(rate, 2 * number + repeat)]), repeat)
    campaign.save()
    campaign.layout.cluster.write_text(load_cluster("generic-pbspro", ROOT).model_dump_json())
    (answer,) = json.loads(invoke("recommend", "ladder", "--results", str(tmp_path), "--json")[1])
    assert "host" not in str(answer["group"]) and "device" not in str(answer["group"])


def test_a_queue_that_cannot_take_it_says_so(tmp_path: Path) -> None:
    campaign = make(tmp_path)
    cluster = json.loads(campaign.layout.cluster.read_text())
    cluster["node"]["gpus"] = 0
    campaign.layout.cluster.write_text(json.dumps(cluster))
    code, text = invoke("recommend", "grid", "--results", str(tmp_path))
    assert code == 0
    assert "The cluster would refuse it" in text and "GPU" in text


SWEEP = """
name: tiny
base:
  workload: replay
  options: {consume_s: 0.01, produce_s: 0.05, first_step_s: 0.0, clock: virtual}
matrix:
  workers: [1, 2, 4, 8, 16]
  prefetch: [1, 4, 16]
steps: {warmup: 0, timed: 60}
repeats: 1
walltime: "00:02:00"
"""


def test_next_names_points_that_span_the_grid_before_anything_is_measured(tmp_path: Path) -> None:
    sweep = tmp_path / "tiny.yml"
    sweep.write_text(SWEEP)
    code, text = invoke("next", str(sweep), "--results", str(tmp_path / "results"), "--json")
    (question,) = json.loads(text)
    assert code == 0 and not question["settled"]
    assert question["planned"] == 15 and question["measured"] == 0
    axes = [(p["axes"]["workers"], p["axes"]["prefetch"]) for p in question["next"]]
    assert axes == [(16, 16), (1, 16), (16, 1)]


def test_next_tells_of_points_without_a_rate_and_leaves_them_alone(tmp_path: Path) -> None:
    sweep = tmp_path / "tiny.yml"
    sweep.write_text(SWEEP)
    planned = ("next", str(sweep), "--results", str(tmp_path / "results"))
    (question,) = json.loads(invoke(*planned, "--json")[1])
    campaign = FakeCampaign(tmp_path / "results", "tiny", varied=("workers", "prefetch"), repeats=1)
    for number, point in enumerate(question["next"]):
        bad = {"exit_code": 1, "cause": "exit"} if number else {}
        name = campaign.plan(Axes(**point["axes"]))
        assert name == point["point_id"]
        campaign.add(Axes(**point["axes"]), FakeRun([durations(100.0, number)], **bad))  # type: ignore[arg-type]
    campaign.save()
    (after,) = json.loads(invoke(*planned, "--json")[1])
    assert (after["measured"], after["without_rate"]) == (3, 2)
    assert not {p["point_id"] for p in after["next"]} & {p["point_id"] for p in question["next"]}
    shown = " ".join(invoke(*planned)[1].split())
    assert "2 points have no rate and are not measured again here: `harness status tiny` says why" in shown
