"""Why an attempt is not a success, in one word, and what to do next: for people, and for ``retry --cause``."""

from __future__ import annotations

import re
from collections.abc import Callable

from harness.jobs.attempts import CLAIMED_CODE, UNWRITABLE_CODE
from harness.jobs.schedulers.words import LOG_NOT_OPENED
from harness.model.job import JobState
from harness.model.ledger import AttemptStatus

# reasons in the harness's own words
NEVER_QUEUED = "the submission never reached the scheduler"
NEVER_RUNNABLE = "can never run"
NEVER_BEGAN = "its pack ended before its turn"
#: of an attempt that has begun, and whose job waits once more
REQUEUED = "its job was put back into the queue"
NO_RECORD = "there is no exit record"
#: begins the reason of what may still run although no job of it can be looked for: only ``harness retry`` submits it
UNTOLD = "nothing tells its job any more"
# the schedulers' own words, as they stand in a reason or a native state
_HELD = re.compile(r"\bheld\b|JobHeld|REQUEUE_HOLD|RESV_DEL_HOLD", re.IGNORECASE)
_NODE = re.compile(r"NODE_FAIL|BOOT_FAIL|LAUNCH_FAILED|node (?:failed|failure|down)", re.IGNORECASE)
_MEMORY = re.compile(
    # not within a word: the words may hold a host, a module or a user of such a name
    r"OUT_OF_MEMORY|out of memory|(?<![a-z])oom(?![a-z])|\bmem(?:ory)? .*exceed|exceed\w* .*mem",
    re.IGNORECASE,
)
_PREEMPTED = re.compile(r"PREEMPT", re.IGNORECASE)
_DEADLINE = re.compile(r"DEADLINE")
_RERUN = re.compile(rf"exit status {CLAIMED_CODE}\b|{re.escape(REQUEUED)}")
#: of a job that says so itself, and left nothing else; a program of the user's may end with the same code
_UNWRITABLE = re.compile(rf"exit status {UNWRITABLE_CODE}; {re.escape(NO_RECORD)}|{re.escape(LOG_NOT_OPENED)}")
#: an element's place in its array's id: ``4_7``, ``4[7].server``
_ELEMENT = re.compile(r"^(\d+(?=_)|\d+\[(?=\d))(?:_?\d+)(\]?)")
#: 128 + SIGKILL: the kernel's answer to a full memory, and a batch system's to whoever ignores TERM
_KILLED = 137

#: cause → what to do next; {handle} is the campaign, {job} the job's id, {release} the scheduler's command
NEXT_STEPS = {
    "held": "somebody must let it go: {release} {job}",
    "dependency": "what it depends on has failed; take the dependency out of directives.extra, then submit again",
    "never_runnable": "ask for less, or for another queue; the limits of queues: in the cluster's file find this when "
    "planning",
    "refused": "mend what the scheduler complains of (account, queue, limits in the cluster's file), then submit again",
    "walltime": "raise walltime in the sweep, or measure fewer steps, then submit the sweep again",
    "deadline": "its --deadline has passed: set a later one in directives.extra, then submit the sweep again",
    "out_of_memory": "raise memory in the sweep, or lower batch_size or workers, then submit the sweep again",
    "node_failure": "harness retry {handle}; should the same node fail again, tell the site",
    "preempted": "harness retry {handle}, or use a queue without preemption",
    "cancelled": "harness retry {handle} --state cancelled",
    "not_begun": "harness retry {handle}; it never ran",
    "unknown_job": "see that no job works in its directory any more, then harness retry {handle}",
    "lost": "harness retry {handle}; look at the scheduler's own log first where it happens again",
    "rerun": "harness retry {handle}; the scheduler took it back (preempted, requeued, its node failed), and a run is "
    "not begun twice",
    "unwritable": "compute nodes cannot write its directory: keep results/ on a file system that they share with this "
    "machine, and do not move it under its jobs; then harness retry {handle}",
    "setup": "see the log: modules, conda and staging run before the launcher",
    "killed": "often memory: look for the kernel's or the scheduler's word in the log, then harness retry {handle}",
    "failed": "see the log, mend it, then harness retry {handle}",
}
RELEASE = {"slurm": "scontrol release", "pbs": "qrls", "torque": "qrls"}


def cause_of(status: AttemptStatus) -> str:
    """A key of :data:`NEXT_STEPS`; empty for an attempt that succeeded or that is on its way."""
    if not status.state.ended:
        is_held = status.native_state == "H" or _HELD.search(f"{status.native_state} {status.reason}")
        return "held" if status.state is JobState.QUEUED and is_held else ""
    if status.state is JobState.SUCCEEDED:
        return ""
    return next(cause for cause, holds in _RULES if holds(status))


def next_step(status: AttemptStatus, scheduler: str, handle: str) -> str:
    """What to do about an attempt; ``handle`` is what names its campaign on a command line."""
    cause = cause_of(status)
    release = RELEASE.get(scheduler, "release")
    # an array is held as a whole, and let go as a whole
    job = _ELEMENT.sub(r"\1\2", status.job_id) if status.index is not None else status.job_id
    return NEXT_STEPS[cause].format(handle=handle, job=job, release=release) if cause else ""


def is_unwritable(reason: str) -> bool:
    """Whether a job could not write where it was to leave its evidence, so that nothing behind it can either."""
    return bool(_UNWRITABLE.search(reason))


def names_cause(words: str) -> bool:
    """Whether a scheduler's words on a failed job say by what it failed."""
    return any(pattern.search(words) for pattern in (_NODE, _MEMORY, _PREEMPTED, _DEADLINE))


def _says(pattern: re.Pattern[str]) -> Callable[[AttemptStatus], bool]:
    return lambda status: bool(pattern.search(f"{status.native_state} {status.reason}"))


#: the first that holds is the cause
_RULES: tuple[tuple[str, Callable[[AttemptStatus], bool]], ...] = (
    ("refused", lambda status: status.refused),
    ("dependency", lambda status: "DependencyNeverSatisfied" in status.reason),
    ("never_runnable", lambda status: status.reason.startswith(NEVER_RUNNABLE)),
    ("unknown_job", lambda status: status.reason.startswith(UNTOLD)),
    ("unwritable", _says(_UNWRITABLE)),
    ("not_begun", lambda status: status.reason in (NEVER_BEGAN, NEVER_QUEUED)),
    ("node_failure", _says(_NODE)),
    ("out_of_memory", _says(_MEMORY)),
    ("preempted", _says(_PREEMPTED)),
    ("deadline", _says(_DEADLINE)),
    ("walltime", lambda status: status.state is JobState.TIMED_OUT),
    ("cancelled", lambda status: status.state is JobState.CANCELLED),
    ("rerun", _says(_RERUN)),
    ("lost", lambda status: status.state is JobState.LOST),
    ("setup", lambda status: status.reason.startswith("setup failed")),
    ("killed", lambda status: status.exit_status == _KILLED),
    ("failed", lambda _status: True),
)
