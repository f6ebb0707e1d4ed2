"""Job scripts that together show every branch of the shared body; ``python tests/golden/job_cases.py`` writes them.

The tests never do: read the difference before committing a new golden.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from jobs_support import make_cluster, make_placement, make_spec

from harness.jobs.groups import render_array, render_pack
from harness.jobs.render import render_job, render_shared
from harness.model.cluster import Container, Directives, Mpi

GOLDENS = Path(__file__).parent / "jobs"
ATTEMPT = Path("/home/user/it's here/r0a1")
SOURCE = Path("/home/user/dl-batch-harness")
STAGED = {"data_path": "/scratch/$USER/data/mnist", "data_scope": "node", "stage_from": "/hpctmp/${USER}/data/mnist"}
FULL = {"nodes": 2, "ranks_per_node": 4, "cores_per_node": 40, "gpus_per_node": 4, "memory_bytes": 384 * 1024**3}


def cases() -> Iterator[tuple[str, str]]:
    """``(file name, text)`` of each."""
    container = Container(runtime="singularity", image="/app1/tf 2.simg")
    full = make_placement(**FULL, **STAGED, queue="volta_gpu", project="volta_pilot")
    plain = make_placement(ranks_per_node=2)
    sites = {
        "pbs-everything": make_cluster(
            "pbs",
            Mpi(flavour="openmpi4", environment={"NCCL_DEBUG": "INFO, or $not"}, options=("--mca", "btl", "^openib")),
            directives=Directives(place="scatter", select_extra="system=polaris", filesystems="home:eagle"),
            modules=("singularity", "openmpi/4.1"),
            conda="it's mine",
            prelude=("export TMPDIR=/scratch/$USER", "ulimit -s unlimited"),
            container=container,
        ),
        "torque-mpich": make_cluster("torque", Mpi(flavour="mpich")),
        "slurm-srun": make_cluster("slurm", Mpi(launcher="srun"), python="/opt/my env/bin/python"),
        "slurm-intelmpi": make_cluster("slurm", Mpi(flavour="intelmpi")),
        "local": make_cluster("local", python="/home/user/.venv/bin/python"),
    }
    for name, cluster in sites.items():
        placement = plain if name in ("local", "slurm-intelmpi") else full
        yield f"{name}.sh", render_job(cluster, make_spec(placement), ATTEMPT, SOURCE, source_root=SOURCE)
    shared = make_spec(make_placement(**STAGED))
    yield "shared-slurm.sh", render_shared(make_cluster("slurm"), shared, "hgroup", SOURCE, source_root=SOURCE)
    folder = Path("/home/user/it's a group")
    placements = [make_placement(), make_placement(walltime_s=60)]
    for scheduler in ("pbs", "slurm", "torque"):
        cluster = make_cluster(scheduler)
        yield f"array-{scheduler}.sh", render_array(cluster, placements, "hgroup", folder, SOURCE, throttle=1)
    pack = [(ATTEMPT.with_name(f"r{number}a1"), placement) for number, placement in enumerate(placements)]
    for scheduler in ("local", "pbs", "slurm", "torque"):
        yield f"pack-{scheduler}.sh", render_pack(make_cluster(scheduler), pack, "hgroup", folder, SOURCE)


if __name__ == "__main__":
    GOLDENS.mkdir(exist_ok=True)
    for file, text in cases():
        (GOLDENS / file).write_text(text)
