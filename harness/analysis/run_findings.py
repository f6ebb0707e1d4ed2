"""What makes one run's number doubtful: findings from its own evidence. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harness.analysis import arrays, findings, measure, stats
from harness.analysis.evidence import RankEvidence, RunEvidence, span_of
from harness.analysis.findings import Finding
from harness.catalog import WORKLOADS
from harness.model.axes import Axes
from harness.model.job import JobState


def run_findings(
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
    if measured is None and clock_jumped(run):
        advice = "No number is given; look at the node's clock source (dmesg) and measure again."
        found.append(findings.make("clock_jumped", advice))
        return found
    if measured is None:
        return found + ([findings.make("no_steps")] if state is JobState.SUCCEEDED and not run.missing_ranks else [])
    return [
        *found,
        *_condition_findings(run, cells),
        *_number_findings(run, measured),
        *_cause_findings(run, measured, cells),
    ]


def clock_jumped(run: RunEvidence) -> bool:
    """Whether a rank's clock ran back, or says that one step took longer than the whole job."""
    if any(rank.clock_runs_back for rank in run.ranks):
        return True
    if run.exit is None or run.spec is None or not _on_real_clock(run.spec.axes):
        return False
    # the job's own times are whole seconds of the wall clock
    job_s = run.exit.ended_unix_s - run.exit.started_unix_s + 2.0
    return any(len(rank.steps) and float(rank.steps.durations_s.max()) > job_s > 2.0 for rank in run.ranks)


def _on_real_clock(axes: Axes) -> bool:
    workload = WORKLOADS.get(axes.workload)
    option = workload.options.get("clock") if workload else None
    return option is None or axes.options.get("clock", option.default) == "real"


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
    elif measured.rate.independent_steps < stats.MIN_INDEPENDENT_STEPS:
        found.append(_few_steps(measured.rate))
    drained = numbers.get("drained_images", 0.0)
    total = sum(arrays.total(rank.steps["fresh"][1:]) for rank in run.ranks) if drained > 0 else 0.0
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
    if (period := stall_period(run.ranks[0], measured)) is not None:
        advice = (
            "Look for evaluation, checkpoints or the end of an epoch inside timed steps; take them out of the window."
        )
        found.append(findings.make("periodic_stall", advice, every_steps=period))
    return found


def _few_steps(rate: stats.Estimate) -> Finding:
    """Steps that follow each other alike: more of them are needed than of independent ones."""
    needed = math.ceil(1.25 * stats.MIN_INDEPENDENT_STEPS * rate.n / rate.independent_steps / 10) * 10
    evidence = {"steps": rate.n, "correlation": round(rate.correlation, 2)}
    evidence |= {"independent_steps": round(rate.independent_steps, 1), "steps_needed": needed}
    return findings.make("few_independent_steps", "Time as many steps as are needed (steps: timed).", **evidence)


#: A step this many times as long as the median may be something else than training.
STALL_FACTOR = 3.0


def stall_period(rank: RankEvidence, measured: measure.Measurement) -> int | None:
    """Distance in steps of long steps that come at equal distances, three or more of them; None where there are none.

    Steps that wait for the pipeline are not meant: a slow loader shows as waiting, and is found as such.
    """
    # the numbers of steps rise
    begin = int(rank.steps.step.searchsorted(measured.steady_step))
    own = rank.steps.durations_s[begin:] - rank.steps["wait_s"][begin:]
    usual = arrays.median(own) if len(own) >= 10 else 0.0
    if usual <= 0:
        return None
    places = np.flatnonzero(own > STALL_FACTOR * usual)
    if len(places) < 3:
        return None
    distances = np.diff(places)
    return int(distances[0]) if distances[0] > 1 and len(set(distances)) == 1 else None


def _cause_findings(run: RunEvidence, measured: measure.Measurement, cells: Mapping[str, Any]) -> Iterator[Finding]:
    """Why the rate is what it is, as far as one run can tell."""
    if run.spec is None:
        return
    axes, cores = run.spec.axes, run.spec.placement.cores_per_rank
    yield from _foreign_findings(run, cells)
    yield from _input_findings(run, measured.numbers, cells)
    threads = axes.parallel_threads or cores
    if max(threads, axes.workers) > 2 * cores:
        advice = "Threads beyond the cores only wait for each other, unless they wait for storage."
        yield findings.make("threads_oversubscribed", advice, threads=threads, workers=axes.workers, cores=cores)
    yield from _spinning_findings(run, threads, cores)
    workers = [rank.last("affinity").get("worker_allowed_cpus") for rank in run.ranks]
    allowed = [rank.last("affinity").get("allowed_cpus") for rank in run.ranks]
    if differing := [w for w, a in zip(workers, allowed, strict=True) if isinstance(w, list) and w != a]:
        advice = "The framework moved its workers; unset its affinity variables (KMP_AFFINITY, GOMP_CPU_AFFINITY)."
        yield findings.make("worker_cpus_differ", advice, worker_allowed_cpus=differing[0], allowed_cpus=allowed[0])
    yield from _data_findings(run, axes.cache)


