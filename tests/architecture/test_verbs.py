"""Every verb is documented, starts quickly in spirit (imports nothing heavy) and shows an example."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import VERBS

ROOT = Path(__file__).resolve().parents[2]
HEAVY = [
    "tensorflow",
    "keras",
    "torch",
    "torchvision",
    "horovod",
    "mpi4py",
    "numpy",
    "pandas",
    "pyarrow",
    "matplotlib",
    "scipy",
]
#: imported for nothing until somebody looked: each module is some ten calls to a file server that may be slow
ACCIDENTS = [
    "asyncio",
    "email",
    "http.client",
    "importlib.metadata._meta",
    "jinja2",
    "multiprocessing",
    "rich.live",
    "rich.progress",
    "socket",
    "ssl",
    "string",
    "tempfile",
    "zipfile",
]
BANISHED = {
    "plan": [*ACCIDENTS, "harness.jobs"],
    "status": [
        *ACCIDENTS,
        "harness.cli.options",
        "harness.cli.plan",
        "harness.config",
        "harness.jobs.drive",
        "harness.jobs.render",
        "harness.jobs.site",
        "harness.model.cluster",
        "harness.plan",
        "simpleeval",
        "yaml",
    ],
}
SWEEP = str(ROOT / "configs/sweeps/quickstart.yml")

PROBE = """
import json, sys
from harness.cli.main import main
sys.argv = ["harness", *json.loads(sys.argv[1])]
try:
    main()
finally:
    print("\\nIMPORTED " + json.dumps(sorted(sys.modules)))
"""


def imported_by(arguments: list[str], cwd: Path) -> tuple[set[str], str]:
    result = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(arguments)], capture_output=True, text=True, cwd=cwd, check=False
    )
    assert "IMPORTED " in result.stdout, result.stderr
    text, _, modules = result.stdout.rpartition("IMPORTED ")
    return set(json.loads(modules)), text + result.stderr


def test_top_level_help_imports_neither_frameworks_nor_models(tmp_path: Path) -> None:
    modules, text = imported_by(["--help"], tmp_path)
    assert not modules & {*HEAVY, "pydantic", "yaml", "rich", "jinja2"}
    assert all(verb in text for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verbs_help_has_an_example_and_imports_nothing_heavy(verb: str, tmp_path: Path) -> None:
    modules, text = imported_by([verb, "--help"], tmp_path)
    assert not modules & set(HEAVY)
    assert "Example" in text and f"harness {verb}" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", SWEEP],
        ["plan", SWEEP, "--json"],
        ["render", SWEEP, "-o", "out"],
        ["schema", "sweep"],
        ["status", SWEEP],
    ],
    ids=" ".join,
)
def test_login_verbs_import_no_framework_and_no_data_library(arguments: list[str], tmp_path: Path) -> None:
    modules, _ = imported_by(arguments, tmp_path)
    assert not modules & set(HEAVY)


@pytest.mark.parametrize("verb", BANISHED)
def test_what_was_banished_from_a_verb_has_not_come_back(verb: str, tmp_path: Path) -> None:
    if verb == "status":
        imported_by(["render", SWEEP, "-o", "campaign"], tmp_path)
    modules, text = imported_by([verb, "campaign" if verb == "status" else SWEEP], tmp_path)
    assert "evidence in" in text if verb == "status" else "core-hours" in text
    assert not modules & set(BANISHED[verb])


METADATA = """
import sys
read = []
sys.addaudithook(lambda event, given: read.append(str(given[0])) if event in ("open", "os.listdir") else None)
import %s
from harness.model.job import ExitRecord
ExitRecord(code=0, cause="exit", started_unix_s=0.0, ended_unix_s=1.0, host="node")
print(sum(".dist-info" in path for path in read))
"""


@pytest.mark.parametrize("module", ["harness.cli.main", "harness.runtime.main"])
def test_no_package_is_asked_for_plugins(module: str, tmp_path: Path) -> None:
    """pydantic would read the metadata of each that is installed, in a job once for each rank."""
    environment = {name: value for name, value in os.environ.items() if name != "PYDANTIC_DISABLE_PLUGINS"}
    argv = [sys.executable, "-c", METADATA % module]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    assert done.stdout == "0\n"


LAZY = """
import sys
from harness.cli import lazy_metadata
lazy_metadata.postpone()
import importlib, inspect, threading
from importlib.metadata import entry_points
import importlib.metadata as early
assert importlib.metadata is early is sys.modules["importlib.metadata"]
inspect.getmodule(lazy_metadata.postpone)  # looks at every module
assert "importlib.metadata._meta" not in sys.modules and "email" not in sys.modules
%s
import importlib.metadata._adapters
from importlib.metadata import *
assert type(early) is type(sys) and early is sys.modules["importlib.metadata"]
assert early.version("click") == version("click") == importlib.metadata.version("click")
assert early.entry_points.__module__ == "importlib.metadata"
assert len(entry_points(group="console_scripts")) == len(early.entry_points(group="console_scripts")) > 0
lazy_metadata.postpone()
assert early is sys.modules["importlib.metadata"] and not hasattr(early, "nonsense")
importlib.reload(early)
"""
FIRST_USES = {
    "a name from it": "from importlib.metadata import PackageNotFoundError, version",
    "the one that it answers for": "assert entry_points(group='console_scripts')",
    "by its whole name": "assert importlib.metadata.version('click')",
    "a name that it lacks": "assert not hasattr(early, 'nonsense')",
    "all of it": "from importlib.metadata import *",
    "by threads at once": """
found = []
threads = [threading.Thread(target=lambda: found.append(early.version("click"))) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
assert len(found) == 8, found""",
}


@pytest.mark.parametrize("use", FIRST_USES.values(), ids=FIRST_USES)
def test_whoever_asks_importlib_metadata_something_gets_it_whole(use: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", LAZY % use], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")


THREADS = """
import os, sys
from harness.cli.main import main
sys.argv = ["harness", "--version"]
try:
    main()
finally:
    import numpy
    print(os.environ["OPENBLAS_NUM_THREADS"], len(os.listdir("/proc/self/task")))
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs: numpy starts no thread on one")
@pytest.mark.parametrize(("given", "told"), [({}, "1 1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2 2")])
def test_numpy_starts_no_idle_thread_unless_it_is_told_to(given: dict[str, str], told: str, tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")} | given
    argv = [sys.executable, "-c", THREADS]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.stdout.splitlines()[-1:] == [told], done.stderr


@pytest.mark.parametrize("verb", VERBS)
def test_the_readme_names_every_verb(verb: str) -> None:
    assert f"`harness {verb}" in (ROOT / "README.md").read_text(encoding="utf-8")
