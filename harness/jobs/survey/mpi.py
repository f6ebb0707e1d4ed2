"""Which MPI a text is about: what a launcher prints for ``--version``, or what a library calls itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from harness.model.cluster import MpiFlavour

# mpirun (Open MPI) 4.1.4 · mpirun (Open MPI) 5.0.11 · Open MPI v5.0.11, package: …
_OPEN_MPI = re.compile(r"Open MPI\)? v?(\d+)((?:\.\d+)*)")
# Intel(R) MPI Library for Linux* OS, Version 2021.10 Build … · Intel(R) MPI Library 2021.10 for Linux* OS
_INTEL = re.compile(r"Intel\(R\) MPI Library.*?(\d{4}(?:\.\d+)*)")
# HYDRA build details:\n    Version:    4.1.2 · MPICH Version: 4.1.2 · CRAY MPICH version 8.1.28.2
_MPICH = re.compile(r"(?:MPICH Version:|CRAY MPICH version|HYDRA build details:\s*Version:)\s*(\d+(?:\.\w+)*)", re.I)
# mpiexec of Cray's PALS: PALS 1.3.4
_PALS = re.compile(r"^(?:mpiexec \()?PALS\)?\s+(?:version )?(\d+(?:\.\d+)*)", re.M | re.I)


@dataclass(frozen=True)
class MpiVersion:
    """``family`` is the cluster file's word for it, with Open MPI's major version in it."""

    family: str
    version: str

    def __str__(self) -> str:
        return f"{NAMES.get(self.family, 'Open MPI')} {self.version}"

    @property
    def flavour(self) -> MpiFlavour | None:
        """The cluster file's flavour that launches for it; None for versions of Open MPI before 4."""
        if self.family == "openmpi":
            major = int(self.version.partition(".")[0])
            return "openmpi5" if major >= 5 else "openmpi4" if major == 4 else None
        return "mpich" if self.family == "mpich" else "intelmpi"


NAMES = {"openmpi": "Open MPI", "mpich": "MPICH", "intelmpi": "Intel MPI"}


def recognise(text: str) -> MpiVersion | None:
    """The MPI that ``text`` names; None where it names none that the harness can launch."""
    if match := _OPEN_MPI.search(text):
        return MpiVersion("openmpi", match[1] + match[2])
    if match := _INTEL.search(text):
        return MpiVersion("intelmpi", match[1])
    if match := _MPICH.search(text) or _PALS.search(text):
        return MpiVersion("mpich", match[1])
    return None


def same_mpi(launcher: MpiVersion, library: MpiVersion) -> bool:
    """Whether ranks started by ``launcher`` can find each other through ``library``.

    The launcher's and the library's wire-up must be one family; of Open MPI also one major version, since the
    launcher of 4 (ORTE) and of 5 (PRRTE) start their ranks in different ways. Hydra starts MPICH's and Intel's alike.
    """
    if launcher.family == "openmpi" or library.family == "openmpi":
        return launcher.flavour == library.flavour
    return True


def launch_components(text: str) -> frozenset[str]:
    """How an Open MPI starts its daemons on other nodes: tm, slurm, ssh (or rsh), …

    ``text`` is what ``ompi_info`` prints (Open MPI 4) or ``prte_info`` (Open MPI 5): lines ``MCA plm: slurm (…)``.
    """
    return frozenset(re.findall(r"^\s*MCA plm: (\w+) ", text, re.M))
