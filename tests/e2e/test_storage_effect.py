"""The storage axis shows a real effect: hpctmp is a mount held to a known rate by bindfs, scratch the local disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from runtime_support import of_kind, step_column
from sites.processes import wait_for

from harness.jobs.local_registry import STATE_VARIABLE

pytest.importorskip("torch")

pytestmark = [pytest.mark.mpi, pytest.mark.framework, pytest.mark.timeout(1800)]
ROOT = Path(__file__).resolve().parents[2]
RATE_BYTES_PER_S = 500_000
BATCH = 4
SWEEP = f"""\
name: storage
base:
  workload: resnet_imagenet
  framework: torch
  model: resnet34
  dataset: "synthetic:imagenet"
  pipeline: torch_files
  batch_size: {BATCH}
  options.image_size: 32
matrix: {{storage: [hpctmp, scratch]}}
steps: {{warmup: 1, timed: 5}}
walltime: 5m
"""
CLUSTER = """\
name: slow
scheduler: local
nodes: 1
node: auto
storage:
  hpctmp: {{path: {hpctmp}}}
  scratch: {{path: {scratch}, scope: node, stage_from: hpctmp}}
mpi: {{flavour: openmpi5, bind: none}}
python: auto
"""


def harness(*words: str, state: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "harness", *words],
        cwd=ROOT,
        env={**os.environ, STATE_VARIABLE: str(state)},
        capture_output=True,
        text=True,
        timeout=1100,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.fixture
def slow_mount(tmp_path: Path) -> Iterator[tuple[Path, Path]]:
    """``(source, mount)``: what is written to the first is read from the second at RATE_BYTES_PER_S."""
    if shutil.which("bindfs") is None or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("needs bindfs and /dev/fuse (Debian's package bindfs)")
    source, mount = tmp_path / "source", tmp_path / "hpctmp"
    source.mkdir()
    mount.mkdir()
    # direct_io: nothing is read from the page cache, as if the files were larger than memory
    made = subprocess.run(
        ["bindfs", f"--read-rate={RATE_BYTES_PER_S}", "-o", "direct_io", str(source), str(mount)],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"bindfs cannot mount here: {made.stderr.strip()}")
    yield source, mount
    subprocess.run(["fusermount", "-u", "-z", str(mount)], check=False)


def evidence(results: Path) -> dict[str, list[dict[str, Any]]]:
    """Events of the only attempt at each storage's point."""
    found = {}
    for path in results.glob("storage/runs/*/r0a1"):
        storage = json.loads((path / "point.json").read_text())["axes"].get("storage", "hpctmp")
        found[storage] = [json.loads(line) for line in (path / "events.r0.jsonl").open()]
    return found


def images_per_s(events: list[dict[str, Any]]) -> float:
    """Of the timed steps."""
    begin, end = step_column(events, "begin_s"), step_column(events, "end_s")
    return BATCH * len(begin[1:]) / (end[-1] - begin[1])


def test_reading_from_a_slow_mount_holds_up_training(tmp_path: Path, slow_mount: tuple[Path, Path]) -> None:
    source, mount = slow_mount
    state, results = tmp_path / "state", tmp_path / "results"
    made = source / "synthetic-imagenet"
    sizes = ["--train", "24", "--test", "4", "--classes", "4"]
    harness("data", "make", "imagenet", *sizes, "--to", str(made), state=state)
    (tmp_path / "sweep.yml").write_text(SWEEP)
    cluster = tmp_path / "slow.yml"
    cluster.write_text(CLUSTER.format(hpctmp=json.dumps(str(mount)), scratch=json.dumps(str(tmp_path / "scratch"))))
    words = ["--cluster", str(cluster), "--results", str(results), "--campaign", "storage", "--no-report"]
    harness("run", str(tmp_path / "sweep.yml"), *words, state=state)

    found = evidence(results)
    assert set(found) == {"hpctmp", "scratch"}
    images = list((made / "ILSVRC" / "Data").rglob("*.JPEG"))
    mean_bytes = sum(image.stat().st_size for image in images) / len(images)
    ceiling = RATE_BYTES_PER_S / mean_bytes
    slow, fast = images_per_s(found["hpctmp"]), images_per_s(found["scratch"])
    # the sample drawn may be smaller than the mean image, hence half as much again
    assert slow < 1.5 * ceiling, "no faster than the mount delivers"
    assert fast > 2 * slow, f"{fast:.1f} images/s from scratch, {slow:.1f} from hpctmp"
    waits = step_column(found["hpctmp"], "wait_s")[1:]
    begin, end = (step_column(found["hpctmp"], name)[1:] for name in ("begin_s", "end_s"))
    assert sum(waits) > 0.5 * (end[-1] - begin[0]), "the time is lost waiting for data, and seen to be"
    [stage] = of_kind(found["scratch"], "stage")
    assert stage["bytes"] >= sum(image.stat().st_size for image in images) and stage["seconds"] > 0
    assert not of_kind(found["hpctmp"], "stage")
    # staged copies are removed when the job ends, which it does after its evidence lies there
    wait_for(lambda: not list((tmp_path / "scratch").glob("*imagenet*")))
