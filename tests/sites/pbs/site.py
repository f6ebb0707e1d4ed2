"""A fake PBS site: ``with fake_pbs() as site`` gives real commands on ``site.environment``'s PATH."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.files import read_json_lines
from sites import processes
from sites.pbs import client
from sites.pbs.commands import COMMANDS
from sites.pbs.settings import Settings

TESTS = Path(__file__).parents[2]


class FakePbs:
    """The site under ``base`` (a short path: a socket lies in it), its commands, its faults, its audit."""

    def __init__(self, base: Path, settings: Settings):
        self.base = base
        self.settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bin(self) -> Path:
        return self.base / "bin"

    @property
    def home(self) -> Path:
        """The HOME of every job, and so its first working directory."""
        return self.base / "home"

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PBS_")}
        return {**inherited, "PATH": os.pathsep.join([str(self.bin), inherited.get("PATH", "")])}

    def start(self) -> None:
        self.bin.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        for command in COMMANDS:
            self._launcher(command)
        self._remote_shell()
        self.settings.save(self.base / "settings.json")
        with (self.base / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "sites.pbs.server", str(self.base)],
                env={**os.environ, "PYTHONPATH": str(TESTS)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if not processes.wait_until((self.base / "pid").exists, 90):
            self.stop()
            raise AssertionError(f"the fake PBS does not start:\n{(self.base / 'log').read_text()}")

    def _launcher(self, command: str) -> None:
        words = [sys.executable, "-S", "-m", "sites.pbs.client", str(self.base), command]
        path = self.bin / command
        path.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(TESTS))} exec {shlex.join(words)} "$@"\n')
        path.chmod(0o755)

    def _remote_shell(self) -> None:
        """``pbs_tmrsh HOST COMMAND…``, which Open MPI takes as plm_rsh_agent: here every host is this machine."""
        path = self.bin / "pbs_tmrsh"
        words = processes.named_host("HOST") if self.settings.own_hostnames else ["env"]
        path.write_text(
            "#!/bin/sh\nhost=$1; shift\nexec " + shlex.join(words).replace("HOST", '"$host"') + ' sh -c "$*"\n'
        )
        path.chmod(0o755)

    def stop(self) -> None:
        """End the server and every process of every job."""
        pid_file = self.base / "pid"
        if pid_file.exists():
            processes.end([int(pid_file.read_text())], grace_s=5)
            pid_file.unlink(missing_ok=True)
        if self._process:
            processes.end([self._process.pid], grace_s=5)
            self._process.wait(60)
        processes.kill_all(f"FAKE_PBS={self.base}")

    def log(self) -> str:
        """What the server printed: tracebacks of the fake itself."""
        return (self.base / "log").read_text()

    # commands

    def run(self, *argv: str, check: bool = False, timeout_s: float = 120, **options: Any) -> Any:
        """A command of this site, as text."""
        options.setdefault("cwd", self.home)
        env = {**self.environment, **options.pop("env", {})}
        done = subprocess.run(argv, env=env, text=True, capture_output=True, timeout=timeout_s, check=False, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{argv} returned {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def qsub(self, script: str, *options: str, **run_options: Any) -> str:
        """Submit a script's text; the job's id."""
        return self.run("qsub", *options, input=script, check=True, **run_options).stdout.strip()

    # the tests' own view

    def control(self, verb: str, value: Any = None) -> list[dict[str, Any]]:
        reply = client.ask(self.base, {"command": "control", "argv": [verb], "value": value})
        assert reply is not None, f"the fake PBS is gone:\n{self.log()}"
        return json.loads(str(reply["stdout"]))

    def inject(self, kind: str, command: str = "", times: int = 1, **facts: Any) -> None:
        """Let the next ``times`` uses of ``command`` (any where empty) meet a fault.

        down; hang_before, hang_after (seconds: before it takes effect, or after it did); client_killed (after it took
        effect); late (qsub, seconds or until: queued so much later, or when that file is there, even if the
        caller is gone); broken_json (qstat, how: first_only, cut, backslash, nan, dot, raw_byte).
        """
        fault = {"kind": kind, "times": times, **facts}
        self.control("inject", {**fault, "command": command} if command else fault)

    def set(self, **switches: Any) -> None:
        """Turn switches of :class:`Settings`: down, scheduling, history, forget_ended, json_style, queues …"""
        self.control("set", switches)

    def forget(self, *numbers: str) -> None:
        """Make the server forget these jobs (all, without numbers), running or not."""
        self.control("forget", [number.partition(".")[0].partition("[")[0] for number in numbers])

    def kill_running(self, share: float = 1.0) -> None:
        """kill -9 of this share of the running scripts, chosen by the site's seed."""
        self.control("kill", share)

    def expire(self) -> None:
        """Let the walltime of every running job be over."""
        self.control("expire")

    def jobs(self) -> dict[str, dict[str, Any]]:
        """Every job ever queued, forgotten ones too: id → name, state, comment, units."""
        return {job["id"]: job for job in self.control("tell")}

    def unit(self, unit_id: str) -> dict[str, Any]:
        units = {unit["id"]: unit for job in self.jobs().values() for unit in job["units"]}
        return units[unit_id]

    def wait(self, unit_id: str, states: str = "F", timeout_s: float = 90) -> dict[str, Any]:
        """The unit (a job, or an array's element) once its state letter is one of ``states``."""
        reached = processes.wait_until(lambda: self.unit(unit_id)["state"] in states, timeout_s)
        assert reached, f"{unit_id} is not {states}: {self.unit(unit_id)}\n{self.log()}"
        return self.unit(unit_id)

    def commands(self, name: str) -> list[list[str]]:
        """The arguments of each call of this command, in order."""
        return [call["argv"] for call in read_json_lines(self.base / "commands.jsonl") if call["command"] == name]

    def audit(self) -> list[dict[str, Any]]:
        """What happened, in order: queued, started, ended, deleted."""
        return list(read_json_lines(self.base / "audit.jsonl"))


@contextmanager
def fake_pbs(**settings: Any) -> Iterator[FakePbs]:
    """A running fake PBS, certain to be stopped: by this manager, or by a guardian if this process is killed."""
    base = Path(tempfile.mkdtemp(prefix="pbs-", dir="/tmp"))
    settings.setdefault("path", os.environ.get("PATH", "/usr/bin:/bin"))
    settings.setdefault("own_hostnames", processes.can_name_hosts())
    site = FakePbs(base, Settings(**settings))
    stop = [sys.executable, "-m", "sites.pbs.site", str(base)]
    guardian = processes.guard(stop, {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent}"})
    try:
        site.start()
        yield site
    finally:
        site.stop()
        processes.release(guardian)


if __name__ == "__main__":
    FakePbs(Path(sys.argv[1]), Settings()).stop()
    shutil.rmtree(sys.argv[1], ignore_errors=True)
