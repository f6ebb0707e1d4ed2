"""A private Slurm on loopback, started and stopped by the tests: no root, systemd or cgroups needed.

By hand, from the repository's root::

    PYTHONPATH=tests python -m sites.slurm.site start /tmp/my-slurm    # prints: export SLURM_CONF=…
    PYTHONPATH=tests python -m sites.slurm.site stop /tmp/my-slurm
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sites import processes
from sites.slurm import accounting, cgroups, config
from sites.slurm.accounting import Accounting
from sites.slurm.config import Shape

SYSTEM_PATHS = ("/usr/sbin", "/sbin")
DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")


def lacking(*more: str) -> str:
    """Why no private Slurm can be started here; empty where it can. ``more``: further programs that it needs."""
    missing = [name for name in (*DAEMONS, *CLIENTS, *more) if not _which(name)]
    if missing:
        return f"not installed: {', '.join(missing)} (Debian: tests/sites/debian-packages.txt)"
    return ""


def _which(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *SYSTEM_PATHS]))


class PrivateSlurm:
    """A Slurm cluster ``node1`` … ``nodeN`` under ``base``, which must be a short path: sockets lie in it."""

    def __init__(
        self,
        base: Path,
        shape: Shape | None = None,
        own_hostnames: bool = False,
        has_accounting: bool = False,
        has_cgroups: bool = False,
    ):
        self.base = base
        self.shape = shape or Shape()
        self.own_hostnames = own_hostnames
        self.conf = base / "slurm.conf"
        self.has_accounting = has_accounting
        self.has_cgroups = has_cgroups

    @property
    def environment(self) -> dict[str, str]:
        """The variables a client needs to talk to this Slurm; inherited variables of a surrounding job are gone."""
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "SQUEUE_"))}
        path = os.pathsep.join([inherited.get("PATH", ""), *SYSTEM_PATHS])
        return {**inherited, "PATH": path, "SLURM_CONF": str(self.conf)}

    @property
    def nodes(self) -> list[str]:
        return [f"node{number}" for number in range(1, self.shape.nodes + 1)]

    def run(
        self, *argv: str, check: bool = True, timeout_s: float = 120, **options
    ) -> subprocess.CompletedProcess[str]:
        """A client command against this Slurm; with ``check`` a failure shows what it printed."""
        done = subprocess.run(
            argv, env=self.environment, text=True, capture_output=True, timeout=timeout_s, check=False, **options
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{argv} returned {done.returncode}: {done.stdout}{done.stderr}")
        return done

    # starting and stopping

    def start(self) -> None:
        """Start every daemon and wait until all nodes are idle; on failure stop them and show their errors."""
        for name in ("state", "log", *(f"spool.{node}" for node in self.nodes), *(f"tmp.{n}" for n in self.nodes)):
            (self.base / name).mkdir(parents=True, exist_ok=True)
        port = free_ports(self.shape.nodes + 3)
        self.accounting = Accounting(self.base, port + self.shape.nodes + 1, self.run)
        more = self.accounting.settings(enforces_memory=not self.has_cgroups) if self.has_accounting else ""
        more += cgroups.settings(self.base) if self.has_cgroups else "TaskPlugin=task/none\n"
        config.write(self.base, self.shape, port, more)
        try:
            self._start_munged()
            if self.has_accounting:
                self.accounting.start()
            self.start_slurmctld()
            for node in self.nodes:
                self.start_slurmd(node)
            self._wait_idle()
        except BaseException:
            self.stop()
            raise

    def _start_munged(self) -> None:
        key = self.base / "munge.key"
        key.write_bytes(os.urandom(64))
        key.chmod(0o600)
        options = {
            "socket": "munge.sock",
            "key-file": "munge.key",
            "log-file": "log/munged.log",
            "pid-file": "munged.pid",
            "seed-file": "munge.seed",
        }
        # --force: the socket's directory is private to us, but munged also dislikes its parents (/tmp)
        self.run("munged", "--force", "--num-threads=2", *(f"--{k}={self.base / v}" for k, v in options.items()))

    def start_slurmctld(self) -> None:
        self.run("slurmctld")
        if not processes.wait_until(lambda: self.run("scontrol", "ping", check=False).stdout.count("UP") > 0, 90):
            raise AssertionError(f"slurmctld does not answer:\n{self.errors()}")

    def start_slurmd(self, node: str) -> None:
        group = cgroups.namespace(self.base) if self.has_cgroups else []
        self.run(*group, *self._namespace(node), "slurmd", "-N", node)

    def _namespace(self, node: str) -> list[str]:
        """A namespace in which ``hostname`` is the node's and /etc/hosts knows all of them."""
        if not self.own_hostnames:
            return []
        hosts = self.base / "hosts"
        hosts.write_text("".join(f"127.0.0.1 {name}\n" for name in ("localhost", socket.gethostname(), *self.nodes)))
        rights = [] if os.getuid() == 0 else ["--map-current-user", "--keep-caps"]
        script = 'hostname "$1"; mount --bind "$2" /etc/hosts; shift 2; exec "$@"'
        return ["unshare", "--uts", "--mount", *rights, "sh", "-c", script, "sh", node, str(hosts)]

    def _wait_idle(self) -> None:
        def idle() -> bool:
            states = self.run("sinfo", "-h", "-p", "workq", "-o", "%t %D", check=False).stdout.strip()
            return states == f"idle {self.shape.nodes}"

        if not processes.wait_until(idle, 120, every_s=0.1):
            raise AssertionError(f"nodes are not idle:\n{self.run('sinfo', check=False).stdout}{self.errors()}")

    def errors(self) -> str:
        """The last lines of the daemons' logs that tell of an error."""
        lines = [
            f"{log.name}: {line}"
            for log in sorted((self.base / "log").glob("*.log"))
            for line in log.read_text(errors="replace").splitlines()
            if "error" in line or "fatal" in line
        ]
        return "\n".join(lines[-20:])

    def stop(self) -> None:
        """End the jobs, then the daemons, then whatever of theirs is left; returns when all are gone."""
        if self._pid("slurmctld"):
            self._cancel_everything()
        for pattern in ("slurmctld.pid", "slurmd.*.pid", *accounting.PID_FILES, "munged.pid"):
            # a slurmd without its controller ignores TERM for minutes
            processes.end([pid for file in self.base.glob(pattern) if (pid := self._pid_in(file))], grace_s=3)
        # slurmstepd and job processes whose controller vanished; the configuration's path is ours alone
        processes.end(processes.with_environment(f"SLURM_CONF={self.conf}"), grace_s=1)
        for file in self.base.glob("*.pid"):
            file.unlink(missing_ok=True)
        cgroups.remove(self.base)

    def _cancel_everything(self) -> None:
        jobs = self.run("squeue", "-h", "-o", "%A", check=False, timeout_s=60).stdout.split()
        if jobs:
            self.run("scancel", "-f", *sorted(set(jobs)), check=False, timeout_s=60)
            processes.wait_until(lambda: not self.run("squeue", "-h", check=False).stdout.strip(), 8, every_s=0.2)

    def _pid(self, name: str) -> int | None:
        return self._pid_in(self.base / f"{name}.pid")

    @staticmethod
    def _pid_in(file: Path) -> int | None:
        """The pid in a pid file, if that process still is the daemon that wrote it."""
        try:
            pid = int(file.read_text())
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except (OSError, ValueError):
            return None
        return pid if name == file.name.split(".")[0] and processes.alive(pid) else None

    # faults

    def stop_slurmctld(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Take the controller away; KILL may lose the record of a job submitted a second before."""
        pid = self._pid("slurmctld")
        assert pid, "slurmctld is not running"
        os.kill(pid, number)
        assert processes.wait_until(lambda: not processes.alive(pid), 90), "slurmctld does not end"

    def stop_slurmdbd(self) -> None:
        """Take the accounting away; slurmctld keeps what it has to tell it until it is back."""
        pid = self._pid("slurmdbd")
        assert pid, "slurmdbd is not running"
        processes.end([pid])

    def kill_slurmd(self, node: str) -> None:
        """kill -9 of one node's slurmd, as when a node loses power; its jobs' processes live on, as they may."""
        pid = self._pid(f"slurmd.{node}")
        assert pid, f"slurmd of {node} is not running"
        os.kill(pid, signal.SIGKILL)

    def set_down(self, node: str, reason: str = "test") -> None:
        self.run("scontrol", "update", f"NodeName={node}", "State=DOWN", f"Reason={reason}")

    def set_up(self, node: str) -> None:
        """Bring a node back; its slurmd may have done so itself already, and then RESUME is refused."""
        self.run("scontrol", "update", f"NodeName={node}", "State=RESUME", check=False)
        assert processes.wait_until(lambda: "DOWN" not in self.node_state(node), 90), self.node_state(node)

    def node_state(self, node: str) -> str:
        answer = self.run("scontrol", "show", "node", "-o", node).stdout
        return next(field.removeprefix("State=") for field in answer.split() if field.startswith("State="))

    def shorten(self, job_id: str, minutes: int = 0) -> None:
        """Change a job's TimeLimit; 0 kills it within 30 s, the period in which slurmctld looks at limits."""
        self.run("scontrol", "update", f"JobId={job_id}", f"TimeLimit={minutes}")

    # jobs

    def sbatch(self, script: str, *options: str, **run_options) -> str:
        """Submit a script's text; returns the job's id."""
        return self.run("sbatch", "--parsable", *options, input=script, **run_options).stdout.strip().split(";")[0]

    def job(self, job_id: str) -> dict[str, str]:
        """What ``scontrol show job`` says of a job or array element; empty when it knows none."""
        answer = self.run("scontrol", "show", "job", "-o", job_id, check=False)
        return dict(field.split("=", 1) for field in answer.stdout.split() if "=" in field)

    def state(self, job_id: str) -> str:
        return self.job(job_id).get("JobState", "")

    def wait(self, job_id: str, states: Sequence[str], timeout_s: float = 120) -> dict[str, str]:
        """The job once it is in one of ``states``; fails with what it is instead after ``timeout_s``."""
        reached = processes.wait_until(lambda: self.state(job_id) in states, timeout_s, every_s=0.2)
        job = self.job(job_id)
        assert reached, f"job {job_id} is not {states} after {timeout_s} s: {job}\n{self.errors()}"
        return job

    def wait_forgotten(self, *job_ids: str, timeout_s: float = 180) -> None:
        """Wait until slurmctld has no record of these jobs or arrays any more; see ``Shape.remembers_s``."""

        def is_gone() -> bool:
            asked = self.run("squeue", "-h", "-t", "all", "-o", "%F", f"--jobs={','.join(job_ids)}", check=False)
            return not asked.stdout.strip()

        assert processes.wait_until(is_gone, timeout_s, every_s=0.5), f"slurmctld still knows {job_ids}"

    def scancel(self, *arguments: str) -> None:
        self.run("scancel", *arguments)


def free_ports(count: int) -> int:
    """The first of ``count`` consecutive TCP ports free on loopback, below the ephemeral range.

    The search begins elsewhere for each process: sites that start at the same time do not look at the same ports.
    """
    for turn in range(1000):
        first = 10000 + 20 * ((os.getpid() + turn) % 1000)
        if all(_free(first + offset) for offset in range(count)):
            return first
    raise AssertionError(f"no {count} consecutive free ports found")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@contextmanager
def private_slurm(
    shape: Shape | None = None,
    own_hostnames: bool | None = None,
    has_accounting: bool = False,
    has_cgroups: bool = False,
) -> Iterator[PrivateSlurm]:
    """A running private Slurm, certain to be stopped: by this manager, or by a guardian if this process is killed."""
    base = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
    named = processes.can_name_hosts() if own_hostnames is None else own_hostnames
    site = PrivateSlurm(base, shape, named, has_accounting, has_cgroups)
    stop = [sys.executable, "-m", "sites.slurm.site", "stop", "--remove", str(base)]
    guardian = processes.guard(stop, {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])})
    try:
        site.start()
        yield site
    finally:
        site.stop()
        processes.release(guardian)


def main(arguments: list[str]) -> int:
    """``start BASE`` or ``stop [--remove] BASE``."""
    verb, base = arguments[0], Path(arguments[-1]).absolute()
    if verb == "start":
        base.mkdir(parents=True, exist_ok=True)
        site = PrivateSlurm(base)
        site.start()
        print(f"export SLURM_CONF={site.conf}")
    elif verb == "stop":
        if base.is_dir():
            PrivateSlurm(base).stop()
        if "--remove" in arguments:
            shutil.rmtree(base, ignore_errors=True)
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
