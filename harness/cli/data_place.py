"""Where a data set lies under a cluster's storage."""

from __future__ import annotations

from pathlib import Path

from harness.catalog import dataset_directory
from harness.cli.health.paths import expanded
from harness.errors import UserError, nearest


def directory(name: str, storage: str, cluster_name: str, project_root: Path) -> Path:
    """Directory of data set ``name`` in ``storage`` of a cluster, variables and ``~`` filled in from this process.

    Raises:
        UserError: no such cluster or storage, or a variable is not set here.
    """
    from harness.config.cluster_file import load_cluster

    cluster = load_cluster(cluster_name, project_root)
    if storage not in cluster.storage:
        raise UserError(f"cluster {cluster.name} has no storage {storage!r}; {nearest(storage, list(cluster.storage))}")
    place = cluster.storage[storage].path
    text = expanded(place)
    if text is None:
        raise UserError(f"storage {storage} of {cluster.name} is {place}: that variable is not set here; use --to")
    path = Path(text)
    return (path if path.is_absolute() else project_root / path) / dataset_directory(name)
