"""Every shipped sweep and cluster loads, plans somewhere, and says at its head what it is."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from harness.config.cluster_file import load_cluster
from harness.config.sweep_file import load_sweep
from harness.plan.load import plan_from_files

PROJECT = Path(__file__).parents[3]
SWEEPS = sorted((PROJECT / "configs" / "sweeps").glob("*.yml"))
CLUSTERS = sorted((PROJECT / "configs" / "clusters").glob("*.yml"))


def header(path: Path) -> str:
    lines = path.read_text().splitlines()
    return "\n".join(line for line in lines[: next(i for i, text in enumerate(lines) if not text.startswith("#"))])


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_a_sweeps_head_says_source_axes_expectation_and_cost(path: Path) -> None:
    for word in ("Source", "Varies", "Expect", "Cost"):
        assert f"# {word}" in header(path)


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_a_sweep_is_named_as_its_file_and_runs_somewhere(path: Path) -> None:
    sweep = load_sweep(path)
    assert sweep.name == path.stem
    cluster = sweep.cluster or "dell-c4140"
    campaign, _ = plan_from_files(path, cluster, PROJECT, 0.0)
    assert campaign.points
    assert campaign.name == f"{path.stem}-{cluster}"


@pytest.mark.parametrize("path", CLUSTERS, ids=lambda path: path.stem)
def test_a_cluster_is_named_as_its_file_and_takes_a_small_point(path: Path) -> None:
    cluster = load_cluster(path.stem, PROJECT)
    assert cluster.name == path.stem
    assert header(path)
    cores_per_gpu = max([queue.cores_per_gpu or 0 for queue in cluster.queues.values()], default=0)
    gpus = 1 if cores_per_gpu or cluster.directives.style == "by_gpu" else 0
    overrides = ["repeats=1", f"gpus_per_rank={gpus}", f"cpu_cores={cores_per_gpu or 1}"]
    overrides += ["walltime=10m", "memory=1gb"]
    campaign, _ = plan_from_files(PROJECT / "configs/sweeps/replay.yml", path.stem, PROJECT, 0.0, overrides)
    assert len(campaign.points) == 24
    assert not campaign.refusals


def test_the_quickstart_is_the_grid_it_promises() -> None:
    campaign, _ = plan_from_files(PROJECT / "configs/sweeps/quickstart.yml", "dell-c4140", PROJECT, 0.0)
    grid = {(p.axes.cpu_cores, p.axes.workload, p.axes.framework) for p in campaign.points.values()}
    workloads, frameworks = ("dcgan_mnist", "resnet20_cifar10"), ("tensorflow", "torch")
    assert grid == {(cores, w, f) for cores in (1, 2) for w in workloads for f in frameworks}
    assert {p.axes.dataset for p in campaign.points.values()} == {"digits:mnist", "photos:cifar10"}
    assert campaign.varied == ("cpu_cores", "workload", "framework")


def test_the_nus_study_has_its_published_lengths() -> None:
    campaign, _ = plan_from_files(PROJECT / "configs/sweeps/nus_cpu_cores.yml", None, PROJECT, 0.0)
    assert campaign.cluster == "nus-volta"
    lengths = {(p.axes.workload, p.axes.batch_size, p.axes.steps_timed) for p in campaign.points.values()}
    # 10,000 iterations; 50 epochs of ceil(50,000 / 64) = 782 steps
    assert lengths == {("dcgan_mnist", 32, 10_000), ("resnet20_cifar10", 64, 50 * 782)}
    assert max(p.axes.cpu_cores for p in campaign.points.values()) == 40


def published(name: str) -> list[dict[str, str]]:
    lines = (PROJECT / "results" / "published" / f"{name}.csv").read_text().splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def test_the_sweeps_of_published_tables_have_all_their_points() -> None:
    planned = {}
    for name in ("alcf_threads_prefetch", "alcf_horovod_scaling", "dell_scaling", "aws_workers"):
        campaign, _ = plan_from_files(PROJECT / f"configs/sweeps/{name}.yml", None, PROJECT, 0.0)
        assert not campaign.refusals
        planned[name] = [point.axes for point in campaign.points.values()]
    grid = {
        (int(row["parallel_threads"]), int(row["prefetch_buffer_size"])) for row in published("alcf_threads_prefetch")
    }
    shared = {(a.parallel_threads, a.prefetch) for a in planned["alcf_threads_prefetch"] if a.storage == "hpctmp"}
    assert shared == grid
    for name in ("alcf_horovod_scaling", "dell_scaling"):
        assert {axes.ranks for axes in planned[name]} == {int(row["gpus"]) for row in published(name)}
    assert {axes.workers for axes in planned["aws_workers"]} >= {
        int(row["workers"]) for row in published("aws_workers")
    }
