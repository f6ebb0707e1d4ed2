"""Cluster files: YAML to :class:`harness.model.cluster.Cluster`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.config import this_machine
from harness.config.decode import INVALID, Decoder, Special
from harness.config.yaml_marks import Mapping, Node, Scalar, parse_mapping, read_mapping
from harness.errors import UserError, nearest
from harness.layout import ProjectLayout
from harness.model.cluster import Cluster, NodeType, Storage

_SUFFIXES = (".yml", ".yaml")

#: node facts that ``auto`` takes from this machine
_NODE_FACTS: dict[str, Callable[[], int]] = {
    "sockets": lambda: 1,
    "cores_per_socket": this_machine.usable_cpus,
    "gpus": this_machine.gpus,
    "memory_bytes": this_machine.memory_bytes,
}


def find_cluster(name: str, project_root: Path) -> Path:
    """The file of a cluster given by name (``configs/clusters/<name>.yml``) or by path.

    Raises:
        UserError: with the names that exist.
    """
    if "/" in name or name.endswith(_SUFFIXES):
        return Path(name)
    directory = ProjectLayout(project_root).clusters
    for suffix in _SUFFIXES:
        if (directory / f"{name}{suffix}").is_file():
            return directory / f"{name}{suffix}"
    known = sorted(path.stem for path in directory.glob("*.y*ml") if path.suffix in _SUFFIXES)
    if not known:
        raise UserError(
            f"no cluster {name!r}: {directory} holds no cluster file; `harness init` writes one, or run elsewhere"
        )
    raise UserError(f"no cluster {name!r} in {directory}; {nearest(name, known)}, or the path of a .yml file")


def load_cluster(name: str, project_root: Path) -> Cluster:
    """The cluster of this name or path; relative storage paths are taken from ``project_root``.

    Raises:
        ConfigError: with all problems of the file.
        UserError: there is no such cluster.
    """
    path = find_cluster(name, project_root)
    return _build(read_mapping(path), str(path), project_root)


def parse_cluster(text: str, project_root: Path, file: str = "cluster.yml") -> Cluster:
    """The cluster in ``text``; ``file`` is named in problems."""
    return _build(parse_mapping(text, file), file, project_root)


def _build(root: Mapping, file: str, project_root: Path) -> Cluster:
    decoder = Decoder(file)
    special: dict[str, Special] = {
        "node": lambda node: _read_node(decoder, node),
        "storage": lambda node: _read_storages(decoder, node, project_root),
        "python": lambda node: _read_python(decoder, node),
    }
    values = decoder.fields(root, Cluster, "a cluster", special)
    _check_references(decoder, root, values)
    decoder.finish()
    return Cluster(**values)


def _read_python(decoder: Decoder, node: Node) -> Any:
    return sys.executable if _is_auto(node) else decoder.decode(node, str, "python")


def _read_node(decoder: Decoder, node: Node) -> Any:
    """``auto`` as a whole, or for single facts; the rest as written."""
    if _is_auto(node):
        return NodeType.model_validate({name: fact() for name, fact in _NODE_FACTS.items()})
    if not isinstance(node, Mapping):
        return decoder.model(node, NodeType, "node")
    keys = {"memory" if name == "memory_bytes" else name: name for name in _NODE_FACTS}
    automatic = {key: e for key, e in node.entries.items() if key in keys and _is_auto(e.value)}
    special: dict[str, Special] = {key: lambda _node, name=keys[key]: _NODE_FACTS[name]() for key in automatic}  # type: ignore[misc]
    return decoder.model(node, NodeType, "node", special)


def _is_auto(node: Node) -> bool:
    return isinstance(node, Scalar) and node.text == "auto"


def _read_storages(decoder: Decoder, node: Node, project_root: Path) -> Any:
    storages = {}
    for name, entry in decoder.mapping(node, "storage").items():
        storage = decoder.model(entry.value, Storage, f"storage {name}")
        if storage is not INVALID:
            storages[name] = storage.model_copy(update={"path": _absolute(storage.path, project_root)})
    if not storages and not decoder.problems:
        decoder.problem(node.line, "storage names no storage", "give at least hpctmp with its path")
    return storages


def _absolute(path: str, project_root: Path) -> str:
    """Relative paths lie in the project; ``$VARIABLES`` and ``~`` are left to the job's own shell."""
    return path if path.startswith(("/", "$", "~")) else str(project_root / path)


def _check_references(decoder: Decoder, root: Mapping, values: dict[str, Any]) -> None:
    """Names that must exist elsewhere in the file: the default queue, and the storages staged from."""
    queues, storages = values.get("queues", {}), values.get("storage", {})
    queue = values.get("queue")
    if queue and queues and queue not in queues:
        decoder.problem(
            root.entries["queue"].line, f"queue: {queue!r} is not among queues", nearest(queue, list(queues))
        )
    for name, storage in storages.items():
        line = decoder.mapping(root.entries["storage"].value, "storage")[name].line
        others = [other for other, s in storages.items() if other != name and s.scope == "shared"]
        if storage.stage_from is not None and storage.stage_from not in others:
            valid = nearest(storage.stage_from, others) if others else "there is no shared storage to stage from"
            decoder.problem(line, f"storage {name} is staged from {storage.stage_from!r}, no shared storage", valid)
        if storage.scope == "shared" and storage.stage_from is not None:
            decoder.problem(line, f"storage {name} is shared, so nothing is staged to it", "set scope: node")
