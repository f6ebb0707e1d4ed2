"""docs/scripting.md: each verb's ``--json`` is one JSON value on stdout, with the keys that the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest

from harness.cli.data import data
from harness.cli.main import VERBS, cli
from harness.jobs.local_registry import STATE_VARIABLE

pytestmark = pytest.mark.mpi
pytest.importorskip("pandas")
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "scripting.md").read_text(encoding="utf-8")
SWEEP = """\
name: größe
base: {workload: replay, options.clock: virtual, options.consume_s: 0.01}
matrix: {prefetch: [1, 2]}
steps: {warmup: 0, timed: 20}
walltime: "00:02:00"
"""
SAMPLE, AGAIN = (str(ROOT / "results" / "sample" / name) for name in ("cores_workers", "cores_workers-again"))
REFUSED = str(ROOT / "results" / "sample" / "ranks")


def documented() -> dict[str, set[str]]:
    """Verb, with its options, → the keys in its row; the second row of a verb under its name and a star."""
    found: dict[str, set[str]] = {}
    for verbs, keys in re.findall(r"^\| (`[^|]+`) \| [^|]+ \| (.+) \|$", PAGE.partition("## Keys")[2], re.MULTILINE):
        for verb in re.findall(r"`([^`]+)`", verbs):
            found[verb + "*" * (verb in found)] = set(re.findall(r"`(\w+)`", keys))
    return found


def no_number(text: str) -> None:
    raise AssertionError(f"{text} is no JSON")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("a project")
    shutil.copytree(ROOT / "configs" / "clusters", root / "configs" / "clusters")
    (root / "sweep.yml").write_text(SWEEP, encoding="utf-8")
    return root


def told(project: Path, *words: str, codes: Iterable[int] = (0,)) -> Any:
    """What a verb says on stdout with --json, read strictly."""
    done = subprocess.run(
        [sys.executable, "-m", "harness", *words, "--json"],
        cwd=project,
        env={**os.environ, STATE_VARIABLE: str(project / "state"), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode in codes, done.stderr
    return json.loads(done.stdout, parse_constant=no_number)


def keys(value: Any) -> set[str]:
    """Of an object, or of each object in a list."""
    if isinstance(value, dict):
        return set(value)
    (alike,) = {frozenset(item) for item in value}
    return set(alike)


def check(project: Path, verb: str, *words: str, codes: Iterable[int] = (0,)) -> Any:
    value = told(project, *verb.rstrip("*").split(), *words, codes=codes)
    assert keys(value) == documented()[verb]
    return value


def test_every_verb_with_json_has_its_row() -> None:
    def has_json(command: click.Command) -> bool:
        return any("--json" in parameter.opts for parameter in command.params)

    context = click.Context(cli)
    commands = {verb: cli.get_command(context, verb) for verb in VERBS}
    wanted = {verb for verb, command in commands.items() if command is not None and has_json(command)}
    wanted |= {f"data {name}" for name, command in data.commands.items() if has_json(command)}
    rows = {re.sub(r"( --\w+|\*)$", "", verb) for verb in documented()}
    assert rows == wanted


def test_a_campaigns_life(project: Path) -> None:
    name = "größe"
    plan = check(project, "plan", "sweep.yml")
    assert len(plan["points"]) == plan["cost"]["runs"] == 2
    check(project, "render", "sweep.yml", "-o", "scripts")
    outcome = check(project, "run", "sweep.yml", "--no-report")
    assert outcome["states"] == {"SUCCEEDED": 2} and outcome["moved_from"] is None
    listed = re.search(r"`runs` of a campaign's state.*?;", PAGE, re.DOTALL)
    assert listed is not None
    assert keys(outcome["runs"]) == set(re.findall(r"`(\w+)`", listed[0])) - {"runs"}
    for verb, words in {
        "submit": ["sweep.yml"],
        "resume": [name],
        "retry": [name],
        "status": [name],
        "wait": [name],
        "cancel": [name],
    }.items():
        check(project, verb, *words)
    assert check(project, "collect", name)["attempts"] == 2
    check(project, "table", name)
    check(project, "next", "sweep.yml")


def test_what_is_made_of_a_campaign(project: Path) -> None:
    for name in ("plot", "report", "check", "stalls", "table", "recommend"):
        campaign = project / name
        shutil.copytree(SAMPLE, campaign)
        check(project, name, str(campaign), codes=(0, 1))
    shutil.copytree(REFUSED, project / "refused")
    check(project, "recommend*", str(project / "refused"), codes=(1,))
    assert check(project, "compare", SAMPLE, AGAIN)
    told_nothing = subprocess.run(
        [sys.executable, "-m", "harness", "compare", AGAIN, "--save-reference", "kept.json"], cwd=project, check=True
    )
    assert told_nothing.returncode == 0
    check(project, "compare --reference", "kept.json", AGAIN)


def test_logs_data_and_clusters(project: Path) -> None:
    log = str(ROOT / "tests/transcripts/foreign/horovod_torch_two_ranks.log")
    assert told(project, "collect", "--logs", log, "--pattern", "horovod_synthetic")
    check(project, "init", "mine", "--scheduler", "local")
    assert check(project, "doctor", "--only", "storage", "--no-speed", codes=(0, 1))
    check(project, "data make", "mnist", "--train", "20", "--test", "10")
    for verb, words in {
        "data verify": ["synthetic:mnist"],
        "data convert": ["synthetic:mnist", "--encoding", "npy"],
        "data stage": ["results/data/hpctmp/synthetic-mnist", "copy"],
        "data describe": [],
    }.items():
        check(project, verb, *words)


@pytest.mark.parametrize("words", [["plan", "sweep.yml"], ["plan", "sweep.yml", "--json"], ["compare", SAMPLE, AGAIN]])
def test_a_reader_that_has_left_is_no_failed_run(words: list[str], project: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    argv = [sys.executable, "-m", "harness", *words]
    done = subprocess.run(argv, cwd=project, stdout=writing, stderr=subprocess.PIPE, timeout=240, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
