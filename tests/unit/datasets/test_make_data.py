"""``harness run --make-data``: makes what a sweep reads, in its own sizes and encodings, and nothing twice."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from harness.cli import preflight
from harness.cli.data_place import directory
from harness.cli.make_data import make_missing
from harness.cli.options import SweepChoice
from harness.datasets.manifest import missing, read_manifest
from harness.errors import UserError

pytest.importorskip("sklearn")

SWEEP = """\
name: small
base: {workload: lenet_mnist, framework: tensorflow}
matrix:
  encoding: [native, tfrecord]
  storage: [hpctmp, scratch]
when:
  - where: {encoding: tfrecord}
    set: {pipeline: tf_queue}
scales:
  smoke:
    base: {dataset: "digits:mnist"}
    data:
      "digits:mnist": {train: 40, test: 10, shard_samples: 16}
"""
CLUSTER = """\
name: here
scheduler: local
nodes: 1
node: {{sockets: 1, cores_per_socket: 4, memory: 8gb}}
storage:
  hpctmp: {{path: "{root}/hp c's"}}
  scratch: {{path: "{root}/scratch", scope: node, stage_from: hpctmp}}
mpi: {{flavour: openmpi5}}
"""


@pytest.fixture
def choice(tmp_path: Path) -> SweepChoice:
    (tmp_path / "sweep.yml").write_text(SWEEP)
    cluster = tmp_path / "here.yml"
    cluster.write_text(CLUSTER.format(root=tmp_path))
    return SweepChoice(tmp_path / "sweep.yml", str(cluster), None, None, (), None, None, tmp_path, scale="smoke")


def make(choice: SweepChoice) -> str:
    console = Console(file=io.StringIO(), width=300)
    make_missing(choice, console)
    return console.file.getvalue()


def test_what_is_missing_is_made_and_converted_once(choice: SweepChoice, tmp_path: Path) -> None:
    root = tmp_path / "hp c's"
    campaign, cluster = choice.plan()
    with pytest.raises(UserError, match="(?s)digits:mnist is not in .*--make-data makes generated data sets itself"):
        preflight.check(cluster, campaign.points.values())
    said = make(choice)
    assert said.count("made digits:mnist: ") == 1 and said.count("made digits:mnist as tfrecord: ") == 1
    native, shards = root / "digits-mnist", root / "digits-mnist.tfrecord"
    assert read_manifest(native).request.counts == {"train": 40, "test": 10}
    assert not missing(shards, "digits:mnist", "tfrecord")
    # 40 training samples in shards of 16
    assert sum(count for name, count in read_manifest(shards).conversion.shards.items() if "train" in name) == 40
    assert sorted(count for name, count in read_manifest(shards).conversion.shards.items() if "train" in name)[-1] <= 16
    assert not (tmp_path / "scratch").exists(), "node-local storage is filled inside the job"
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    assert make(choice) == ""
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_a_set_of_another_size_is_left_alone(choice: SweepChoice, tmp_path: Path) -> None:
    from harness.datasets.make import make as make_set
    from harness.datasets.manifest import Request

    native = tmp_path / "hp c's" / "digits-mnist"
    make_set(native, Request(format="mnist", origin="digits", counts={"train": 60, "test": 12}))
    assert "made digits:mnist: " not in make(choice)
    assert read_manifest(native).request.counts["train"] == 60


def test_real_data_are_not_made(choice: SweepChoice, tmp_path: Path) -> None:
    full = SweepChoice(**{**vars(choice), "scale": None})
    assert make(full) == "" and not (tmp_path / "hp c's").exists()


def test_data_of_another_machine_are_not_made_here(choice: SweepChoice, tmp_path: Path) -> None:
    cluster = tmp_path / "there.yml"
    cluster.write_text(CLUSTER.format(root=tmp_path).replace("scheduler: local", "scheduler: slurm"))
    with pytest.raises(UserError, match="--make-data makes data on this machine, and here is another"):
        make(SweepChoice(**{**vars(choice), "cluster": str(cluster)}))


def test_a_cluster_is_warned_of_data_that_its_storage_lacks(choice: SweepChoice, tmp_path: Path) -> None:
    campaign, cluster = choice.plan()
    slurm, points = cluster.model_copy(update={"scheduler": "slurm"}), campaign.points.values()
    preflight.check(slurm, points)
    assert preflight.doubts(slurm, points) == [], "a storage that is not seen from here is not judged"
    (tmp_path / "hp c's").mkdir()
    found = preflight.doubts(slurm, points)
    assert len(found) == 2, "each data set once, though two storages take it from there"
    assert "digits:mnist is not in" in found[0] or "digits:mnist is not in" in found[1]
    assert preflight.doubts(cluster, points) == []
    make(choice)
    assert preflight.doubts(slurm, points) == []


def below(choice: SweepChoice, tmp_path: Path, place: str) -> SweepChoice:
    """The choice with its shared storage at ``place``."""
    cluster = tmp_path / "elsewhere.yml"
    cluster.write_text(CLUSTER.format(root=tmp_path).replace(f"{tmp_path}/hp c's", place))
    return SweepChoice(**{**vars(choice), "cluster": str(cluster)})


def test_a_tilde_is_the_home_directory_here_as_in_the_job(
    choice: SweepChoice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    choice = below(choice, tmp_path, "~/sets")
    assert "made digits:mnist: " in make(choice)
    assert not missing(tmp_path / "home" / "sets" / "digits-mnist", "digits:mnist")
    assert not (tmp_path / "~").exists()
    campaign, cluster = choice.plan()
    seen = cluster.model_copy(update={"scheduler": "slurm"})
    assert preflight.doubts(seen, campaign.points.values()) == []
    assert directory("digits:mnist", "hpctmp", str(choice.cluster), tmp_path) == tmp_path / "home/sets/digits-mnist"


def test_nothing_is_made_where_a_variable_is_not_set(
    choice: SweepChoice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_PLACE", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"--make-data: \$NO_SUCH_PLACE/digits-mnist: a variable in it is not set here"):
        make(below(choice, tmp_path, "$NO_SUCH_PLACE"))
    assert not (tmp_path / "$NO_SUCH_PLACE").exists()
