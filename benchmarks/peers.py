"""The peers that benchmarks compare with: where they are, how they are installed, which version they have.

    python benchmarks/peers.py      installs what is missing and can be had here

JUBE is Debian's package ``jube`` (root and apt are needed), ReFrame is PyPI's ``reframe-hpc`` in an environment of its
own, ``.venv-peers``, since its requirements are none of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv-peers"
REFRAME_VERSION = "4.10.4"


@dataclass(frozen=True)
class Peer:
    """``command`` is None where the peer is not installed; ``lacking`` says then why."""

    name: str
    command: str | None
    version: str = ""
    lacking: str = ""

    @property
    def title(self) -> str:
        return f"{self.name} {self.version}".strip()


def jube() -> Peer:
    """JUBE, if installed."""
    found = shutil.which("jube")
    if found is None:
        return Peer("JUBE", None, lacking="not installed: apt-get install jube, as root on Debian, or `make bench`")
    return Peer("JUBE", found, _word(_said([found, "--version"])))


def reframe() -> Peer:
    """ReFrame, if installed."""
    found = ENVIRONMENT / "bin" / "reframe"
    if not found.exists():
        return Peer("ReFrame", None, lacking=f"not in {ENVIRONMENT.name}; `make bench` installs it from PyPI")
    return Peer("ReFrame", str(found), _word(_said([str(found), "--version"])))


def install() -> None:
    """Install what is missing, strace too; what cannot be had is said, and its comparisons are left out."""
    packages = [name for name in ("jube", "strace") if shutil.which(name) is None]
    if packages and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        argv = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
        if not _works(argv, environment):
            _works(["apt-get", "update", "-q"], environment)
            _works(argv, environment)
    _tell(jube())
    if reframe().command is None:
        if not (ENVIRONMENT / "bin" / "pip").exists():
            _works([sys.executable, "-m", "venv", str(ENVIRONMENT)])
        pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _works([*pip, f"reframe-hpc=={REFRAME_VERSION}"])
    _tell(reframe())


def _tell(peer: Peer) -> None:
    print(f"peer: {peer.title}" if peer.command else f"peer: {peer.name} is {peer.lacking}", flush=True)


def _works(argv: Sequence[str], environment: Mapping[str, str] | None = None) -> bool:
    try:
        done = subprocess.run(argv, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    except OSError as error:
        print(f"{argv[0]}: {error.strerror}", file=sys.stderr)
        return False
    if done.returncode:
        print(f"{' '.join(argv)}: {done.stderr.decode(errors='replace').strip()[-500:]}", file=sys.stderr)
    return done.returncode == 0


def _said(argv: Sequence[str]) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).strip()


def _word(text: str) -> str:
    """The version in ``JUBE version 2.5.1`` and ``4.7.4``."""
    return next((word for word in reversed(text.split()) if word[:1].isdigit()), "")


if __name__ == "__main__":
    install()
