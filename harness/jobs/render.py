"""From a run specification to the text of a job script: directives from the scheduler's module, one shared body."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import harness
from harness import catalog
from harness.errors import UserError
from harness.jobs import launchers
from harness.jobs.attempts import CLAIMED_CODE, UNWRITABLE_CODE
from harness.jobs.launchers import Shell, quote
from harness.jobs.schedulers.interface import Scheduler
from harness.jobs.schedulers.words import NO_LOG
from harness.layout import AttemptLayout
from harness.model.cluster import Cluster
from harness.model.job import Placement, RunSpec

if TYPE_CHECKING:
    import jinja2

BODY_TEMPLATE = "body.sh.j2"
#: copies at a time when staging to node-local storage; one stream does not fill a parallel file system's link
STAGE_STREAMS = 8

_VARIABLE = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})")


def render_job(
    cluster: Cluster, run_spec: RunSpec, attempt_dir: Path, project_root: Path, source_root: Path | None = None
) -> str:
    """The whole script of one attempt: the same text for the same arguments.

    ``attempt_dir`` is absolute and visible on the compute nodes. ``project_root`` may hold the site's own body under
    ``jobscripts/``. ``source_root`` is the checkout that the ranks import the harness from; None: this one, or, where
    the harness is installed, whatever the interpreter of the ranks has.

    Raises:
        UserError: for values that the scheduler or the launcher cannot be given, and for a missing or bad template.
    """
    return Scripts(cluster, project_root, source_root).job(run_spec, attempt_dir)


def render_shared(
    cluster: Cluster, run_spec: RunSpec, group_name: str, project_root: Path, source_root: Path | None = None
) -> str:
    """The script that attempts of a group share: ``run_spec`` is any of them, ``group_name`` their job's.

    It runs the attempt in whose directory it was started as job.sh, and has no directives: the group's script has.

    Raises:
        UserError: as :func:`render_job`.
    """
    return Scripts(cluster, project_root, source_root).shared(run_spec, group_name)


class Scripts:
    """The scripts of a campaign's attempts; what those of one placement have in common is made once."""

    def __init__(self, cluster: Cluster, project_root: Path, source_root: Path | None = None):
        self._cluster, self._project_root = cluster, project_root
        self._source_root = source_root or checkout()
        self._scheduler = scheduler_of(cluster)
        self._common: dict[tuple[Placement, bool], dict[str, Any]] = {}

    def job(self, run_spec: RunSpec, attempt_dir: Path) -> str:
        """As :func:`render_job`."""
        name, output = run_spec.job_name, f"{attempt_dir}/scheduler.log"
        lines = self._scheduler.directives(self._cluster, run_spec.placement, name, output)
        own = {
            "directives": [f"{self._scheduler.PREFIX} {line}" for line in lines],
            "attempt_dir": quote(str(attempt_dir)),
            "job_name": quote(name),
        }
        return self._body(run_spec, own)

    def shared(self, run_spec: RunSpec, group_name: str) -> str:
        """As :func:`render_shared`."""
        own = {
            "directives": [],
            "attempt_dir": Shell('"$(cd -- "$(dirname -- "$0")" && pwd)"'),
            # two packs, or elements of an array, may stage on one node
            "job_name": Shell(f'{quote(group_name)}."$(basename -- "${{attempt_dir%/*}}")"."${{attempt_dir##*/}}"'),
        }
        return self._body(run_spec, own)

    def _body(self, run_spec: RunSpec, own: dict[str, Any]) -> str:
        """The body template filled in; ``own`` is what an attempt has of its own."""
        key = run_spec.placement, run_spec.axes.dataset is not None
        if key not in self._common:
            self._common[key] = self._values(*key)
        template = self._cluster.body_template or BODY_TEMPLATE
        return render_template(template, {**own, **self._common[key]}, self._project_root)

    def _values(self, placement: Placement, reads_data: bool) -> dict[str, Any]:
        cluster, source = self._cluster, self._source_root
        if not reads_data:
            placement = placement.model_copy(update={"stage_from": None})
        return {
            "nodes": placement.nodes,
            "own_body": cluster.body_template is not None,
            "job_id": f'"${{{self._scheduler.JOB_ID_VARIABLE}:-}}"',
            **_environment(cluster, source),
            **_staging(cluster, placement),
            **_launch(cluster, placement, source, reads_data),
        }


def lost_log(cluster: Cluster, placement: Placement, directory: Path) -> str:
    """Why the scheduler's own logs of jobs under ``directory`` are not kept, in words; empty where they are.

    Raises:
        UserError: for values that the scheduler cannot be given.
    """
    scheduler = scheduler_of(cluster)
    here, elsewhere = (
        set(scheduler.directives(cluster, placement, "job", f"{folder}/scheduler.log")) for folder in (directory, "/a")
    )
    if not any(line.endswith(NO_LOG) for line in here - elsewhere):
        return ""
    return (
        f"{directory} cannot be written in a line of {scheduler.PREFIX}, so the scheduler's own log of each job is not "
        "kept: what goes wrong before a run begins is not told; a path of letters, digits and . _ @ + - keeps it"
    )


def scheduler_of(cluster: Cluster) -> Scheduler:
    """The dialect of the cluster's scheduler."""
    return catalog.load(catalog.lookup(catalog.SCHEDULERS, cluster.scheduler, "scheduler"))  # type: ignore[no-any-return]


def render_template(name: str, values: dict[str, Any], project_root: Path) -> str:
    """A body template of the project, or else of the harness, filled in."""
    import jinja2

    try:
        return _templates(project_root).get_template(name).render(values, **_CODES)
    except jinja2.TemplateNotFound as error:
        places = " or ".join(map(str, _template_folders(project_root)))
        raise UserError(f"no job body {error.name!r} in {places}; see body_template in the cluster's file") from None
    except jinja2.TemplateError as error:
        where = f"{error.filename or name}:{error.lineno}" if isinstance(error, jinja2.TemplateSyntaxError) else name
        raise UserError(f"{where}: {error.message}; names that a job body may use stand in {BODY_TEMPLATE}") from None


