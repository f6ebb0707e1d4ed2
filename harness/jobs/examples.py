"""Rendered examples: for every shipped cluster and sweep, the job script of one representative point.

They are documentation to read before submitting, and whole-file goldens: a test renders them again and compares
every byte. Write them anew with ``harness render --examples`` and read the difference before committing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.config.cluster_file import load_cluster
from harness.config.overrides import override
from harness.config.sweep_file import load_sweep
from harness.errors import UserError
from harness.files import write_atomically
from harness.jobs.render import render_job
from harness.layout import ProjectLayout
from harness.model.campaign import Campaign, Task
from harness.model.cluster import Cluster, NodeType
from harness.model.job import RunSpec
from harness.plan.plan import plan

#: where the examples pretend that the user works
EXAMPLE_ROOT = Path("/home/user/dl-batch-harness")

#: what a user would --set to make a sweep fit a cluster; the first that fits is shown
_ADAPTATIONS = ((), ("gpus_per_rank=1",), ("gpus_per_rank=1", "cpu_cores=12"))


def examples(project_root: Path) -> Iterator[tuple[str, str]]:
    """``(<cluster>/<sweep>.sh, text)`` for every pair where at least one point of the sweep can run."""
    project = ProjectLayout(project_root)
    for cluster_file in sorted(project.clusters.glob("*.yml")):
        cluster = example_cluster(cluster_file.stem, project_root)
        for sweep_file in sorted(project.sweeps.glob("*.yml")):
            for overrides in _ADAPTATIONS:
                try:
                    text = _example(cluster, sweep_file, overrides, project_root)
                except UserError:  # nothing of this sweep can run there so
                    continue
                yield f"{cluster_file.stem}/{sweep_file.stem}.sh", text
                break


def _example(cluster: Cluster, sweep_file: Path, overrides: Sequence[str], project_root: Path) -> str:
    campaign = plan(override(load_sweep(sweep_file), overrides), cluster, now_unix_s=0.0)
    spec = representative(campaign)
    attempt = ProjectLayout(EXAMPLE_ROOT).campaign(campaign.name).attempt(spec.point_id, 0, 1)
    return render_job(cluster, spec, attempt.root, project_root, source_root=EXAMPLE_ROOT)


def example_cluster(name: str, project_root: Path) -> Cluster:
    """The cluster with nothing of this machine in it: paths, interpreter and the node of the local engine."""
    cluster = load_cluster(name, project_root)
    root, pretended = str(project_root), str(EXAMPLE_ROOT)
    storage = {
        key: entry.model_copy(update={"path": entry.path.replace(root, pretended)})
        for key, entry in cluster.storage.items()
    }
    changes: dict[str, object] = {"storage": storage}
    if cluster.scheduler == "local":
        changes |= {"node": NodeType(cores_per_socket=8), "python": f"{pretended}/.venv/bin/python"}
    return cluster.model_copy(update=changes)


def representative(campaign: Campaign) -> RunSpec:
    """The point that asks for most: nodes, ranks, GPUs, cores; the first of equals."""
    placements = {point_id: point.placement for point_id, point in campaign.points.items()}
    point_id = max(
        placements,
        key=lambda name: (
            placements[name].nodes,
            placements[name].ranks_per_node,
            placements[name].gpus_per_node,
            placements[name].cores_per_node,
        ),
    )
    return run_spec(campaign, Task(point_id=point_id, repeat=0))


def run_spec(campaign: Campaign, task: Task) -> RunSpec:
    point = campaign.points[task.point_id]
    return RunSpec(
        campaign=campaign.name,
        point_id=task.point_id,
        repeat=task.repeat,
        attempt=1,
        axes=point.axes,
        placement=point.placement,
        harness_version="",
    )


def write_examples(project_root: Path, target: Path) -> list[Path]:
    """Write all examples under ``target``, and remove those that no longer exist."""
    wanted = {target / name: text for name, text in examples(project_root)}
    for stale in set(target.glob("*/*.sh")) - wanted.keys():
        stale.unlink()
    for path, text in wanted.items():
        write_atomically(path, text)
    return sorted(wanted)
