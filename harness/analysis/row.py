"""One attempt's evidence → one row of the table of runs, with its findings. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harness.analysis import findings
from harness.analysis.evidence import RankEvidence, RunEvidence, compact_json, span_of
from harness.analysis.findings import Finding
from harness.analysis.measure import Measurement, Wanted, measure_all
from harness.analysis.run_findings import clock_jumped, run_findings
from harness.analysis.samples import utilisation
from harness.model.axes import Axes
from harness.model.job import JobState, Placement


def axes_cells(axes: Axes) -> dict[str, Any]:
    """The axes as cells: each field by its name, options as ``options.<name>``; lists as JSON."""
    cells = axes.model_dump(exclude={"options"})
    for name, value in axes.options.items():
        cells[f"options.{name}"] = compact_json(value) if isinstance(value, list) else value
    return cells


def placement_cells(placement: Placement) -> dict[str, Any]:
    return {
        "cluster": placement.cluster,
        "queue": placement.queue,
        "ranks": placement.ranks,
        "cores_requested": placement.cores_per_node * placement.nodes,
        "gpus_requested": placement.gpus_per_node * placement.nodes,
        "walltime_s": placement.walltime_s,
    }


def run_cells(
    run: RunEvidence, state: JobState, known: Sequence[Measurement | None] = ()
) -> tuple[dict[str, Any], list[Finding], Measurement | None]:
    """Cells of everything that the attempt's own evidence tells, its findings, and the measurement behind them.

    Args:
        known: the measurement, where it was made already, together with others'.
    """
    cells: dict[str, Any] = {}
    found = [findings.make("events_torn", file=text) for text in run.problems]
    if run.exit is not None:
        cells |= {
            "started_unix_s": run.exit.started_unix_s,
            "job_s": max(run.exit.ended_unix_s - run.exit.started_unix_s, 0.0) or None,
            "job_id": run.exit.job_id or None,
            "node": run.exit.host,
        }
    if run.ranks:
        cells |= _condition_cells(run) | _outcome_cells(run)
    measured = known[0] if known else measurements([run])[0]
    if measured is not None:
        cells |= {name: value for name, value in measured.numbers.items() if math.isfinite(value)}
        cells["steady"] = measured.window.steady
        cells |= utilisation(run, measured, cells.get("images_per_s"))
    found += run_findings(run, state, measured, cells)
    return cells, findings.unique(found), measured


def measurements(runs: Sequence[RunEvidence]) -> list[Measurement | None]:
    """What is measured of each run; None where nothing can be."""
    return measure_all(list(map(_wanted, runs)))


def _wanted(run: RunEvidence) -> Wanted:
    """Nothing is measured from some of the ranks: a sum without one of them would be a wrong number."""
    if run.spec is None or run.missing_ranks or not run.ranks or clock_jumped(run):
        return Wanted([], None, 1)
    axes = run.spec.axes
    warmup = run.ranks[0].first("run_start").get("steps_warmup", axes.steps_warmup)
    return Wanted([rank.steps for rank in run.ranks], warmup, axes.steps_timed)


def _condition_cells(run: RunEvidence) -> dict[str, Any]:
    """Under which conditions the run took place; rank 0 speaks where all ranks must agree."""
    first = run.ranks[0]
    provenance, affinity, data = first.first("provenance"), first.first("affinity"), _merged(first.events.get("data"))
    versions, host = _mapping(provenance.get("versions")), _mapping(provenance.get("host"))
    nodes = sorted(
        {str(rank.first("run_start").get("node")) for rank in run.ranks if rank.first("run_start").get("node")}
    )
    cells: dict[str, Any] = {
        "python_version": versions.get("python"),
        "framework_version": _framework_version(run, versions),
        "mpi_version": versions.get("mpi") or versions.get("openmpi"),
        "versions": compact_json(versions) if versions else None,
        "cpu_model": host.get("cpu_model"),
        "gpu_model": ", ".join(sorted(set(map(str, host.get("gpus") or ())))) or None,
        "gpu_driver": host.get("driver"),
        "os": " ".join(str(host[name]) for name in ("os", "kernel") if host.get(name)) or None,
        "device": first.first("model").get("device") or provenance.get("device"),
        "launcher_binding": _text(affinity.get("launcher_binding")),
        "threads": compact_json(affinity["threads"]) if affinity.get("threads") else None,
        "dataset_origin": data.get("origin"),
        "dataset_digest": data.get("digest"),
        "dataset_samples": data.get("samples"),
        "dataset_verified": data.get("verified"),
        "cache_state": first.last("cache").get("state"),
        "parameters": first.first("model").get("parameters"),
    }
    if nodes:
        cells["node"] = ",".join(nodes)
    return cells | _core_cells(run)


def _framework_version(run: RunEvidence, versions: Mapping[str, Any]) -> str | None:
    """``2.21.0`` of torch, ``2.21.0, keras 3.15.1`` of TensorFlow; None for runs without a framework."""
    framework = run.spec.axes.framework if run.spec else None
    version = versions.get(str(framework)) or versions.get(f"{framework}-cpu")
    if framework == "tensorflow" and version and versions.get("keras"):
        return f"{version}, keras {versions['keras']}"
    return version


def _merged(events: list[dict[str, Any]] | None) -> dict[str, Any]:
    """Later events complete earlier ones; null says nothing."""
    return {key: value for event in events or () for key, value in event.items() if value is not None}


def _core_cells(run: RunEvidence) -> dict[str, Any]:
    cpus = [
        len(event["allowed_cpus"])
        for rank in run.ranks
        if isinstance((event := rank.first("affinity")).get("allowed_cpus"), list)
    ]
    if not cpus:
        return {}
    achieved = len(cpus) == len(run.ranks) and all(_has_its_cores(rank.first("affinity")) for rank in run.ranks)
    achieved = achieved and not any(
        str(event.get("code")) in findings.CORES for rank in run.ranks for event in rank.events.get("finding", [])
    )
    return {"cores_allowed_min": min(cpus), "cores_achieved": achieved}


def _has_its_cores(event: Mapping[str, Any]) -> bool:
    """A rank bound to cores has all hardware threads of each: twice the CPUs, and no core more. Older evidence does
    not tell which CPUs are one core."""
    cores = event.get("allowed_cores")
    return bool((cores if isinstance(cores, int) else len(event["allowed_cpus"])) == event.get("requested_cores"))


def _outcome_cells(run: RunEvidence) -> dict[str, Any]:
    first = run.ranks[0]
    phases = {str(e.get("name")): e for e in first.events.get("phase", [])}
    losses = [value for e in first.events.get("loss", []) if isinstance(value := e.get("value"), (int, float))]
    stages = [e for rank in run.ranks for e in rank.events.get("stage", [])]
    checks = [e for rank in run.ranks for e in rank.events.get("check", []) if e.get("name") == "ranks_identical"]
    return {
        "import_s": _phase_s(phases.get("import")),
        "build_s": _phase_s(phases.get("build")),
        "stage_s": max((float(e.get("seconds", 0)) for e in stages), default=None),
        "stage_bytes": sum(int(e.get("bytes", 0)) for e in stages) if stages else None,
        **_used_cells(run.ranks),
        "loss_first": losses[0] if losses else None,
        "loss_last": losses[-1] if losses else None,
        "validation_loss": first.last("validation").get("loss"),
        "validation_error": first.last("validation").get("error"),
        "auroc": first.last("quality").get("auroc"),
        "ranks_identical": all(bool(e.get("ok")) for e in checks) if checks else None,
    }


def _phase_s(event: Mapping[str, Any] | None) -> float | None:
    return (
        float(event["end_s"]) - float(event["begin_s"]) if event and "end_s" in event and "begin_s" in event else None
    )


def _used_cells(ranks: tuple[RankEvidence, ...]) -> dict[str, Any]:
    """What was read and computed between begin and end of the steps; None where a rank has not told both."""
    spans = [span_of(rank, "t_s") for rank in ranks]
    read, cpu_s = [span_of(rank, "read_bytes") for rank in ranks], [span_of(rank, "cpu_s") for rank in ranks]
    servers = [span_of(rank, name) for rank in ranks for name in ("nfs_read_bytes", "lustre_read_bytes")]
    known = [value for value in servers if value is not None]
    longest_s = max((span for span in spans if span is not None), default=0.0)
    busy = None if None in cpu_s or not longest_s else sum(value or 0.0 for value in cpu_s) / longest_s
    return {
        "read_bytes": None if None in read else sum(value or 0.0 for value in read),
        "server_read_bytes": sum(known) if known else None,
        "cores_used": busy,
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return compact_json(value)
