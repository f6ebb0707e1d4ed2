"""GPUs by NVML, CPUs by RAPL, reads by NFS and Lustre: from stand-ins with their interfaces to the table of runs."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from evidence_support import FakeCampaign, FakeRun
from runtime_support import clean_environment, events, of_kind, run_point, spec_of, write_point
from sites.processes import wait_for

from harness.analysis.collect import collect
from harness.files import json_line, read_json_lines
from harness.model.axes import Axes
from harness.runtime import samplers, storage
from harness.runtime.samplers import Rapl

OURS = "GPU-5f1e0c2a-0000-0000-0000-000000000001"


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with libnvidia-ml.so.1, compiled from ``fake_nvml.c``."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler (Debian's package gcc)")
    made = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("fake_nvml.c")
    command = [compiler, "-shared", "-fPIC", "-o", str(made / "libnvidia-ml.so.1"), str(source)]
    subprocess.run(command, check=True)
    return made


def sampled(directory: Path, nvml: Path, **environ: str) -> list[dict[str, Any]]:
    """Ten records and more of the sampling process on a node of two GPUs, of which the job has the first."""
    path = directory / "sampled.jsonl"
    words = ["--out", str(path), "--origin", "0", "--pids", str(os.getpid()), "--interval", "0.01"]
    command = [sys.executable, "-m", "harness.runtime.samplers", *words]
    command += ["--gpus", samplers.devices_to_sample(1, [OURS])]
    environment = clean_environment(LD_LIBRARY_PATH=str(nvml), **environ)
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as process:
        wait_for(lambda: path.exists() and path.read_bytes().count(b"\n") >= 10, 300)
        process.communicate()
    return list(read_json_lines(path))


def row_of(root: Path, samples: list[dict[str, Any]]) -> dict[Any, Any]:
    """The row of a run of 40 steps in 8 s, beside which these samples were taken a second apart."""
    campaign = FakeCampaign(root)
    axes = Axes(workload="replay", framework="none", gpus_per_rank=1, steps_timed=40)
    layout = campaign.add(axes, FakeRun([[1.0] + [0.2] * 40]))
    campaign.save()
    spaced = [sample | {"t_s": 1.0 + second} for second, sample in enumerate(samples)]
    layout.samples("n1").write_text("".join(map(json_line, spaced)))
    [row] = [row for row in collect(campaign.layout).to_dict("records") if row["state"] == "SUCCEEDED"]
    return row


USED = {"util_percent": 37, "memory_bytes": 6 << 30, "power_w": 250.5, "energy_j": None}


def test_gpus_by_their_power(tmp_path: Path, nvml: Path) -> None:
    samples = sampled(tmp_path, nvml)
    assert all(sample["gpu"] == [USED] for sample in samples)
    row = row_of(tmp_path / "c", samples)
    assert row["gpu_idle_share"] == pytest.approx(0.63)
    assert row["gpu_power_w"] == pytest.approx(250.5)
    assert row["gpu_memory_max_bytes"] == 6 << 30
    assert row["images_per_joule"] == pytest.approx(row["images_per_s"] / 250.5)


def test_power_of_some_of_the_nodes_is_not_that_of_all(tmp_path: Path) -> None:
    """Two nodes of one GPU each; the second one's samples are missing."""
    campaign = FakeCampaign(tmp_path)
    axes = Axes(workload="replay", framework="none", nodes=2, gpus_per_rank=1, steps_timed=40)
    layout = campaign.add(axes, FakeRun([[1.0] + [0.2] * 40] * 2))
    campaign.save()
    told = [{"t_s": 1.0 + second, "gpu": [USED], "disk_read_bytes": 10**6 * second} for second in range(9)]
    layout.samples("n1").write_text("".join(map(json_line, told)))
    [row] = [row for row in collect(campaign.layout).to_dict("records") if row["state"] == "SUCCEEDED"]
    assert all(math.isnan(row[name]) for name in ("gpu_power_w", "images_per_joule", "disk_read_per_s"))
    assert row["gpu_idle_share"] == pytest.approx(0.63)


def test_power_by_the_energy_counter_where_there_is_one(tmp_path: Path, nvml: Path) -> None:
    samples = sampled(tmp_path, nvml, FAKE_NVML_ENERGY="1")
    assert [sample["gpu"][0]["energy_j"] for sample in samples] == [2000.0 + 1000.0 * n for n in range(len(samples))]
    row = row_of(tmp_path / "c", samples)
    assert row["gpu_power_w"] == pytest.approx(1000.0)
    assert row["images_per_joule"] == pytest.approx(row["images_per_s"] / 1000.0)


