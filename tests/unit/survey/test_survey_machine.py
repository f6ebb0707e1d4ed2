"""Processors, GPUs, mounts, modules, MPI versions and quotas, from what programs print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.jobs.survey import machine, quota
from harness.jobs.survey.look import shared_place, useful_modules
from harness.jobs.survey.machine import Mount, Processors
from harness.jobs.survey.mpi import MpiVersion, launch_components, recognise, same_mpi
from harness.jobs.survey.quota import Quota

RECORDED = Path(__file__).parent / "recorded"


# processors and GPUs


def test_processors_of_a_real_machine() -> None:
    found = machine.parse_lscpu((RECORDED / "lscpu.json").read_text())
    assert found == Processors("AMD EPYC", 1, 2, 1)


def test_processors_where_newer_versions_nest_the_fields() -> None:
    inner = [{"field": "Thread(s) per core:", "data": "2"}, {"field": "Core(s) per socket:", "data": "20"}]
    inner += [{"field": "Socket(s):", "data": "2"}]
    model = {"field": "Model name:", "data": "Xeon Gold 6148", "children": inner}
    assert machine.parse_lscpu(json.dumps({"lscpu": [{"field": "Vendor ID:", "data": "x", "children": [model]}]})) == (
        Processors("Xeon Gold 6148", 2, 20, 2)
    )


@pytest.mark.parametrize("text", ["", "{}", '{"lscpu":[]}', '{"lscpu":[{"field":"Socket(s):","data":"-"}]}'])
def test_processors_that_are_not_told(text: str) -> None:
    assert machine.parse_lscpu(text) is None


def test_gpus() -> None:
    text = "Tesla V100-SXM2-32GB, 32510\nNVIDIA GH200 480GB, [N/A]\nNo devices were found\n"
    assert machine.parse_nvidia_smi(text) == [("Tesla V100-SXM2-32GB", 32510 << 20), ("NVIDIA GH200 480GB", None)]


# file systems

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
proc /proc proc rw 0 0
overlay /var/lib/x overlay rw 0 0
10.0.0.1@o2ib:/work /lustre/my\\040work lustre rw 0 0
server:/home /home nfs4 rw 0 0
tmpfs /dev/shm tmpfs rw 0 0
/dev/nvme0n1 /home xfs rw 0 0
"""


def test_mounts_that_may_hold_data() -> None:
    found = machine.parse_mounts(MOUNTS)
    assert [(m.path, m.kind, m.is_shared) for m in found] == [
        ("/", "ext4", False),
        ("/lustre/my work", "lustre", True),
        ("/home", "xfs", False),  # the later mount lies on top
        ("/dev/shm", "tmpfs", False),
    ]


@pytest.mark.parametrize(
    ("path", "mount"), [("/lustre/my work/a", "/lustre/my work"), ("/lustre/my", "/"), ("/home", "/home"), ("/x", "/")]
)
def test_the_mount_of_a_path(path: str, mount: str) -> None:
    found = machine.mount_of(path, machine.parse_mounts(MOUNTS))
    assert found is not None
    assert found.path == mount


def test_a_place_for_data_is_looked_for_in_variables_then_on_the_fastest_mounts() -> None:
    mounts = [Mount("/home", "nfs4", "s:/home"), Mount("/scratch", "lustre", "l"), Mount("/local", "xfs", "d")]
    mine = {"/s/me", "/home/me", "/scratch/users/me", "/local/me"}
    assert shared_place({"SCRATCH": "/s/me/"}, mounts, "me", mine.__contains__)[0] == "/s/me"
    assert shared_place({"SCRATCH": "/gone"}, mounts, "me", mine.__contains__)[0] == "/scratch/users/me"
    assert shared_place({}, mounts[:1] + mounts[2:], "me", mine.__contains__)[0] == "/home/me"
    assert shared_place({}, mounts[2:], "me", mine.__contains__) == ("", "")


# modules


def test_modules_as_both_programs_print_them() -> None:
    text = "/usr/share/modulefiles:\nopenmpi/4.1.5(default)\nopenmpi/\ncuda/12.2 (D)\nnull\nuse.own\nanaconda3/2023\n\n"
    names = machine.parse_modules(text)
    assert names == ["openmpi/4.1.5", "null", "use.own", "anaconda3/2023"]
    assert useful_modules([*names, "hdf5/1", "PyTorch/2.1", "Python/3.11"]) == [
        "openmpi/4.1.5",
        "anaconda3/2023",
        "PyTorch/2.1",
        "Python/3.11",
    ]


