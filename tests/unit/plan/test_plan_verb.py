"""``harness plan`` as its user meets it: the whole output, JSON, exit codes; nothing is written."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli.plan import plan as plan_command

CLUSTER = """\
name: local
scheduler: local
node: {cores_per_socket: 4, memory: 8gb}
storage:
  hpctmp: {path: /data}
  scratch: {path: /scratch, scope: node, stage_from: hpctmp}
"""
SWEEP = """\
name: small [grid]
description: "two axes :warning: as they are"
base: {workload: resnet20_cifar10, framework: torch}
matrix:
  cpu_cores: [2, 8]
  storage: [hpctmp, scratch]
exclude: [{cpu_cores: 8, storage: scratch}]
repeats: 2
walltime: 30m
"""
OUTPUT = """\
small [grid] on local: two axes :warning: as they are
point     cpu_cores  storage
────────────────────────────
{hpctmp}          2  hpctmp
{scratch}          2  scratch
Every point: nodes 1, ranks_per_node 1, GPUs per node 0, memory the site's
  default, walltime 00:30:00.
Data: /data/cifar10, /scratch/cifar10; staged from /data/cifar10.
4 runs (2 points × 2); at most 4.0 core-hours, 02:00:00 one after another.
1 combination excluded, 0 equal to another one.

1 refused:
cpu_cores  storage  why it cannot run here
──────────────────────────────────────────────────────────────────
        8  hpctmp   needs 8 cores on a node; a node of local has 4
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "configs" / "clusters").mkdir(parents=True)
    (tmp_path / "configs" / "clusters" / "local.yml").write_text(CLUSTER)
    (tmp_path / "small.yml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ids() -> dict[str, str]:
    """The points' ids as shown, by their storage."""
    campaign = json.loads(CliRunner().invoke(plan_command, ["small.yml", "--json"]).output)
    return {point["axes"]["storage"]: point_id[:8] for point_id, point in campaign["points"].items()}


def test_the_whole_output(project: Path) -> None:
    result = CliRunner().invoke(plan_command, ["small.yml"])
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.output.splitlines()]
    assert lines == OUTPUT.format(**ids()).splitlines()
    assert sorted(p.name for p in project.iterdir()) == ["configs", "small.yml"]


def test_a_terminals_edge_folds_what_is_longer_and_its_colours_are_used(project: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "harness", "plan", "small.yml"]
    with subprocess.Popen(command, stdout=theirs, cwd=project, env={**environment, "TERM": "xterm"}) as process:
        os.close(theirs)
        text = read_to_the_end(ours)
    assert process.returncode == 0
    assert text.startswith("\x1b[1msmall [grid]\x1b[0m on local: two axes :warning: as they are\n")
    assert "\x1b[33m1 refused:\x1b[0m\n" in text
    plain = re.sub("\x1b\\[[0-9]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 60
    assert plain.replace("─", "").split() == OUTPUT.format(**ids()).replace("─", "").split()


def read_to_the_end(terminal: int) -> str:
    data = b""
    with contextlib.suppress(OSError):  # how a terminal says that its other side is closed
        while part := os.read(terminal, 4096):
            data += part
    os.close(terminal)
    return data.decode().replace("\r\n", "\n")


def test_json_has_the_campaign_and_its_cost(project: Path) -> None:
    result = CliRunner().invoke(plan_command, ["small.yml", "--json", "--set", "cpu_cores=1", "--campaign", "mine"])
    campaign = json.loads(result.output)
    assert campaign["name"] == "mine"
    assert campaign["cost"] == {"runs": 4, "walltime_s": 7200, "core_hours": 2.0, "gpu_hours": 0.0}
    assert campaign["varied"] == ["storage"]


def test_long_lists_are_cut_unless_asked_for(project: Path) -> None:
    arguments = ["small.yml", "--set", f"seed={','.join(map(str, range(60)))}", "--only", "cpu_cores == 2"]
    cut = CliRunner().invoke(plan_command, arguments).output
    assert "… 70 more; --all shows them" in cut
    assert CliRunner().invoke(plan_command, [*arguments, "--all"]).output.count("hpctmp") == 60


def test_an_axis_that_only_a_condition_varies_is_shown(project: Path) -> None:
    """What the catalog gives each workload, its data set for one, is no choice of the sweep's."""
    (project / "when.yml").write_text(
        "name: when\nbase: {framework: torch}\nmatrix: {workload: [dcgan_mnist, resnet20_cifar10], cpu_cores: [1, 2]}\n"
        "when: [{where: cpu_cores > 1, set: {workers: 2}}]\nderive: {batch_interval: cpu_cores}\n"
    )
    lines = CliRunner().invoke(plan_command, ["when.yml"]).output.splitlines()
    assert lines[1].split() == ["point", "workload", "cpu_cores", "workers", "batch_interval"]
    assert lines[3].split()[1:] == ["dcgan_mnist", "1", "0", "1"]
    assert lines[4].split()[1:] == ["dcgan_mnist", "2", "2", "2"]


def test_one_run_is_one_run(project: Path) -> None:
    output = (
        CliRunner().invoke(plan_command, ["small.yml", "--only", "storage == 'scratch'", "--set", "repeats=1"]).output
    )
    assert "1 run (1 point × 1); " in " ".join(output.split())


def test_the_project_is_found_from_the_sweeps_file_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "elsewhere").mkdir()
    monkeypatch.chdir("/")
    result = CliRunner().invoke(plan_command, [str(project / "small.yml")])
    assert result.exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.yml"], "harness: none.yml: cannot be read: No such file or directory; name a readable YAML file"),
        (["small.yml", "--cluster", "lokal"], "no cluster 'lokal'"),
        (["small.yml", "--set", "cpu_cores=8"], "none of 1 point can run on cluster local"),
        (["small.yml", "--only", "cpu_cores"], None),
    ],
)
def test_exit_codes_and_messages(project: Path, arguments: list[str], message: str | None) -> None:
    command = [sys.executable, "-m", "harness", "plan", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=project, check=False)
    assert done.returncode == (2 if message else 0)
    assert (message or "") in done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (message is None)


def test_planning_imports_no_framework_and_no_pandas(project: Path) -> None:
    code = (
        "import sys\n"
        "from click.testing import CliRunner\n"
        "from harness.cli.plan import plan\n"
        "assert CliRunner().invoke(plan, ['small.yml']).exit_code == 0\n"
        "print(sorted({'tensorflow', 'torch', 'numpy', 'pandas', 'mpi4py', 'matplotlib'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=project, check=True)
    assert done.stdout.strip() == "[]"