def render_environment(cluster: Cluster, project_root: Path) -> str:
    """The lines with which a job body sets up modules, conda, PATH and variables; they call ``fail MESSAGE``.

    Raises:
        UserError: for a missing or bad template, or a checkout whose path PYTHONPATH cannot hold.
    """
    import jinja2

    name, templates = cluster.body_template or BODY_TEMPLATE, _templates(project_root)
    try:
        context = templates.get_template(name).new_context(_environment(cluster, checkout()))
        if name != BODY_TEMPLATE:
            # a site's own body extends ours: its block may be missing, or call super()
            block = templates.get_template(BODY_TEMPLATE).blocks["environment"]
            context.blocks.setdefault("environment", []).append(block)
        return "".join(context.blocks["environment"][0](context))
    except jinja2.TemplateError as error:
        raise UserError(f"body template {name!r}: {error}") from None


_CODES = {"claimed_code": CLAIMED_CODE, "unwritable_code": UNWRITABLE_CODE, "stage_streams": STAGE_STREAMS}


@lru_cache(maxsize=8)
def _templates(project_root: Path) -> jinja2.Environment:
    import jinja2

    loader = jinja2.FileSystemLoader(_template_folders(project_root))
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # this is shell text, not HTML; see the filter sh
    )
    environment.filters["sh"] = quote
    return environment


def _template_folders(project_root: Path) -> list[Path]:
    """The project's own, then the harness's: in its checkout, or where pip puts the data files of a wheel."""
    own = checkout()
    shipped = own / "jobscripts" if own else Path(sys.prefix) / "share" / "dl-batch-harness" / "jobscripts"
    return [project_root / "jobscripts", shipped]


def package_root() -> Path:
    """The directory that holds the ``harness`` package."""
    return Path(harness.__file__).resolve().parent.parent


def checkout() -> Path | None:
    """The checkout that this harness runs from; None where it is installed.

    An installed one is not named to the ranks: it lies among the login side's packages, which are none of theirs.
    """
    root = package_root()
    return root if (root / "pyproject.toml").is_file() else None


def expanded(path: str) -> Shell:
    """A path of the cluster's file as one shell word: ``$NAME`` and ``${NAME}`` are expanded in the job, all else
    stays as written; a variable that is not set there ends the job with a message."""
    words, end = [], 0
    for match in _VARIABLE.finditer(path):
        words += [_literal(path[end : match.start()]), f'"${{{match[1] or match[2]}:?is not set in the job}}"']
        end = match.end()
    return Shell("".join([*words, _literal(path[end:])]) or "''")


def _literal(text: str) -> str:
    return quote(text) if text else ""


def _environment(cluster: Cluster, source_root: Path | None) -> dict[str, Any]:
    if ":" in str(source_root):
        raise UserError(
            f"the harness lies in {str(source_root)!r}, and PYTHONPATH cannot name a path with ':'; move it"
        )
    for name in cluster.mpi.environment:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise UserError(f"cluster {cluster.name!r}: {name!r} in mpi.environment is no name of a variable")
    is_own_interpreter = cluster.container is None and cluster.python.startswith("/")
    return {
        "modules": cluster.modules,
        "conda": cluster.conda,
        "prelude": cluster.prelude,
        "python_bin": quote(str(PurePosixPath(cluster.python).parent)) if is_own_interpreter else "",
        "source_root": quote(str(source_root)) if source_root else "",
        "variables": [(name, quote(value)) for name, value in sorted(cluster.mpi.environment.items())],
    }


def _staging(cluster: Cluster, placement: Placement) -> dict[str, str]:
    hosts = _hosts(cluster, placement)
    per_node = launchers.per_node_argv(cluster, placement, hosts) if placement.nodes > 1 else []
    return {
        "data_dir": expanded(placement.data_path),
        "stage_from": expanded(placement.stage_from) if placement.stage_from else "",
        "per_node": "".join(quote(word) + " " for word in per_node),
    }


def _launch(cluster: Cluster, placement: Placement, source_root: Path | None, reads_data: bool) -> dict[str, str]:
    hosts = _hosts(cluster, placement)
    launch = launchers.launch_argv(cluster, placement, hosts)
    # env, since a container's own start-up may replace PYTHONPATH
    program = ["env", Shell('PYTHONPATH="$PYTHONPATH"'), cluster.python, "-m", "harness.runtime"]
    program.append(Shell(f'"$attempt_dir"/{AttemptLayout(Path()).point}'))
    wrapper = []
    if cluster.container is not None:
        data = Shell('"$HARNESS_DATA_DIR"') if placement.stage_from else expanded(placement.data_path)
        checkouts = [str(source_root)] if source_root else []
        binds = [*checkouts, Shell('"$attempt_dir"'), *([data] if reads_data else [])]
        wrapper = launchers.container_argv(cluster.container, placement.gpus_per_node > 0, binds)
    return {
        "launcher": quote(launch[0]),
        "launch": " ".join(quote(word) for word in launch[1:]),
        "wrapper": "".join(quote(word) + " " for word in wrapper) + ("\\\n  " if wrapper else ""),
        "program": " ".join(quote(word) for word in program),
        "hosts_format": quote(launchers.hosts_line_format(cluster, placement)) if hosts else "",
    }


def _hosts(cluster: Cluster, placement: Placement) -> Shell | None:
    return Shell('"$attempt_dir"/hosts') if launchers.needs_hosts(cluster, placement) else None