# MPI


@pytest.mark.parametrize(
    ("text", "name", "flavour"),
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", "Open MPI 5.0.11", "openmpi5"),
        ("mpirun (Open MPI) 4.1.4", "Open MPI 4.1.4", "openmpi4"),
        ("mpirun (Open MPI) 3.1.6", "Open MPI 3.1.6", None),
        ("Open MPI v4.1.5, package: Open MPI root@x, ident: 4.1.5", "Open MPI 4.1.5", "openmpi4"),
        ("HYDRA build details:\n    Version:                                 4.1.2\n", "MPICH 4.1.2", "mpich"),
        ("MPICH Version:      4.2.0rc1\nMPICH Release date", "MPICH 4.2.0rc1", "mpich"),
        ("MPI VERSION    : CRAY MPICH version 8.1.28.2 (ANL base 3.4a2)", "MPICH 8.1.28.2", "mpich"),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619", "Intel MPI 2021.10", "intelmpi"),
        ("Intel(R) MPI Library 2019 Update 5 for Linux* OS", "Intel MPI 2019", "intelmpi"),
    ],
)
def test_which_mpi_a_text_names(text: str, name: str, flavour: str | None) -> None:
    found = recognise(text)
    assert found is not None
    assert (str(found), found.flavour) == (name, flavour)


@pytest.mark.parametrize("text", ["", "srun 22.05", "mpirun: command not found", "Microsoft MPI 10"])
def test_no_mpi(text: str) -> None:
    assert recognise(text) is None


def test_a_launcher_and_a_library_must_speak_alike() -> None:
    four, five = MpiVersion("openmpi", "4.1.4"), MpiVersion("openmpi", "5.0.1")
    mpich, intel = MpiVersion("mpich", "4.1"), MpiVersion("intelmpi", "2021.10")
    assert same_mpi(four, MpiVersion("openmpi", "4.0.3"))
    assert same_mpi(mpich, intel)
    assert not same_mpi(four, five)
    assert not same_mpi(five, mpich)
    assert not same_mpi(intel, four)


def test_how_open_mpi_starts_its_daemons() -> None:
    text = "             MCA plm: tm (MCA v2.1.0, API v2.0.0)\n    MCA plm: ssh (x)\n    MCA ras: slurm (x)\n"
    assert launch_components(text) == {"tm", "ssh"}


# quotas

LUSTRE = """\
Disk quotas for usr me (uid 1000):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
/lustre/home/a/very/long/path/of/me
                 95747836       0 104857600       -  908722*      0 1048576       -
uid 1000 is using default block quota setting
Disk quotas for grp ours (gid 7):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
        /lustre    [100]*    50      80   6d23h       3       0       0       -
"""


def test_quotas_of_lustre() -> None:
    mine, ours = quota.parse_lustre(LUSTRE)
    assert mine == Quota(
        "usr me", "/lustre/home/a/very/long/path/of/me", 95747836 * 1024, 104857600 * 1024, 908722, 1048576
    )
    assert mine.full_share == pytest.approx(95747836 / 104857600)
    assert (ours.subject, ours.used_bytes, ours.limit_bytes, ours.files_limit) == ("grp ours", 102400, 51200, None)
    assert ours.full_share == 2


def test_quotas_of_other_file_systems() -> None:
    text = (
        "Disk quotas for user me (uid 1000): \n"
        "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace\n"
        "server:/home  512  1024  2048  0  10  0  0  0\n"
        "/dev/sda1  99*  10  20  1700000000  5  100  200  0\n"
    )
    home, disk = quota.parse_quota(text)
    assert (home.file_system, home.used_bytes, home.limit_bytes, home.full_share) == (
        "server:/home",
        524288,
        1048576,
        0.5,
    )
    assert (disk.used_bytes, disk.files, disk.files_limit) == (99 * 1024, 5, 100)


@pytest.mark.parametrize("text", ["", "Disk quotas for user me (uid 1000): none\n", "lfs: command not found"])
def test_no_quota(text: str) -> None:
    assert quota.parse_lustre(text) == []
    assert quota.parse_quota(text) == []
