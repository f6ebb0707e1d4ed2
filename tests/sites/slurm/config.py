"""The configuration files of a private Slurm: every address on loopback, every path under one directory."""

from __future__ import annotations

import getpass
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Shape:
    """What the site pretends to have. ``memory_mb`` and ``gpus`` are per node; slurmctld remembers an ended job for
    ``remembers_s`` seconds or somewhat more."""

    nodes: int = 4
    sockets: int = 2
    cores_per_socket: int = 8
    threads_per_core: int = 1
    memory_mb: int = 16000
    gpus: int = 4
    remembers_s: int = 3600


def write(base: Path, shape: Shape, port: int, more: str = "") -> None:
    """Write slurm.conf, gres.conf and plugstack.conf into ``base``; ports ``port`` … ``port + nodes`` are used.

    ``more``: further lines of slurm.conf.
    """
    devices = base / "dev"
    devices.mkdir(exist_ok=True)
    for number in range(shape.gpus):
        link = devices / f"nvidia{number}"
        # gres.conf wants character devices; a link to /dev/null passes
        if not link.is_symlink():
            link.symlink_to("/dev/null")
    gres = f"Name=gpu Type=fake File={devices}/nvidia[0-{shape.gpus - 1}]\n" if shape.gpus else ""
    (base / "gres.conf").write_text(gres)
    (base / "plugstack.conf").write_text("")
    (base / "slurm.conf").write_text(_general(base, port) + _timing(shape) + more + _nodes(shape, port))


def _general(base: Path, port: int) -> str:
    user = getpass.getuser()
    return f"""\
ClusterName=private
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthInfo=socket={base}/munge.sock
StateSaveLocation={base}/state
SlurmctldPidFile={base}/slurmctld.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdPidFile={base}/slurmd.%n.pid
SlurmdSpoolDir={base}/spool.%n
SlurmdLogFile={base}/log/slurmd.%n.log
TmpFS={base}/tmp.%n
PlugStackConfig={base}/plugstack.conf
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
MailProg=/bin/true
JobCompType=jobcomp/filetxt
JobCompLoc={base}/jobcomp.txt
JobAcctGatherType=jobacct_gather/linux
"""


def _timing(shape: Shape) -> str:
    # config_overrides: the nodes have more cores and memory than this machine.
    # linuxproc: processes are tracked without cgroups, so that any user and any container will do.
    # SlurmdTimeout, KillWait, sched_*: what takes minutes at a site takes seconds here.
    return f"""\
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
GresTypes=gpu
ReturnToService=2
SlurmdTimeout=5
KillWait=2
MinJobAge={shape.remembers_s}
MaxArraySize=10001
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=1000,bf_interval=1,default_queue_depth=10000
"""


def _nodes(shape: Shape, port: int) -> str:
    gres = f" Gres=gpu:fake:{shape.gpus}" if shape.gpus else ""
    cores = f"Sockets={shape.sockets} CoresPerSocket={shape.cores_per_socket} ThreadsPerCore={shape.threads_per_core}"
    return f"""\
NodeName=DEFAULT {cores} RealMemory={shape.memory_mb}{gres}
NodeName=node[1-{shape.nodes}] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{port + 1}-{port + shape.nodes}]
PartitionName=workq Nodes=ALL Default=YES DefaultTime=10 State=UP
PartitionName=short Nodes=ALL MaxTime=5 State=UP
"""
