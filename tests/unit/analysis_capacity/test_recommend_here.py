"""What ``harness recommend`` gives for this machine: a sweep that ``harness run`` takes, and no directives."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun

from harness.cli.main import cli
from harness.config.cluster_file import load_cluster
from harness.config.sweep_file import load_sweep
from harness.model.axes import Axes
from harness.plan.plan import plan

ROOT = Path(__file__).resolve().parents[3]
IMAGES, STEPS = 32, 60


def make(root: Path) -> None:
    """Cores × workers on this machine; training takes 800 images/s, a core prepares 110, a worker uses one core."""
    campaign = FakeCampaign(root, "here", varied=("cpu_cores", "workers"), repeats=2)
    generator = np.random.default_rng(1)
    for cores in (1, 2, 4, 8, 16):
        for workers in (1, 4, 16):
            rate = (800.0**-8 + (110.0 * min(cores, workers)) ** -8) ** (-1 / 8)
            axes = Axes(
                workload="resnet_imagenet",
                framework="torch",
                pipeline="torch_files",
                dataset="imagenet",
                batch_size=IMAGES,
                cpu_cores=cores,
                workers=workers,
                options={"corrupt": "skip"},
            )
            for repeat in range(2):
                times = [IMAGES / rate * (1 + 0.02 * float(x)) for x in generator.standard_normal(STEPS)]
                campaign.add(axes, FakeRun([times]), repeat)
    campaign.save()
    cluster = load_cluster("local", ROOT)
    node = cluster.node.model_copy(update={"sockets": 1, "cores_per_socket": 16, "memory_bytes": 64 * 1024**3})
    campaign.layout.cluster.write_text(cluster.model_copy(update={"node": node}).model_dump_json())


def test_a_sweep_that_can_be_run(tmp_path: Path) -> None:
    make(tmp_path)
    file = tmp_path / "recommended.yml"
    done = CliRunner().invoke(cli, ["recommend", "here", "--results", str(tmp_path), "--json", "-o", str(file)])
    assert done.exit_code == 0, done.output
    (answer,) = json.loads(done.output)
    assert file.read_text().splitlines() == answer["request"]["lines"]
    sweep = load_sweep(file)
    campaign = plan(sweep, load_cluster("local", ROOT).model_copy(update={"node": big_node()}), now_unix_s=0.0)
    (point,) = campaign.points.values()
    planned = point.axes.model_dump(exclude_defaults=True)
    assert planned | answer["request"]["axes"] == planned
    assert (point.axes.cpu_cores, point.axes.options) == (answer["setting"]["cores"], {"corrupt": "skip"})
    assert sweep.cluster == "local"


def big_node() -> object:
    node = load_cluster("local", ROOT).node
    return node.model_copy(update={"sockets": 1, "cores_per_socket": 16, "memory_bytes": 64 * 1024**3})


def test_no_directive_of_an_engine_is_shown(tmp_path: Path) -> None:
    make(tmp_path)
    text = CliRunner().invoke(cli, ["recommend", "here", "--results", str(tmp_path)]).output
    assert "#LOCAL" not in text and "train.py" not in text
    assert "# in recommended.yml, then: harness run recommended.yml" in text
    assert "  cpu_cores: 8" in text
