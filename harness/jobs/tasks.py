"""Tasks and the attempts at them: what a campaign still lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from harness.jobs.causes import UNTOLD
from harness.model.campaign import Task
from harness.model.job import JobState
from harness.model.ledger import AttemptKey, AttemptStatus

Statuses = Mapping[AttemptKey, AttemptStatus]


def task_of(key: AttemptKey) -> Task:
    return Task(point_id=key.point_id, repeat=key.repeat)


def attempts_of(tasks: Iterable[Task], statuses: Statuses) -> dict[Task, list[tuple[AttemptKey, AttemptStatus]]]:
    """The attempts of each task, in their order."""
    found: dict[Task, list[tuple[AttemptKey, AttemptStatus]]] = {task: [] for task in tasks}
    for key, status in sorted(statuses.items()):
        if (attempts := found.get(task_of(key))) is not None:
            attempts.append((key, status))
    return found


def missing_tasks(
    tasks: Sequence[Task], statuses: Statuses, fresh: bool = False, outdated: Collection[AttemptKey] = ()
) -> list[Task]:
    """Tasks without a successful or living attempt, in run order; ``fresh`` counts no success, and those ``outdated``
    do not count. What :func:`withheld` names is left out: a job of it may be alive."""
    attempts = attempts_of(tasks, {key: status for key, status in statuses.items() if key not in outdated})
    return [
        task
        for task in tasks
        if not any(_counts(status, fresh) for _, status in attempts[task]) and not _is_withheld(attempts[task])
    ]


def withheld(tasks: Iterable[Task], statuses: Statuses) -> list[AttemptKey]:
    """The last attempts of tasks that are not submitted again by themselves: nobody knows whether those still run."""
    if not any(status.reason.startswith(UNTOLD) for status in statuses.values()):
        return []
    return [attempts[-1][0] for attempts in attempts_of(tasks, statuses).values() if _is_withheld(attempts)]


def _is_withheld(attempts: Sequence[tuple[AttemptKey, AttemptStatus]]) -> bool:
    return bool(attempts) and attempts[-1][1].state is JobState.LOST and attempts[-1][1].reason.startswith(UNTOLD)


def _counts(status: AttemptStatus, fresh: bool) -> bool:
    return not status.state.ended or (status.state is JobState.SUCCEEDED and not fresh)
