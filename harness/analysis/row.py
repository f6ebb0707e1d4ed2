"""One attempt's evidence → one row of the table of runs, with its findings. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.analysis import findings, measure
from harness.analysis.evidence import RankEvidence, RunEvidence, compact_json
from harness.analysis.findings import Finding
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


def run_cells(run: RunEvidence, state: JobState) -> tuple[dict[str, Any], list[Finding], measure.Measurement | None]:
    """Cells of everything that the attempt's own evidence tells, its findings, and the measurement behind them."""
    cells: dict[str, Any] = {}
    found = [findings.make("events_torn", file=text) for text in run.problems]
    if run.exit is not None:
        cells |= {
            "started_unix_s": run.exit.started_unix_s,
            "job_s": run.exit.ended_unix_s - run.exit.started_unix_s,
            "job_id": run.exit.job_id or None,
            "node": run.exit.host,
        }
    if run.ranks:
        cells |= _condition_cells(run) | _outcome_cells(run)
    measured = _measure(run)
    if measured is not None:
        cells |= {name: value for name, value in measured.numbers.items() if math.isfinite(value)}
        cells["steady"] = measured.window.steady
        cells |= utilisation(run, measured, cells.get("images_per_s"))
    found += _run_findings(run, state, measured, cells)
    return cells, findings.unique(found), measured


def _measure(run: RunEvidence) -> measure.Measurement | None:
    """Nothing is measured from some of the ranks: a sum without one of them would be a wrong number."""
    if run.spec is None or run.missing_ranks or not run.ranks:
        return None
    axes = run.spec.axes
    warmup = run.ranks[0].first("run_start").get("steps_warmup", axes.steps_warmup)
    return measure.measure([rank.steps for rank in run.ranks], warmup, axes.steps_timed)


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
    pairs = [
        (len(event["allowed_cpus"]), event.get("requested_cores"))
        for rank in run.ranks
        if isinstance((event := rank.first("affinity")).get("allowed_cpus"), list)
    ]
    if not pairs:
        return {}
    achieved = len(pairs) == len(run.ranks) and all(allowed == requested for allowed, requested in pairs)
    achieved = achieved and not any(
        str(event.get("code")) in findings.CORES for rank in run.ranks for event in rank.events.get("finding", [])
    )
    return {"cores_allowed_min": min(allowed for allowed, _ in pairs), "cores_achieved": achieved}


def _outcome_cells(run: RunEvidence) -> dict[str, Any]:
    first = run.ranks[0]
    phases = {str(e.get("name")): e for e in first.events.get("phase", [])}
    losses = [e["value"] for e in first.events.get("loss", []) if isinstance(e.get("value"), int | float)]
    stages = [e for rank in run.ranks for e in rank.events.get("stage", [])]
    checks = [e for rank in run.ranks for e in rank.events.get("check", []) if e.get("name") == "ranks_identical"]
    return {
        "import_s": _phase_s(phases.get("import")),
        "build_s": _phase_s(phases.get("build")),
        "stage_s": max((float(e.get("seconds", 0)) for e in stages), default=None),
        "stage_bytes": sum(int(e.get("bytes", 0)) for e in stages) if stages else None,
        "read_bytes": _read_bytes(run.ranks),
        "loss_first": losses[0] if losses else None,
        "loss_last": losses[-1] if losses else None,
        "ranks_identical": all(bool(e.get("ok")) for e in checks) if checks else None,
    }


def _phase_s(event: Mapping[str, Any] | None) -> float | None:
    return (
        float(event["end_s"]) - float(event["begin_s"]) if event and "end_s" in event and "begin_s" in event else None
    )


def _read_bytes(ranks: tuple[RankEvidence, ...]) -> int | None:
    total = 0
    for rank in ranks:
        at = {e.get("at"): e.get("read_bytes") for e in rank.events.get("io", [])}
        begin, end = at.get("begin"), at.get("end")
        if not isinstance(begin, int) or not isinstance(end, int):
            return None
        total += end - begin
    return total