def test_a_run_samples_the_gpus_of_its_job_alone(tmp_path: Path, nvml: Path) -> None:
    """The run goes on until there is a sample: taken at the lowest priority, it may take a while."""
    spec = spec_of(gpus_per_rank=1, steps_timed=100_000, options={"clock": "real", "consume_s": 0.04})
    command = [sys.executable, "-m", "harness.runtime", str(write_point(tmp_path, spec))]
    environment = clean_environment(LD_LIBRARY_PATH=str(nvml), CUDA_VISIBLE_DEVICES=OURS)
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as run:
        try:
            wait_for(lambda: any("provenance" in path.read_text() for path in tmp_path.glob("events.*.jsonl")), 300)
            samples = wait_for(lambda: list(chain(*map(read_json_lines, tmp_path.glob("samples.*.jsonl")))), 300)
        finally:
            run.terminate()
    assert all(sample["gpu"] == [USED] for sample in samples)
    [provenance] = of_kind(events(tmp_path), "provenance")
    assert provenance["host"]["gpu_model"] == "Example H1 80GB"


def test_a_card_that_a_control_group_keeps_away_hides_no_other(tmp_path: Path, nvml: Path) -> None:
    """NVML counts it and refuses its handle; CUDA numbers what is left from 0."""
    code = (
        "from harness.runtime import provenance, samplers; print(provenance.gpu_uuids(), samplers.Gpus(['0']).sample())"
    )
    environment = clean_environment(LD_LIBRARY_PATH=str(nvml), FAKE_NVML_DENIED="0")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    theirs = {"util_percent": 100, "memory_bytes": 70 << 30, "power_w": 700.0, "energy_j": None}
    assert done.stdout == f"{[OURS[:-1] + '2']} {[theirs]}\n"


@pytest.mark.mpi
def test_each_rank_trains_on_a_mig_device_of_its_own(tmp_path: Path) -> None:
    """A CUDA process sees the first one alone of those that CUDA_VISIBLE_DEVICES names."""
    point = write_point(tmp_path, spec_of(gpus_per_rank=1, ranks_per_node=2, cpu_cores=2, comm="none", steps_timed=5))
    done = run_point(point, ranks=2, environment=clean_environment(CUDA_VISIBLE_DEVICES="MIG-a,MIG-b"))
    assert done.returncode == 0, done.stderr
    told = [of_kind(events(tmp_path, rank), "provenance")[0]["env"]["CUDA_VISIBLE_DEVICES"] for rank in range(2)]
    assert told == ["MIG-a", "MIG-b"]


@pytest.mark.mpi
@pytest.mark.parametrize(("visible", "shared"), [(None, False), (OURS, True)])
def test_ranks_that_train_on_one_gpu_say_so(tmp_path: Path, nvml: Path, visible: str | None, shared: bool) -> None:
    """Two cards for two ranks, or both told of the first one alone."""
    point = write_point(tmp_path, spec_of(gpus_per_rank=1, ranks_per_node=2, cpu_cores=2, comm="none", steps_timed=5))
    environment = clean_environment(LD_LIBRARY_PATH=str(nvml), CUDA_VISIBLE_DEVICES=visible or "")
    if visible is None:
        del environment["CUDA_VISIBLE_DEVICES"]
    done = run_point(point, ranks=2, environment=environment)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        found = [f for f in of_kind(events(tmp_path, rank), "finding") if f["code"] == "gpu_shared_by_ranks"]
        assert [f["evidence"] for f in found] == [{"gpu": OURS, "local_ranks": [0, 1]}] * shared


class Powercap:
    """/sys/class/powercap of a node with two packages; counters in microjoules that wrap at ``span_uj``."""

    def __init__(self, root: Path, span_uj: int = 262_143_328_850):
        self.root, self.span_uj = root, span_uj
        self.energy_uj = {"intel-rapl:0": span_uj - 50_000_000, "intel-rapl:1": 1_000_000}
        self._zone("intel-rapl", "")  # the control type itself
        for zone, name in (("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1")):
            self._zone(zone, name)
        for zone, name in (("intel-rapl:0:0", "core"), ("intel-rapl:1:0", "dram"), ("intel-rapl:2", "psys")):
            self._zone(zone, name)
            (root / zone / "energy_uj").write_text("7\n")
        self.advance(0)

    def _zone(self, zone: str, name: str) -> None:
        (self.root / zone).mkdir(parents=True)
        if name:
            (self.root / zone / "name").write_text(name + "\n")
            (self.root / zone / "max_energy_range_uj").write_text(f"{self.span_uj}\n")

    def advance(self, microjoules: int) -> None:
        """Each package has used so much more; core, dram and psys ten times that, which must not count."""
        for zone, energy in self.energy_uj.items():
            self.energy_uj[zone] = (energy + microjoules) % self.span_uj
            (self.root / zone / "energy_uj").write_text(f"{self.energy_uj[zone]}\n")
        for zone in ("intel-rapl:0:0", "intel-rapl:1:0", "intel-rapl:2"):
            used = int((self.root / zone / "energy_uj").read_text()) + 10 * microjoules
            (self.root / zone / "energy_uj").write_text(f"{used}\n")


