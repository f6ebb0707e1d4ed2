"""One rank of a run: from ``point.json`` to the exit code, with complete evidence whatever happens in between."""

from __future__ import annotations

import json
import os
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from harness.errors import HarnessError, UserError
from harness.files import read_file
from harness.layout import AttemptLayout
from harness.model.event import EVENT_SCHEMA
from harness.model.job import POINT_SCHEMA, RunSpec
from harness.runtime import provenance
from harness.runtime.clock import clock_for
from harness.runtime.events import EventWriter, EvidenceError
from harness.runtime.meeting import Meeting, launch_session
from harness.runtime.ranks import detect
from harness.runtime.run import Run
from harness.runtime.stepclock import warmup_steps
from harness.runtime.termination import Terminated, Watchdog

USAGE = "usage: python -m harness.runtime POINT.JSON   (one rank; started by mpirun inside a job)"


def main(argv: Sequence[str]) -> int:
    """Run one rank; returns the exit code: 0 done, 1 failed, 2 bad input, 128 + n ended by signal n."""
    if len(argv) != 1 or argv[0].startswith("-"):
        print(USAGE, file=sys.stdout if argv in (["-h"], ["--help"]) else sys.stderr)
        return 0 if argv in (["-h"], ["--help"]) else 2
    try:
        spec = read_spec(Path(argv[0]))
        run = begin(spec, Path(argv[0]).absolute().parent)
    except HarnessError as error:
        print(f"harness.runtime: {error}", file=sys.stderr)
        return error.exit_code
    code = conduct(run)
    if code and run.exchange is not None and run.ranks.world > 1:
        run.exchange.abort(code)  # peers may wait in a collective call for ever
    return code


def read_spec(path: Path) -> RunSpec:
    """The run specification.

    Raises:
        UserError: when the file is missing, is no JSON, or was written by another version.
    """
    try:
        content = json.loads(read_file(path))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give the point.json of an attempt") from None
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}); render the job again") from None
    version = content.get("schema_version") if isinstance(content, dict) else None
    if version != POINT_SCHEMA:
        raise UserError(
            f"{path}: schema_version is {version!r}, this harness reads {POINT_SCHEMA}; render the job again"
        )
    try:
        return RunSpec.model_validate_json(json.dumps(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"{path}: {where}: {first['msg']}; render the job again") from None


def begin(spec: RunSpec, directory: Path) -> Run:
    """Find this rank's place, open its evidence and write ``run_start``."""
    ranks = detect(os.environ, socket.gethostname(), spec.placement.ranks_per_node)
    if ranks.world != spec.placement.ranks:
        raise UserError(
            f"the point asks for {spec.placement.ranks} ranks, the launcher started {ranks.world}; "
            f"start it with its job.sh, or mpirun -np {spec.placement.ranks}"
        )
    clock = clock_for(spec)
    layout = AttemptLayout(directory)
    writer = EventWriter(layout.events(ranks.rank), clock)
    writer.note(
        "run_start",
        schema=EVENT_SCHEMA,
        rank=ranks.rank,
        world=ranks.world,
        local_rank=ranks.local_rank,
        local_world=ranks.local_world,
        node=ranks.node,
        pid=os.getpid(),
        unix_s=provenance.unix_now(),
        point_id=spec.point_id,
        repeat=spec.repeat,
        attempt=spec.attempt,
        steps_warmup=warmup_steps(spec.axes),
        steps_timed=spec.axes.steps_timed,
    )
    return Run(
        spec, ranks, clock, writer, Meeting(directory, ranks, launch_session(os.environ, os.getppid())), directory
    )


def conduct(run: Run) -> int:
    """Everything between ``run_start`` and ``run_end``."""
    error: BaseException | None = None
    with Watchdog(run.writer) as watchdog:
        try:
            try:
                watchdog.deliver()
                run.measure()
            finally:
                watchdog.settle()
        except (Exception, Terminated) as failure:
            error = failure
        try:
            complete(run, error)
        except EvidenceError as failure:  # a full disk: the exit code and standard error are what is left to say so
            error = error or failure
    return 0 if error is None else report(run, error)


def complete(run: Run, error: BaseException | None) -> None:
    """What ended the run, the end of its parts, and the last event."""
    try:
        if error is not None:
            run.writer.error(error)
        if isinstance(error, Terminated):
            run.writer.end(ok=False)  # at once: the launcher's KILL does not wait for our parts
    finally:
        problems = run.close()
    for problem in problems:
        # A worker that does not stop must neither hide why a run failed nor fail a finished one.
        advice = "the measurement is complete; look in stderr for what could not be stopped"
        run.writer.finding("close_failed", {"error": repr(problem)}, advice)
    run.writer.end(ok=error is None)


def report(run: Run, error: BaseException) -> int:
    """Say on standard error what ended the run; returns the exit code."""
    where = f"harness.runtime: rank {run.ranks.rank} of {run.ranks.world} on {run.ranks.node}"
    if isinstance(error, Terminated):
        print(f"{where}: {error}", file=sys.stderr)
        return error.exit_code
    if isinstance(error, HarnessError):
        print(f"{where}: {error}", file=sys.stderr)
        return error.exit_code
    traceback.print_exception(error)
    print(f"{where}: failed after {run.writer.steps} steps", file=sys.stderr)
    return 1
