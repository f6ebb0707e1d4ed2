"""Rendered examples: for every shipped cluster and sweep, the job script of one representative point; and for every
cluster an array and a pack, with the script that their runs share.

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
from harness.jobs.groups import render_array, render_pack, resources
from harness.jobs.modes import How, plan_batches
from harness.jobs.render import render_job, render_shared
from harness.jobs.submission import Batch
from harness.layout import ProjectLayout
from harness.model.campaign import Campaign, Task
from harness.model.cluster import Cluster, NodeType
from harness.model.job import Placement, RunSpec, group_job_name
from harness.plan.plan import plan

#: where the examples pretend that the user works
EXAMPLE_ROOT = Path("/home/user/dl-batch-harness")

#: what a user would --set to make a sweep fit a cluster; the first that fits is shown
_ADAPTATIONS = ((), ("gpus_per_rank=1",), ("gpus_per_rank=1", "cpu_cores=12"))
#: runs of an example's array or pack, and of a sweep that is taken for one
_GROUP_RUNS, _FEWEST_RUNS = 6, 4


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
        yield from ((f"{cluster_file.stem}/groups/{name}", text) for name, text in _groups(cluster, project))


def _groups(cluster: Cluster, project: ProjectLayout) -> Iterator[tuple[str, str]]:
    """``array.sh`` where the cluster has arrays, ``pack.sh``, and the ``attempt.sh`` of their runs; all of the first
    sweep that has enough runs with equal requests."""
    for sweep_file in sorted(project.sweeps.glob("*.yml")):
        for overrides in _ADAPTATIONS:
            try:
                campaign = plan(override(load_sweep(sweep_file), overrides), cluster, now_unix_s=0.0)
            except UserError:
                continue
            tasks = _alike(campaign)
            if len(tasks) >= _FEWEST_RUNS:
                yield from _group_scripts(cluster, campaign, tasks, project.root)
                return


def _alike(campaign: Campaign) -> list[Task]:
    """The first runs of those that ask for the same, the most frequent request."""
    groups: dict[Placement, list[Task]] = {}
    for task in campaign.tasks:
        groups.setdefault(resources(campaign.points[task.point_id].placement), []).append(task)
    return max(groups.values(), key=len, default=[])[:_GROUP_RUNS]


def _group_scripts(
    cluster: Cluster, campaign: Campaign, tasks: Sequence[Task], project_root: Path
) -> Iterator[tuple[str, str]]:
    layout, name = ProjectLayout(EXAMPLE_ROOT).campaign(campaign.name), group_job_name(campaign.name, 1)
    for kind in ("pack",) if cluster.scheduler == "local" else ("array", "pack"):
        batch: Batch = plan_batches(campaign, cluster, tasks, How(kind), "examples").batches[0]
        attempts = [
            (layout.attempt(task.point_id, task.repeat, 1).root, campaign.points[task.point_id].placement)
            for task in batch.tasks
        ]
        directory = layout.group("g1").root
        if kind == "array":
            placements = [placement for _, placement in attempts]
            yield "array.sh", render_array(cluster, placements, name, directory, project_root)
        else:
            yield "pack.sh", render_pack(cluster, attempts, name, directory, project_root)
    spec = run_spec(campaign, tasks[0])
    yield "attempt.sh", render_shared(cluster, spec, name, project_root, source_root=EXAMPLE_ROOT)


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
    for stale in set(target.rglob("*.sh")) - wanted.keys():
        stale.unlink()
    for path, text in wanted.items():
        write_atomically(path, text)
    return sorted(wanted)
