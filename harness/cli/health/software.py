"""Python and the libraries of the ranks: frameworks, Horovod, and the GPUs that they see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.cli.health import inside
from harness.cli.health.check import Check, Patient, Status
from harness.cli.preflight import NEEDED

AREA = "software"
FRAMEWORKS = ("torch", "tensorflow")
_HOROVOD = NEEDED["horovod"][1]
_BY_HOST = "without NCCL gradients of GPUs pass through host memory"


def check(patient: Patient) -> Iterator[Check]:
    """The interpreter, each framework with its Horovod, and the node's GPUs."""
    patient.say("asking the ranks' interpreter")
    told = inside.probe(patient, ["interpreter"])
    if not told.records or "error" in told.records[0]:
        yield _no_interpreter(patient, told)
        return
    facts = told.records[0]
    versions = facts["versions"]
    message = f"{facts['executable']} (Python {versions['python']}, harness {versions['harness']})"
    yield Check(AREA, "interpreter", "ok", message, facts=facts)
    seen = {}
    for name in FRAMEWORKS:
        patient.say(f"importing {name} and horovod.{name}")
        for record in _modules(patient, name):
            seen[record["module"]] = record
            yield _horovod(patient, record) if "horovod" in record["module"] else _framework(patient, record)
    if not any("error" not in record for name, record in seen.items() if name in FRAMEWORKS):
        remedy = f"{NEEDED['torch'][1]} or {NEEDED['tensorflow'][1]} for the ranks; only replay runs so far"
        yield Check(AREA, "frameworks", "warning", "neither torch nor tensorflow can be imported", remedy)
    yield from _gpus(patient, facts["host"]["gpus"], seen)


def _no_interpreter(patient: Patient, told: inside.Told) -> Check:
    python = patient.cluster.python
    said = told.records[0]["error"] if told.records else told.trouble
    remedy = (
        "name an interpreter that has the harness's requirements as python: in the cluster's file, with the modules: "
        "and conda: that it needs; environment.yml makes one"
    )
    status: Status = "failure" if patient.in_job else "warning"
    return Check(AREA, "interpreter", status, f"{python} cannot run the harness: {said}", remedy)


def _modules(patient: Patient, framework: str) -> Iterator[dict[str, Any]]:
    """The answers for a framework and its Horovod; a crash while importing is an answer too."""
    asked = [framework, f"horovod.{framework}"]
    told = inside.probe(patient, ["module", *asked])
    yield from told.records
    for name in asked[len(told.records) :][:1]:
        yield {"module": name, "error": told.trouble}


def _is_needed(patient: Patient, name: str) -> bool:
    return patient.needs is not None and name in patient.needs.software


def _framework(patient: Patient, record: Mapping[str, Any]) -> Check:
    name = record["module"]
    if "error" in record:
        missing = record["error"].startswith("ModuleNotFoundError")
        status: Status = "failure" if _is_needed(patient, name) else "note" if missing else "warning"
        message = f"{name} is not installed" if missing else f"{name} cannot be imported: {record['error']}"
        return Check(AREA, name, status, message, f"{NEEDED[name][1]} (or conda), if a sweep uses it", record)
    build = f"CUDA {record['cuda']}" if record.get("cuda") else "CPU only"
    message = f"{name} {record['version']} ({build}), imported in {record['seconds']:.1f} s"
    if patient.cluster.node.gpus and not record.get("cuda"):
        remedy = f"install a CUDA build of {name}; environment.yml says how"
        return Check(AREA, name, "warning", f"{message}; the cluster's nodes have GPUs", remedy, record)
    return Check(AREA, name, "ok", message, facts=record)


def _horovod(patient: Patient, record: Mapping[str, Any]) -> Check:
    name = record["module"]
    if "error" in record:
        missing = "No module named 'horovod'" in record["error"]
        status: Status = "failure" if _is_needed(patient, "horovod") else "note" if missing else "warning"
        message = "Horovod is not installed" if missing else f"{name} does not load: {record['error']}"
        remedy = f"{_HOROVOD}, if a sweep says comm: horovod; comm: mpi4py needs no build"
        return Check(AREA, name, status, message, remedy, record)
    features = record["features"]
    message = f"Horovod {record['version']} for {name.partition('.')[2]}, built with {', '.join(features) or 'nothing'}"
    if "mpi" not in features:
        remedy = f"HOROVOD_WITH_MPI=1 when building: {_HOROVOD}"
        return Check(AREA, name, "failure", f"{message}: ranks under mpirun cannot find each other", remedy, record)
    if patient.cluster.node.gpus > 1 and "nccl" not in features:
        remedy = f"HOROVOD_GPU_OPERATIONS=NCCL when building: {_HOROVOD}"
        return Check(AREA, name, "warning", f"{message}; {_BY_HOST}", remedy, record)
    return Check(AREA, name, "ok", message, facts=record)


def _gpus(patient: Patient, names: list[str], seen: Mapping[str, Mapping[str, Any]]) -> Iterator[Check]:
    """GPUs of this node against the cluster's file, and against what each framework sees."""
    expected, found = patient.cluster.node.gpus, len(names)
    listed = f"{found} × {', '.join(sorted(set(names)))}" if names else "no GPU"
    facts = {"expected": expected, "names": names}
    if not patient.in_job:
        message = f"{listed} on this login node; GPUs of compute nodes show only in a job"
        yield Check("gpus", "driver", "note", message, facts=facts)
        return
    if not expected and not found:
        yield Check("gpus", "driver", "ok", "no GPU, as the cluster's file says", facts=facts)
    elif found < expected:
        remedy = "ask for GPUs in the job (harness doctor --job-script does), check nvidia-smi, or correct node: gpus:"
        message = f"{listed} here, the cluster's file says {expected}"
        yield Check("gpus", "driver", "failure" if not found else "warning", message, remedy, facts)
    elif found > expected:
        remedy = f"write node: {{gpus: {found}}} in the cluster's file, if the jobs may use them"
        yield Check("gpus", "driver", "warning", f"{listed} here, the cluster's file says {expected}", remedy, facts)
    else:
        yield Check("gpus", "driver", "ok", f"{listed}, as the cluster's file says", facts=facts)
    for name, record in seen.items():
        if found and name in FRAMEWORKS and "error" not in record and record["gpus"] != found:
            remedy = f"a CUDA build of {name} that the driver supports; see CUDA_VISIBLE_DEVICES too"
            message = f"{name} sees {record['gpus']} of {found} GPUs"
            yield Check("gpus", name, "warning", message, remedy, {"seen": record["gpus"]})
