"""Findings: typed warnings about a run or a point, with their evidence and what to do next."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

#: code → (severity, what it means). ``error``: the number is missing or wrong; ``warning``: doubtful; ``info``: worth
#: knowing. Codes are stable: scripts may test for them.
CODES: dict[str, tuple[str, str]] = {
    "run_incomplete": ("error", "the run did not finish"),
    "rank_missing": ("error", "a rank left no events"),
    "evidence_unreadable": ("error", "the run's evidence is not what its vocabulary says"),
    "no_steps": ("error", "no step was recorded"),
    "rank_behind": ("warning", "ranks recorded different numbers of steps"),
    "events_torn": ("warning", "lines of the event file are damaged"),
    "steps_missing": ("warning", "steps are missing in the middle of the record"),
    "not_steady": ("warning", "the run did not reach a steady state"),
    "buffer_drain": ("warning", "a buffer filled during start-up was drained in the timed steps"),
    "short_window": ("warning", "the steady window holds too few steps for an interval"),
    "few_independent_steps": (
        "warning",
        "too few steps for the correlation between them: the interval may be too narrow",
    ),
    "cores_not_achieved": ("warning", "the cores that ranks could use are not the cores asked for"),
    "fewer_cores_than_requested": ("warning", "a rank could use fewer cores than asked for"),
    "more_cores_than_requested": ("warning", "a rank could use more cores than asked for"),
    "hardware_threads_as_cores": ("warning", "hardware threads were granted as cores"),
    "cores_shared_by_ranks": ("warning", "ranks share cores"),
    "gpu_shared_by_ranks": ("error", "ranks share a GPU"),
    "params_diverged": ("error", "ranks ended with different parameters"),
    "ranks_diverged": ("error", "ranks ended with different parameters"),
    "loss_not_finite": ("warning", "the loss became NaN or infinite"),
    "error": ("error", "the run raised an error"),
    "data_origin": ("warning", "the data are not those that the sweep names"),
    "corrupt_image": ("warning", "an image could not be decoded and was left out"),
    "corrupt_images": ("warning", "images that could not be decoded were left out"),
    "resized_again": ("warning", "prepared images had another size and were resized in every epoch"),
    "few_shards": ("warning", "there were fewer shards than readers, so that their epochs overlapped"),
    "rank_imbalance": ("warning", "one rank is slower than the others"),
    "pipeline_bound": ("info", "training waits for data"),
    "input_bound_idle_cores": ("warning", "training waits for data while cores are idle"),
    "others_use_the_cores": ("warning", "other processes used the CPUs of this run"),
    "threads_oversubscribed": ("warning", "more threads or workers than twice the cores"),
    "threads_spin": ("info", "computing threads that wait by spinning share their cores with loader workers"),
    "worker_cpus_differ": ("warning", "a loader worker may use other CPUs than its rank"),
    "every_rank_reads_all": ("warning", "every rank reads the data of all ranks"),
    "memory_holds_data": ("info", "the page cache can hold the whole data set, and its state was not set"),
    "periodic_stall": ("warning", "something else than training happens in timed steps, at equal distances"),
    "clock_jumped": ("error", "the clock of a rank ran back, or ahead by more than the job lasted"),
    "interval_not_reached": ("warning", "the walltime came before the wanted interval"),
    "close_failed": ("info", "a part of the run could not be stopped"),
    "canary_drift": ("warning", "the same point ran at another speed at the end of its allocation than at the start"),
    "machine_drift": ("warning", "repeats became faster or slower in the course of the campaign"),
    "cold_and_warm_mixed": ("warning", "some runs read from storage what others found in memory"),
    "memory_grows_with_workers": ("info", "each loader worker costs memory"),
    "cache_not_as_wanted": ("warning", "the page cache was not in the wanted state"),
    "provenance_differs": ("warning", "repeats of a point ran under different conditions and are not merged"),
    "conditions_differ": ("warning", "points that are compared ran under different conditions"),
    "spread_between_runs": ("warning", "repeats of a point differ much"),
    "one_repeat": ("info", "one repeat only: the spread between runs is unknown"),
}

#: Codes by which a run itself says that its cores are not those asked for.
CORES = frozenset(
    {"fewer_cores_than_requested", "more_cores_than_requested", "hardware_threads_as_cores", "cores_shared_by_ranks"}
)

#: Codes that say that training waits for data.
INPUT_BOUND = frozenset({"pipeline_bound", "input_bound_idle_cores"})

PIPELINE_BOUND_SHARE = 0.2
IMBALANCE_LIMIT = 0.1
DRAIN_LIMIT = 0.03
SPREAD_LIMIT = 0.1


@dataclass(frozen=True)
class Finding:
    """What was found (``code``, ``message``), on what evidence, and what to do."""

    code: str
    severity: str
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)
    advice: str = ""

    def __str__(self) -> str:
        facts = evidence_text(self.evidence)
        return self.message + (f" ({facts})" if facts else "") + (f". {self.advice}" if self.advice else "")


def evidence_text(evidence: Mapping[str, Any]) -> str:
    """Evidence as words: ``drained images 2048, of images 15104``."""
    return ", ".join(f"{key.replace('_', ' ')} {_short(key, value)}" for key, value in evidence.items())


def _short(key: str, value: Any) -> str:
    if isinstance(value, float) and (key == "spread" or key.endswith("_share")):
        return f"{100 * value:.3g}%"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else text[:197] + "…"


def make(code: str, advice: str = "", **evidence: Any) -> Finding:
    """A finding with a known ``code``."""
    severity, message = CODES[code]
    return Finding(code, severity, message, evidence, advice)


def from_event(event: Mapping[str, Any]) -> Finding:
    """A finding that the run itself recorded; codes unknown here are kept as they are."""
    code = str(event.get("code", "finding"))
    severity, message = CODES.get(code, ("warning", code.replace("_", " ")))
    evidence = event.get("evidence")
    return Finding(
        code, severity, message, evidence if isinstance(evidence, dict) else {}, str(event.get("advice", ""))
    )


def to_json(findings: Iterable[Finding]) -> str:
    """A JSON list, the content of the ``findings`` column."""
    return _ENCODER.encode([vars(finding) for finding in findings])


_ENCODER = json.JSONEncoder(ensure_ascii=False, default=str)


def parse(text: str | None) -> list[Finding]:
    """The findings in a cell of the ``findings`` column."""
    return [Finding(**item) for item in json.loads(text)] if isinstance(text, str) and text else []


def unique(findings: Iterable[Finding]) -> list[Finding]:
    """One finding for each code and message, the first, in order: ranks repeat what one of them could say."""
    seen: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.code, finding.advice), finding)
    return list(seen.values())
