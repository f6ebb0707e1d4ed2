"""The accounting of a private Slurm: a MariaDB and a slurmdbd of its own, on loopback, under the site's directory."""

from __future__ import annotations

import getpass
import subprocess
from collections.abc import Callable
from pathlib import Path

from sites import processes

PROGRAMS = ("mariadbd", "mariadb-install-db", "mariadb", "slurmdbd", "sacct", "sacctmgr")
#: as they must be ended: who writes before who keeps
PID_FILES = ("slurmdbd.pid", "mariadbd.pid")
CLUSTER = "private"

Run = Callable[..., subprocess.CompletedProcess[str]]


class Accounting:
    """``port`` and ``port + 1`` are MariaDB's and slurmdbd's. ``run`` runs a command of the site and fails loudly."""

    def __init__(self, base: Path, port: int, run: Run):
        self.base, self.port, self._run = base, port, run

    def settings(self, enforces_memory: bool) -> str:
        """What slurm.conf says of it; ``enforces_memory``: jobs over theirs are ended by the gatherer of figures."""
        enforced = "JobAcctGatherParams=OverMemoryKill\n" if enforces_memory else ""
        return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={self.port + 1}
AccountingStoragePass={self.base}/munge.sock
AccountingStorageTRES=gres/gpu
JobAcctGatherFrequency=task=1
{enforced}"""

    def start(self) -> None:
        """Both daemons, answering, with the cluster known to them; munged runs already."""
        self._start_mariadb()
        self._write_slurmdbd()
        self.start_slurmdbd()
        known = self._run("sacctmgr", "-n", "-P", "list", "cluster", "format=cluster").stdout.split()
        if CLUSTER not in known:
            self._run("sacctmgr", "-i", "add", "cluster", CLUSTER)

    def start_slurmdbd(self) -> None:
        self._run("slurmdbd")
        answers = processes.wait_until(self.is_up, 60, every_s=0.2)
        assert answers, f"slurmdbd does not answer:\n{(self.base / 'log' / 'slurmdbd.log').read_text()[-2000:]}"

    def is_up(self) -> bool:
        return self._run("sacctmgr", "-n", "-P", "list", "cluster", check=False, timeout_s=60).returncode == 0

    def _start_mariadb(self) -> None:
        data, user = self.base / "mysql", getpass.getuser()
        data.mkdir(exist_ok=True)
        self._run(
            *("mariadb-install-db", "--no-defaults", f"--datadir={data}", f"--user={user}", "--skip-test-db"),
            *("--auth-root-authentication-method=normal", "--skip-name-resolve"),
        )
        # small and forgetful: what it holds lives as long as the tests
        options = {
            "user": user,
            "datadir": data,
            "socket": self.base / "mysql.sock",
            "port": self.port,
            "bind-address": "127.0.0.1",
            "pid-file": self.base / "mariadbd.pid",
            "log-error": self.base / "log" / "mariadbd.log",
            "innodb-buffer-pool-size": "64M",
            "innodb-log-file-size": "16M",
            "innodb-flush-log-at-trx-commit": 0,
            "innodb-lock-wait-timeout": 900,
            "performance-schema": "OFF",
        }
        subprocess.Popen(
            ["mariadbd", "--no-defaults", "--skip-log-bin", *(f"--{key}={value}" for key, value in options.items())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert processes.wait_until(lambda: self._sql("select 1").returncode == 0, 60, every_s=0.2), "no MariaDB"
        made = self._sql(
            "create database slurm_acct; grant all on slurm_acct.* to slurm@'127.0.0.1' identified by 'slurm'; "
            "grant all on slurm_acct.* to slurm@localhost identified by 'slurm';"
        )
        assert made.returncode == 0, made.stderr

    def _sql(self, text: str) -> subprocess.CompletedProcess[str]:
        socket = str(self.base / "mysql.sock")
        return self._run("mariadb", "--no-defaults", "-uroot", "-S", socket, "-e", text, check=False)

    def _write_slurmdbd(self) -> None:
        path = self.base / "slurmdbd.conf"
        path.touch(0o600)  # slurmdbd refuses a file that others can read
        path.write_text(f"""\
AuthType=auth/munge
AuthInfo=socket={self.base}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={self.port + 1}
SlurmUser={getpass.getuser()}
LogFile={self.base}/log/slurmdbd.log
PidFile={self.base}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={self.port}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct
""")
