"""The ``harness`` command: a group that loads a verb's module only when the verb is used."""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from typing import NoReturn

import click

import harness
from harness.cli import lazy_metadata

#: verb → (module:attr of its click command, one line of help). The help stands here so that ``harness --help``
#: imports no verb at all: a login node's shared file system makes every import slow.
VERBS = {
    "init": ("harness.cli.init:init", "Write a cluster file from what this site tells of itself."),
    "doctor": (
        "harness.cli.doctor:doctor",
        "Look at MPI, frameworks, GPUs, binding, storage, scheduler; name remedies.",
    ),
    "plan": ("harness.cli.plan:plan", "Expand a sweep on a cluster: points, placements, refusals."),
    "schema": ("harness.cli.schema:schema", "Print the JSON Schema of sweep or cluster files, for editors."),
    "render": ("harness.cli.render:render", "Write the job scripts of a sweep without submitting them."),
    "run": ("harness.cli.run:run", "Plan, submit, watch, collect, tabulate and plot a sweep."),
    "submit": ("harness.cli.submit:submit", "Submit a sweep's missing jobs and return."),
    "status": ("harness.cli.status:status", "Show the state of a campaign's jobs."),
    "wait": ("harness.cli.wait:wait", "Wait until a campaign's jobs have ended."),
    "cancel": ("harness.cli.cancel:cancel", "Cancel a campaign's jobs."),
    "retry": ("harness.cli.retry:retry", "Submit new attempts of failed, lost or timed-out jobs."),
    "resume": ("harness.cli.resume:resume", "Submit what a campaign lacks and follow it to its end."),
    "data": ("harness.cli.data:data", "Make, verify and describe data sets."),
    "collect": ("harness.cli.collect:collect", "Derive the table of runs from a campaign's evidence."),
    "table": ("harness.cli.table:table", "Print a campaign's table."),
    "plot": ("harness.cli.plot:plot", "Draw every figure that a campaign's data support."),
    "report": ("harness.cli.report:report", "Write a campaign's report: one HTML file that opens offline."),
    "recommend": (
        "harness.cli.recommend:recommend",
        "Say how many cores, workers and nodes to ask for, and where the data.",
    ),
    "stalls": ("harness.cli.stalls:stalls", "Show where the time of a step goes, by ladder and by recorded waits."),
    "compare": ("harness.cli.compare:compare", "Compare campaigns or clusters, or check against a stored reference."),
    "next": ("harness.cli.next:next_", "Name the points of a sweep that are worth measuring next."),
    "check": ("harness.cli.check:check", "List findings: what makes a campaign's numbers doubtful, and what to do."),
}

#: objects made before Python looks for unused circles among them; by default 700, which imports reach at every turn
YOUNG_OBJECTS = 10_000

#: package → the extra of pyproject.toml that brings it; the core alone plans, renders, submits and watches
EXTRAS = {
    **dict.fromkeys(("PIL", "numpy", "skimage", "sklearn"), "data"),
    **dict.fromkeys(("crc32c", "lmdb", "webdataset"), "formats"),
    **dict.fromkeys(("matplotlib", "orjson", "pandas", "plotly", "pyarrow", "scipy"), "report"),
}


class LazyGroup(click.Group):
    """A click group whose commands are known by name and imported on use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        module, _, attribute = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            from harness.errors import nearest

            raise click.UsageError(f"no verb {args[0]!r}; {nearest(args[0], list(VERBS))}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _reader_left()
        except SystemExit as error:
            if isinstance(error.__context__, BrokenPipeError):
                _reader_left()
            raise

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(name, text) for name, (_, text) in VERBS.items()])


EPILOG = """\b
Example:
  harness run configs/sweeps/quickstart.yml
Exit codes: 0 done, 1 something failed, 2 bad input, 130 interrupted.
"""


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(harness.__version__, "-V", "--version", prog_name="harness")
def cli() -> None:
    """Benchmark deep-learning training and its input pipelines as batch jobs.

    A YAML sweep and a cluster description become PBS, Torque, Slurm or local jobs under mpirun; their
    evidence becomes tables, plots and an answer.
    """


def main() -> None:
    """Run the command line; a :class:`harness.errors.HarnessError` becomes one message and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that is not UTF-8 shows "?" for a dash, no traceback
    gc.set_threshold(YOUNG_OBJECTS)
    lazy_metadata.postpone()
    # numpy's algebra starts a thread for each CPU, which waits busily for work that never comes; job scripts unset it
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        # without standalone mode click hands the code of ctx.exit(code) back instead of exiting with it
        code = cli(standalone_mode=False)
        sys.stdout.flush()  # what cannot be written, to a full disk or a closed pipe, is told here and not at the exit
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except BrokenPipeError:
        _reader_left()
    except Exception as error:
        sys.exit(_said(error))
    finally:
        gc.freeze()  # the end of the process need not look for circles among all that was imported


def _reader_left() -> NoReturn:
    """Whoever read the output has closed it: click and rich would end with 1, as if something had failed."""
    sys.stderr.close()
    sys.exit(141)


def _said(error: Exception) -> int:
    """The exit code of a failure that one message explains; any other is a mistake of ours and is raised again."""
    from harness.errors import HarnessError, UserError, of_the_system

    if isinstance(error, OSError):
        error = UserError(of_the_system(error))
    elif isinstance(error, UnicodeEncodeError) and "\udc80" <= error.object[error.start] <= "\udcff":
        # the bytes that Python has put into a path in this way can stand in no JSON and no job script of ours
        error = UserError("a path or name holds bytes that are no UTF-8 text; rename it, or choose another directory")
    elif isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] in EXTRAS:
        package = (error.name or "").partition(".")[0]
        extra = f"pip install -e '.[{EXTRAS[package]}]'"
        error = UserError(f"{package} is not installed in {sys.prefix}, and this needs it: {extra} in the checkout")
    if not isinstance(error, HarnessError):
        raise error
    click.echo(f"harness: {error}", err=True)
    return error.exit_code
