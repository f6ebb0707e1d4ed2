"""Cluster files: human units, references within the file, facts taken from this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from harness.config import this_machine
from harness.config.cluster_file import load_cluster, parse_cluster
from harness.errors import ConfigError, UserError
from harness.model.cluster import Cluster

MINIMAL = "name: c\nscheduler: slurm\nnode: {cores_per_socket: 4}\nstorage: {hpctmp: {path: /data}}\n"


def cluster(text: str) -> Cluster:
    return parse_cluster(text, Path("/project"), "c.yml")


def test_human_units_become_the_models_fields() -> None:
    result = cluster(
        """\
name: c
scheduler: pbs
node: {sockets: 2, cores_per_socket: 20, gpus: 4, memory: 384gb}
queue: gpu
queues:
  gpu: {max_walltime: "72:00:00", default_walltime: 30m, max_memory: 300gb, max_nodes: 5}
memory_per_core: 8gb
default_memory: 16gb
project: 0100
storage:
  hpctmp: {path: /hpctmp/$USER}
  scratch: {path: scratch dir, scope: node, stage_from: hpctmp}
mpi: {flavour: openmpi4, options: [--mca, "btl ^openib"], environment: {OMP_PROC_BIND: off}}
prelude: ["ulimit -c 0"]
"""
    )
    assert result.node.cores == 40
    assert result.node.memory_bytes == 384 * 1024**3
    assert result.queues["gpu"].max_walltime_s == 72 * 3600
    assert result.queues["gpu"].default_walltime_s == 1800
    assert result.queues["gpu"].max_memory_bytes == 300 * 1024**3
    assert (result.memory_per_core_bytes, result.default_memory_bytes) == (8 * 1024**3, 16 * 1024**3)
    assert result.project == "0100"
    assert result.storage["hpctmp"].path == "/hpctmp/$USER"
    assert result.storage["scratch"].path == "/project/scratch dir"
    assert result.mpi.options == ("--mca", "btl ^openib")
    assert result.mpi.environment == {"OMP_PROC_BIND": "off"}


def test_auto_takes_this_machines_facts() -> None:
    whole = cluster(MINIMAL.replace("{cores_per_socket: 4}", "auto") + "python: auto\n")
    assert whole.node.cores == this_machine.usable_cpus()
    assert whole.node.memory_bytes == this_machine.memory_bytes()
    assert whole.python == sys.executable
    partly = cluster(MINIMAL.replace("cores_per_socket: 4", "cores_per_socket: auto, memory: 2gb"))
    assert partly.node.cores == this_machine.usable_cpus()
    assert partly.node.memory_bytes == 2 * 1024**3


@pytest.mark.parametrize(
    ("quota", "limit", "cpus", "memory"),
    [(1.0, 1 << 20, 1, 1 << 20), (0.5, None, 1, None), (None, 1 << 60, None, None)],
)
def test_what_this_process_may_use_is_less_than_the_machine_where_its_control_group_says_so(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, limit: int | None, cpus: int | None, memory: int | None
) -> None:
    monkeypatch.setattr(this_machine.cgroups, "cpu_quota", lambda: quota)
    monkeypatch.setattr(this_machine.cgroups, "memory_limit_bytes", lambda: limit)
    assert this_machine.usable_cpus() == (cpus or len(os.sched_getaffinity(0)))
    assert this_machine.memory_bytes() == (memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def test_gpus_are_counted_by_device_files(tmp_path: Path) -> None:
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"):
        (tmp_path / name).touch()
    assert this_machine.gpus(tmp_path) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MINIMAL + "queue: gpu\nqueues: {gup: {}}\n", "c.yml:5: queue: 'gpu' is not among queues; did you mean 'gup'?"),
        (MINIMAL.replace("slurm", "slrum"), "c.yml:2: scheduler: 'slrum' is not known; did you mean 'slurm'?"),
        (MINIMAL + "nodes: 0\n", "c.yml:5: nodes: 0 is not allowed"),
        (MINIMAL + "queues: {a: {max_walltime: 12:00:00}}\n", "c.yml:5: max_walltime: 12:00:00 without quotes"),
        (MINIMAL + "queues: {a: {max_walltme: 1h}}\n", "c.yml:5: unknown key 'max_walltme' in queues.a; did you mean"),
        (MINIMAL.replace("cores_per_socket: 4", "sockets: 2"), "c.yml:3: node lacks the key 'cores_per_socket'"),
        (MINIMAL.replace("cores_per_socket: 4", "cores_per_socket: 4, memory: 12"), "c.yml:3: memory: '12' is no size"),
        (MINIMAL.replace("{hpctmp: {path: /data}}", "{}"), "c.yml:4: storage names no storage"),
        (MINIMAL.replace("path: /data", "pth: /data"), "c.yml:4: unknown key 'pth' in storage hpctmp"),
        (
            MINIMAL.replace("}}", "}, s: {path: /s, scope: node, stage_from: hpctemp}}"),
            "c.yml:4: storage s is staged from 'hpctemp', no shared storage; did you mean 'hpctmp'?",
        ),
        (
            MINIMAL.replace("}}", "}, s: {path: /s, stage_from: hpctmp}}"),
            "c.yml:4: storage s is shared, so nothing is staged to it",
        ),
        (MINIMAL + "modules: openmpi\n", "c.yml:5: modules takes a list, not 'openmpi'"),
        (MINIMAL + "container: {runtime: docker, image: x}\n", "c.yml:5: runtime: 'docker' is not known"),
        (MINIMAL + "walltime: 1h\n", "c.yml:5: unknown key 'walltime' in a cluster"),
        ("scheduler: local\n", "c.yml:1: a cluster lacks the key 'name'"),
    ],
)
def test_clear_messages(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cluster(text)
    assert message in str(caught.value)


def test_lookup_by_name_and_by_path(tmp_path: Path) -> None:
    directory = tmp_path / "configs" / "clusters"
    directory.mkdir(parents=True)
    (directory / "site.yml").write_text(MINIMAL)
    assert load_cluster("site", tmp_path).name == "c"
    assert load_cluster(str(directory / "site.yml"), tmp_path).name == "c"
    with pytest.raises(UserError, match="no cluster 'sitte' .*did you mean 'site'"):
        load_cluster("sitte", tmp_path)
    with pytest.raises(UserError, match="cannot be read"):
        load_cluster("./none.yml", tmp_path)
    with pytest.raises(UserError, match="holds no cluster file"):
        load_cluster("site", tmp_path / "elsewhere")
