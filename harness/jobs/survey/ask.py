"""The questions themselves: a scheduler's commands run, their answers parsed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

from harness.errors import HarnessError
from harness.jobs.schedulers.interface import Answer
from harness.jobs.survey import pbs, slurm
from harness.jobs.survey.facts import COMMANDS, Batch, SiteFacts

Runner = Callable[[Sequence[str]], Answer]


class NoAnswer(HarnessError):
    """A scheduler's command failed, with what it said."""


def recognise(which: Callable[[str], str | None] = shutil.which) -> list[Batch]:
    """The batch systems whose commands are in PATH; of PBS and Torque, ``pbs``: only the server can tell which.

    Commands alone prove little: packages of one may lie on the nodes of another.
    """
    families: tuple[Batch, ...] = ("slurm", "pbs")
    return [name for name in families if all(which(command) for command in COMMANDS[name])]


def ask_any(schedulers: Sequence[Batch], run: Runner) -> SiteFacts | None:
    """The first site that answers; None where there is nobody to ask.

    Raises:
        NoAnswer: none of them answered, with what each said.
    """
    said = []
    for scheduler in schedulers:
        try:
            return ask(scheduler, run)
        except NoAnswer as error:
            said.append(str(error))
    if said:
        raise NoAnswer("; ".join(said))
    return None


def ask(scheduler: Batch, run: Runner) -> SiteFacts:
    """All that the scheduler tells of its site; for pbs and torque the answer says which of the two it is.

    Raises:
        NoAnswer: the server could not be asked.
    """
    if scheduler == "slurm":
        return slurm.site(*(_text(run, argv) for argv in (slurm.NODES, slurm.PARTITIONS, slurm.CONFIG)))
    server, queues = (_text(run, argv) for argv in (pbs.SERVER, pbs.QUEUES))
    nodes = run(pbs.NODES)  # some sites keep pbsnodes from their users
    return pbs.site(server, queues, nodes.stdout if nodes.returncode == 0 else "")


def _text(run: Runner, argv: Sequence[str]) -> str:
    answer = run(argv)
    if answer.returncode != 0:
        said = (answer.stderr.strip() or answer.stdout.strip()).rpartition("\n")[2]
        outcome = "did not answer in time" if answer.returncode is None else f"returned {answer.returncode}"
        raise NoAnswer(f"{' '.join(argv)} {outcome}" + (f": {said}" if said else ""))
    return answer.stdout
