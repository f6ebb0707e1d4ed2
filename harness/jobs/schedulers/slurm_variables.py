"""Variables of Slurm's commands, which beat a script's directives: which of a user's are handed on to them.

sbatch(1), squeue(1), scancel(1), "input environment variables".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from harness.model.cluster import Cluster

# variables of sbatch with which a site or user says who pays and where, which a cluster's file may leave open
_SITES_OWN = (
    *("ACCOUNT", "ACCTG_FREQ", "CLUSTERS", "CLUSTER_CONSTRAINT", "CONSTRAINT", "EXPORT", "GET_USER_ENV", "IGNORE_PBS"),
    *("NETWORK", "PARTITION", "QOS", "RESERVATION", "WCKEY"),
)
# variables of Slurm and PMIx that a site sets and no job
_OF_ANY_JOB = ("CONF", "CONF_SERVER", "CLUSTERS", "JWT", "MPI_TYPE", "TIME_FORMAT")
_SHORT = {
    **{"A": "ACCOUNT", "B": "EXTRA_NODE_INFO", "C": "CONSTRAINT"},
    **{"M": "CLUSTERS", "p": "PARTITION", "q": "QOS"},
}


def variables(environ: Mapping[str, str], cluster: Cluster) -> dict[str, str]:
    """Without what would change our questions and requests, and without what tells of a surrounding job's allocation,
    which would go on into our jobs, where srun and mpirun read it."""
    in_job = "SLURM_JOB_ID" in environ
    named = said(cluster)
    named |= {"ACCOUNT"} if cluster.account or cluster.project else set()
    named |= {"PARTITION"} if cluster.queue or cluster.queues else set()
    return {name: value for name, value in environ.items() if _is_kept(name, named, in_job)}


def said(cluster: Cluster) -> set[str]:
    """The options of the site's own directive lines, as the variables of sbatch are called."""
    return {word for line in cluster.directives.extra if (word := _option(line))}


def _is_kept(name: str, named: Collection[str], in_job: bool) -> bool:
    prefix, _, option = name.partition("_")
    if prefix == "SBATCH":
        return option in _SITES_OWN and option not in named
    if prefix in ("PMI", "PMIX", "SLURM", "SLURMD"):
        return not in_job or option in _OF_ANY_JOB or option.startswith("MCA_")
    return prefix not in ("SACCT", "SCANCEL", "SQUEUE")


def _option(line: str) -> str:
    """``--qos=high`` → ``QOS``"""
    match = re.match(r"--([a-z-]+)|-([ABCMpq])", line.strip())
    if match is None:
        return ""
    return _SHORT[match[2]] if match[2] else match[1].upper().replace("-", "_")