def _spinning_findings(run: RunEvidence, threads: int, cores: int) -> Iterator[Finding]:
    """OpenMP's threads spin for a while before they sleep, on cores that loader workers want.

    Worth knowing, no fault: with two threads and a worker on two idle cores, spinning is half as fast again as sleeping
    (benchmarks/bench_waiting_threads.py).
    """
    axes = run.spec.axes if run.spec else None
    if axes is None or axes.framework != "torch" or axes.gpus_per_rank or not axes.workers or threads < 2:
        return
    settings = run.ranks[0].first("provenance").get("env")
    settings = settings if isinstance(settings, dict) else {}
    passive = str(settings.get("OMP_WAIT_POLICY", "")).lower() == "passive" or settings.get("GOMP_SPINCOUNT") == "0"
    if threads + axes.workers > cores and not passive:
        advice = (
            "Spinning is quick on cores of the run's own and costs most where others want them: compare with "
            "`environment: {OMP_WAIT_POLICY: passive}` in the cluster's file, or with fewer threads."
        )
        yield findings.make("threads_spin", advice, threads=threads, workers=axes.workers, cores=cores)


#: Below this share of the cores in use, cores are idle.
IDLE_SHARE = 0.6
#: Share of a run's CPU time that others may take before it is said.
FOREIGN_SHARE = 0.15
#: Share of a run's cores that others must take, too. A kernel counts a core's time in ticks of up to 10 ms, one percent
#: of a sample's second: where cores are nearly idle, rounding is more than FOREIGN_SHARE of almost nothing. And where
#: 95 % of the cores are left to the run, others hold it up by less than most intervals here tell.
FOREIGN_CORES_SHARE = 0.05


def _busy_cores(run: RunEvidence, cells: Mapping[str, Any]) -> float | None:
    """Cores that were busy among those the ranks may use, with whatever; None where it was not sampled."""
    percent, allowed = cells.get("cpu_percent_mean"), [r.last("affinity").get("allowed_cpus") for r in run.ranks]
    if percent is None or not all(isinstance(cpus, list) for cpus in allowed):
        return None
    places = {
        (str(rank.first("run_start").get("node")), cpu)
        for rank, cpus in zip(run.ranks, allowed, strict=True)
        for cpu in cpus or ()
    }
    return float(percent) / 100 * len(places)


def _foreign_findings(run: RunEvidence, cells: Mapping[str, Any]) -> Iterator[Finding]:
    """Cores that were busy without this run's ranks and workers being what kept them so."""
    busy, used = _busy_cores(run, cells), cells.get("cores_used")
    if not busy or used is None:
        return
    cores = 100 * busy / cells["cpu_percent_mean"]
    if busy - used > max(FOREIGN_SHARE * busy, FOREIGN_CORES_SHARE * cores):
        advice = "Ask for the node exclusively, or measure when it is free; the rate is that of a shared machine."
        yield findings.make("others_use_the_cores", advice, cores_busy=busy, cores_used=used)


def _input_findings(run: RunEvidence, numbers: Mapping[str, float], cells: Mapping[str, Any]) -> Iterator[Finding]:
    wait = numbers.get("wait_share", 0.0)
    if wait <= findings.PIPELINE_BOUND_SHARE or run.spec is None:
        return
    axes, used = run.spec.axes, cells.get("cores_used")
    asked = run.spec.placement.cores_per_node * run.spec.placement.nodes
    busy = _busy_cores(run, cells)
    if used is not None and max(used, busy or 0.0) < IDLE_SHARE * asked:
        loads = "loads in the training thread" if not axes.workers else "cannot use them"
        advice = f"Its loader ({axes.workers} workers) {loads}: more workers or threads; if they do not help, storage."
        evidence = {"wait_share": wait, "cores_used": used, "cores_requested": asked}
        yield findings.make("input_bound_idle_cores", advice, **evidence)
        return
    advice = "Its cores are busy: more of them, or a cheaper encoding or preparation."
    yield findings.make("pipeline_bound", advice, wait_share=wait, **({"cores_used": used} if used else {}))


#: Bytes that the samples of a run must come to before it is judged by what it read.
_LITTLE_BYTES = 10_000_000
#: Samples that a rank's buffers may hold where the point does not say: the shuffle buffer of Dell's pipelines.
_BUFFERED_SAMPLES = 500


def _data_findings(run: RunEvidence, cache: str) -> Iterator[Finding]:
    """What was read against what the samples of this run are in bytes."""
    data = _merged_data(run)
    samples, size = data.get("samples"), data.get("bytes")
    asked = [span_of(rank, "rchar_bytes") for rank in run.ranks]
    if not (isinstance(samples, int) and samples and isinstance(size, int)) or None in asked:
        return
    delivered = sum(arrays.total(rank.steps["fresh"]) for rank in run.ranks)
    due, read = delivered * size / samples, sum(value or 0.0 for value in asked)
    world = len(run.ranks)
    # what buffers took in ahead is no sign: at most two passes, of the set or of what the buffers hold
    buffered = (run.spec.axes.shuffle_buffer if run.spec else None) or _BUFFERED_SAMPLES
    ahead = 2 * min(size, world * buffered * size / samples)
    if world > 1 and due > _LITTLE_BYTES and read - ahead > 0.75 * world * due:
        advice = "Each rank reads what all of them need: shard the files before they are read, not after."
        yield findings.make("every_rank_reads_all", advice, read_bytes=int(read), needed_bytes=int(due), ranks=world)
    memory = run.ranks[0].first("provenance").get("host", {}).get("memory_bytes")
    if cache == "unknown" and isinstance(memory, int) and _LITTLE_BYTES < size < memory / 2 and read > due / 4:
        advice = "After the first epoch memory is measured, not storage: sweep `cache: [cold, warm]`."
        yield findings.make("memory_holds_data", advice, data_bytes=size, memory_bytes=memory)


def _merged_data(run: RunEvidence) -> dict[str, Any]:
    return {k: v for event in run.ranks[0].events.get("data", []) for k, v in event.items() if v is not None}