def test_packages_alone_count_and_a_counter_wraps(tmp_path: Path) -> None:
    tree = Powercap(tmp_path)
    energy = Rapl(tmp_path)
    tree.advance(30_000_000)
    assert energy.joules() == 60.0
    tree.advance(30_000_000)  # package 0 wraps
    assert tree.energy_uj["intel-rapl:0"] < tree.energy_uj["intel-rapl:1"]
    assert energy.joules() == 120.0


def test_a_package_that_may_not_be_read_leaves_no_sum(tmp_path: Path) -> None:
    Powercap(tmp_path)
    (tmp_path / "intel-rapl:1" / "energy_uj").unlink()
    assert Rapl(tmp_path).joules() is None
    assert Rapl(tmp_path / "none").joules() is None


def test_cpu_power_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two packages of 45 W each, by the sampler's own records, a counter wrapping in the middle of the window."""
    tree = Powercap(tmp_path / "powercap")
    now = [0.0]
    monkeypatch.setattr(samplers.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(samplers, "Rapl", lambda: Rapl(tree.root))
    sampler = samplers.NodeSampler([], 0.0)
    campaign = FakeCampaign(tmp_path / "c")
    axes = Axes(workload="replay", framework="none", steps_timed=40)
    layout = campaign.add(axes, FakeRun([[1.0] + [0.2] * 40]))
    campaign.save()
    with layout.samples("n1").open("w") as stream:
        for second in range(1, 11):
            now[0] = float(second)
            tree.advance(45_000_000)
            stream.write(json_line(sampler.sample()))
    [row] = [row for row in collect(campaign.layout).to_dict("records") if row["state"] == "SUCCEEDED"]
    assert row["cpu_power_w"] == pytest.approx(90.0)


MOUNTSTATS = """device rootfs mounted on / with fstype rootfs
device nas:/hpctmp mounted on {top} with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys
\tage:\t{age}
\timpl_id:\tname='',domain='',date='0,0'
\tcaps:\tcaps=0x3ffdf,wtmult=512,dtsize=1048576,bsize=0,namlen=255
\tsec:\tflavor=1,pseudoflavor=1
\tevents:\t52 226 0 0 18 17 259 0 0 8 0 0 0 0 1 0 0 0 0 0 0 0 0 0 0 0 0
\tbytes:\t{asked} 0 0 0 {read} 0 {pages} 0
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 2 0 38 27965 27965 0 2 0 2 23 44
"""


LUSTRE = """snapshot_time             1611856219.310239 secs.nsecs
read_bytes                {calls} samples [bytes] 1 4194304 {read} {squares}
write_bytes               10 samples [bytes] 1 4096 40960 167772160
open                      12 samples [regs]
"""


def nfs_counter(root: Path, t_s: float, read: int) -> dict[str, int | None]:
    stats = root / "mountstats"
    stats.write_text(MOUNTSTATS.format(top=root, age=int(t_s) + 1, asked=2 * read, read=read, pages=read // 4096))
    return {"nfs_read_bytes": storage.nfs_read_bytes(root / "set", stats)}


def lustre_counter(root: Path, t_s: float, read: int) -> dict[str, int | None]:
    client = root / "llite" / "scratch-ffff9a1b2c3d4000"
    client.mkdir(parents=True, exist_ok=True)
    (client / "stats").write_text(LUSTRE.format(calls=read // 1000, read=read, squares=read * 1000))
    mounts = root / "mounts"
    mounts.write_text(f"10.0.0.1@o2ib:/scratch {root} lustre rw,flock,lazystatfs 0 0\n")
    return {"lustre_read_bytes": storage.lustre_read_bytes(root / "set", mounts, (root / "llite",))}


@pytest.mark.parametrize("counter", [nfs_counter, lustre_counter])
def test_reads_from_a_file_server_in_the_table(tmp_path: Path, counter: Any) -> None:
    events = []
    for at, t_s, read in (("begin", 0.0, 5_000), ("end", 13.0, 60_005_000)):
        event = {"event": "io", "t_s": t_s, "at": at, "read_bytes": 0, "rchar_bytes": 0, "cpu_s": 0.0}
        events.append(event | counter(tmp_path, t_s, read))
    campaign = FakeCampaign(tmp_path / "c")
    axes = Axes(workload="replay", framework="none", steps_timed=40)
    campaign.add(axes, FakeRun([[1.0] + [0.2] * 40], events=events))
    campaign.save()
    [row] = [row for row in collect(campaign.layout).to_dict("records") if row["state"] == "SUCCEEDED"]
    assert row["server_read_bytes"] == 60_000_000
