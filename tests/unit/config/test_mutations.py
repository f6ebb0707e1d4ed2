"""Shipped sweeps and clusters, changed at random: what is no longer right is refused in words, never by a traceback."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.config.cluster_file import load_cluster, parse_cluster
from harness.config.scales import scaled
from harness.config.sweep_file import load_sweep, parse_sweep
from harness.errors import ConfigError, UserError
from harness.jobs.render import render_job
from harness.model.campaign import Campaign
from harness.model.cluster import Cluster
from harness.model.job import RunSpec
from harness.model.sweep import Sweep
from harness.plan.plan import plan

PROJECT = Path(__file__).parents[3]
SWEEPS = {path.name: path.read_text() for path in sorted((PROJECT / "configs/sweeps").glob("*.yml"))}
CLUSTERS = {path.name: path.read_text() for path in sorted((PROJECT / "configs/clusters").glob("*.yml"))}
WORDS = sorted({word for text in (*SWEEPS.values(), *CLUSTERS.values()) for word in re.findall(r"[\w.]+", text)})
VALUES = [
    *(
        "",
        "null",
        "~",
        "0",
        "-1",
        "1",
        "3",
        "1.5",
        "1e400",
        ".nan",
        "007",
        "0x10",
        "9" * 30,
        "999999999999",
        "2000-01-01",
    ),
    *("12:00:00", '"12:00:00"', "90", "1d", "yes", "off", "true", "auto", "[1, 2]", "[]", "[[1]]", "[null]", "{}"),
    *(
        "{a: 1}",
        "{where: x}",
        "- 1",
        "a: b",
        "'x'",
        '"',
        "'",
        "|",
        ">",
        "&x 1",
        "*x",
        "<<: *x",
        "!!set {}",
        "? x",
        "%",
        "@",
    ),
    *(
        "#",
        "\t",
        "$(touch pwned)",
        "`touch pwned`",
        "a b",
        "-rf",
        "../x",
        "/",
        "ünï-日本",
        "\\n",
        "x" * 300,
        "\x00",
        "\ud7ff",
    ),
    *(
        "cpu_cores",
        "cpu_cores > ",
        "1/0",
        "10**9",
        "9**9**9",
        "[1] * 10**9",
        "workers.x",
        "().__class__",
        "min()",
        "lambda: 1",
    ),
]

# 300 in all; always the same ones, so that a change of ours and not chance decides whether this passes
changes_at_random = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


def _a_line(draw: Callable[..., int], lines: list[str]) -> int:
    return draw(st.integers(0, max(0, len(lines) - 1)))


@st.composite
def changed(draw: Callable[..., object], texts: dict[str, str]) -> str:
    """A shipped file after one to three changes such as a person's slip, a merge or a bad disk may make."""
    lines: list[str] = draw(st.sampled_from(sorted(texts.items())))[1].splitlines()
    lines = [line for line in lines if not line.startswith("#")]
    for _ in range(draw(st.integers(1, 3))):
        number, kind = _a_line(draw, lines), draw(st.sampled_from(sorted(CHANGES)))
        line = lines[number] if lines else ""
        lines[number : number + 1] = CHANGES[kind](draw, line, lines)
    text = "\n".join(lines) + "\n"
    return text[: draw(st.integers(0, len(text)))] if draw(st.integers(0, 9)) == 0 else text


def _another_value(draw: Callable[..., str], line: str, _lines: list[str]) -> list[str]:
    return [re.sub(r"(?<=: ).*|(?<=- ).*", lambda _: draw(st.sampled_from(VALUES)), line, count=1)]


def _another_word(draw: Callable[..., object], line: str, _lines: list[str]) -> list[str]:
    found = list(re.finditer(r"[\w.]+", line))
    if not found:
        return [draw(st.sampled_from(WORDS))]
    match = draw(st.sampled_from(found))
    word = draw(st.sampled_from([*WORDS, *VALUES, match[0][1:], match[0] + "s"]))
    return [line[: match.start()] + word + line[match.end() :]]


def _another_character(draw: Callable[..., object], line: str, _lines: list[str]) -> list[str]:
    place = draw(st.integers(0, len(line)))
    return [line[:place] + draw(st.characters(codec="utf-8")) + line[place + draw(st.integers(0, 1)) :]]


CHANGES = {
    "delete": lambda draw, line, lines: [],
    "repeat": lambda draw, line, lines: [line, line],
    "indent": lambda draw, line, lines: [" " * draw(st.integers(1, 3)) + line],
    "dedent": lambda draw, line, lines: [line[draw(st.integers(1, 3)) :]],
    "bring": lambda draw, line, lines: [line, lines[_a_line(draw, lines)] if lines else ""],
    "value": _another_value,
    "word": _another_word,
    "character": _another_character,
}


def first_job(campaign: Campaign, cluster: Cluster, directory: Path) -> str:
    """The script of the campaign's first run."""
    task = campaign.tasks[0]
    point = campaign.points[task.point_id]
    spec = RunSpec(
        campaign=campaign.name,
        point_id=task.point_id,
        repeat=task.repeat,
        attempt=1,
        axes=point.axes,
        placement=point.placement,
        harness_version="0",
    )
    return render_job(cluster, spec, directory, PROJECT)


def shell_errors(script: str) -> str:
    """What a shell that only reads the script complains of."""
    return subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False).stderr


def told_in_words(error: UserError, *files: str) -> None:
    """What it says of a file names the file; of several problems each has a line of its own."""
    assert error.exit_code == 2
    assert str(error).strip()
    if isinstance(error, ConfigError):
        assert all(problem.file in files for problem in error.problems)
        assert len(str(error).split("\n")) == len(error.problems)


def planned(sweep: Sweep) -> tuple[Campaign, Cluster] | None:
    """The sweep on the cluster that its file names, else on one of many GPUs; None where it is refused."""
    try:
        cluster = load_cluster(sweep.cluster or "dell-c4140", PROJECT)
        return plan(sweep, cluster, now_unix_s=0.0), cluster
    except UserError as error:
        told_in_words(error, "s.yml", sweep.cluster or "")
        return None


@changes_at_random
@given(changed(SWEEPS))
def test_a_changed_sweep_runs_or_is_refused_in_words(text: str) -> None:
    try:
        sweep = parse_sweep(text, "s.yml")
        variants = [sweep, *(scaled(sweep, name) for name in sweep.scales)]
    except UserError as error:
        told_in_words(error, "s.yml")
        return
    for campaign, cluster in filter(None, map(planned, variants)):
        assert shell_errors(first_job(campaign, cluster, Path("/results") / campaign.name / "runs")) == ""


@changes_at_random
@given(changed(CLUSTERS))
def test_a_changed_cluster_plans_or_is_refused_in_words(text: str) -> None:
    sweep = load_sweep(PROJECT / "configs/sweeps/replay.yml")
    try:
        cluster = parse_cluster(text, PROJECT, "c.yml")
        script = first_job(plan(sweep, cluster, now_unix_s=0.0), cluster, Path("/results/runs"))
    except UserError as error:
        told_in_words(error, "c.yml")
        return
    assert shell_errors(script) == ""