def _run_findings(
    run: RunEvidence, state: JobState, measured: measure.Measurement | None, cells: Mapping[str, Any]
) -> list[Finding]:
    found = [findings.from_event(e) for rank in run.ranks for e in rank.events.get("finding", [])]
    found += [_error_finding(rank, e) for rank in run.ranks for e in rank.events.get("error", [])]
    found += [
        findings.make("events_torn", "The damaged lines were left out.", rank=rank.rank, lines=list(rank.torn_lines))
        for rank in run.ranks
        if rank.torn_lines
    ]
    if state.ended and run.missing_ranks:
        advice = "No rate is given: the sum over the other ranks would be too small. See the job's stderr."
        found.append(findings.make("rank_missing", advice, ranks=list(run.missing_ranks)))
    if state.ended and state is not JobState.SUCCEEDED:
        done = int(cells.get("steps_done", 0))
        found.append(
            findings.make("run_incomplete", "See stderr; then `harness retry`.", state=state.value, steps=done)
        )
    if measured is None:
        return found + ([findings.make("no_steps")] if state is JobState.SUCCEEDED and not run.missing_ranks else [])
    return found + _condition_findings(run, cells) + _number_findings(run, measured)


def _error_finding(rank: RankEvidence, event: Mapping[str, Any]) -> Finding:
    return findings.make(
        "error",
        "See stderr and the events.",
        rank=rank.rank,
        **{"type": str(event.get("type", "")), "text": str(event.get("message", ""))},
    )


def _condition_findings(run: RunEvidence, cells: Mapping[str, Any]) -> list[Finding]:
    found = []
    recorded = {str(e.get("code")) for rank in run.ranks for e in rank.events.get("finding", [])}
    if cells.get("cores_achieved") is False and not any(
        "cores" in c or "affinity" in c or "bind" in c for c in recorded
    ):
        advice = "Ask the launcher for the cores: --map-by socket:PE=n --bind-to core. No recommendation rests on this."
        found.append(findings.make("cores_not_achieved", advice, allowed=cells.get("cores_allowed_min")))
    if cells.get("ranks_identical") is False and "params_diverged" not in recorded:
        found.append(findings.make("ranks_diverged", "The gradient exchange does not work: discard this run."))
    wanted = run.spec.axes.cache if run.spec else "unknown"
    if wanted != "unknown" and cells.get("cache_state") != wanted:
        found.append(findings.make("cache_not_as_wanted", wanted=wanted, state=cells.get("cache_state") or "unknown"))
    losses = (cells.get("loss_first"), cells.get("loss_last"))
    if any(isinstance(loss, float) and not math.isfinite(loss) for loss in losses):
        found.append(findings.make("loss_not_finite", "Throughput stands; the training does not."))
    return found


def _number_findings(run: RunEvidence, measured: measure.Measurement) -> list[Finding]:
    found, numbers, window = [], measured.numbers, measured.window
    lengths = [len(rank.steps) for rank in run.ranks]
    if len(set(lengths)) > 1:
        found.append(findings.make("rank_behind", "Only steps that every rank finished count.", steps=lengths))
    if measured.gaps:
        found.append(findings.make("steps_missing", "No training time is given.", gaps=measured.gaps))
    if not window.steady:
        advice = "Time more steps (steps: timed), or ask for a longer warm-up. No recommendation rests on this run."
        found.append(findings.make("not_steady", advice, reason=window.reason))
    elif "images_per_s_low" not in numbers or math.isnan(numbers["images_per_s_low"]):
        found.append(findings.make("short_window", "Time more steps.", steps=int(numbers["steps_steady"])))
    drained = numbers.get("drained_images", 0.0)
    total = sum(float(rank.steps["fresh"][1:].sum()) for rank in run.ranks)
    if total and drained / total > findings.DRAIN_LIMIT:
        advice = (
            "The steady rate leaves the drained images out; the mean of step rates overstates what can be sustained."
        )
        evidence = {
            "drained_images": round(drained),
            "of_images": round(total),
            "images_per_s_of_all_steps": numbers["all_images_per_s"],
        }
        evidence |= {k: numbers[k] for k in ("mean_of_step_rates", "images_per_s")}
        found.append(findings.make("buffer_drain", advice, **evidence))
    if numbers.get("rank_imbalance", 0.0) > findings.IMBALANCE_LIMIT:
        found.append(
            findings.make("rank_imbalance", "Look at placement and binding.", slowest=numbers["rank_imbalance"])
        )
    if numbers.get("wait_share", 0.0) > findings.PIPELINE_BOUND_SHARE:
        advice = "Try more workers or threads, or a cheaper encoding."
        found.append(findings.make("pipeline_bound", advice, wait_share=numbers["wait_share"]))
    return found


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return compact_json(value)
