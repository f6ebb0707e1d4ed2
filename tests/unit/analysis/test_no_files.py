"""What is no file where evidence should lie, and names that are no text: told as what they are, never waited for."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from evidence_support import FakeCampaign, FakeRun

from harness.analysis.collect import collect, collect_rows
from harness.cli.main import cli
from harness.errors import ConfigError, UserError
from harness.files import open_file, read_file, read_json_lines
from harness.layout import AttemptLayout
from harness.model.axes import Axes
from harness.model.cluster import Cluster, NodeType
from harness.model.evidence import gather

# a reader of a FIFO waits for ever
pytestmark = pytest.mark.timeout(120)
DURATIONS = [1.0] + [0.2] * 40


def campaign_in(root: Path) -> tuple[FakeCampaign, AttemptLayout]:
    """Two runs; the one whose layout comes with it has two cores."""
    campaign = FakeCampaign(root)
    layout = campaign.add(Axes(workload="replay", framework="none", cpu_cores=2, steps_timed=40), FakeRun([DURATIONS]))
    campaign.add(Axes(workload="replay", framework="none", steps_timed=40), FakeRun([DURATIONS]))
    campaign.save()
    cluster = Cluster(name="local", scheduler="local", node=NodeType(cores_per_socket=2), storage={})
    campaign.layout.cluster.write_text(cluster.model_dump_json())
    return campaign, layout


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as stream:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path may have 107 bytes
        try:
            stream.bind(path.name)
        finally:
            os.chdir(here)


MAKERS: dict[str, Callable[[Path], None]] = {
    "a FIFO (named pipe)": lambda path: os.mkfifo(path),
    "a socket": make_socket,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.fixture(params=MAKERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def put(kind: str, path: Path) -> str:
    """Put what is no file in the place of one; returns what is said of it."""
    path.unlink(missing_ok=True)
    MAKERS[kind](path)
    return f"is {kind} and no file; move it away"


def test_what_is_no_file_is_refused_by_what_it_is(kind: str, tmp_path: Path) -> None:
    said = put(kind, path := tmp_path / "x")
    for read in (open_file, read_file, lambda path: list(read_json_lines(path))):
        with pytest.raises(OSError, match=kind.partition(" (")[0]) as caught:
            read(path)
        assert (caught.value.strerror, caught.value.filename) == (said, str(path))


@pytest.mark.parametrize("name", ["point.json", "exit.json", "events.r0.jsonl", "samples.n1.jsonl"])
def test_evidence_that_is_no_file_costs_no_other_run(kind: str, name: str, tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    said = put(kind, layout.root / name)
    rows = collect(campaign.layout).set_index("cpu_cores")
    assert rows.loc[1, "images_per_s"] == pytest.approx(160.0)
    assert f"{name}: {said}" in rows.loc[2, "findings"]
    assert rows.loc[2, "state"] == {"events.r0.jsonl": "FAILED", "samples.n1.jsonl": "SUCCEEDED"}.get(name, "LOST")
    # the login side judges alike
    assert gather(layout, 1).run_ends == ((None,) if name in ("exit.json", "events.r0.jsonl") else (True,))


def test_derived_tables_that_are_no_files_are_made_anew(kind: str, tmp_path: Path) -> None:
    campaign, _ = campaign_in(tmp_path)
    layout = campaign.layout
    collect(layout)
    for path in (layout.collected, layout.runs_csv, layout.runs_parquet, layout.steps_parquet):
        put(kind, path)
    assert len(collect(layout)) == 2
    assert all(path.is_file() for path in (layout.collected, layout.runs_csv, layout.runs_parquet))


VERBS = ("status", "wait", "cancel", "retry", "resume", "collect", "table", "plot", "report", "recommend", "stalls")


@pytest.mark.parametrize("verb", [*VERBS, "compare", "check"])
@pytest.mark.parametrize("name", ["campaign.json", "ledger.jsonl", "cluster.json"])
def test_every_verb_names_what_is_no_file(verb: str, name: str, tmp_path: Path) -> None:
    campaign, _ = campaign_in(tmp_path)
    said = put("a FIFO (named pipe)", campaign.layout.root / name)
    words = [verb, campaign.name, *([campaign.name] if verb == "compare" else []), "--results", str(tmp_path)]
    done = CliRunner().invoke(cli, words)
    if name == "cluster.json" and verb not in ("wait", "cancel", "retry", "resume"):
        assert not isinstance(done.exception, OSError), done.output
        return  # not needed to look
    assert done.exit_code != 0
    error = str(done.exception) + done.output
    assert said in error and str(campaign.layout.root / name) in error


def test_sweeps_clusters_and_logs_that_are_no_files(kind: str, tmp_path: Path) -> None:
    said = put(kind, path := tmp_path / "x.yml")
    sweep = tmp_path / "sweep.yml"
    sweep.write_text("name: s\nbase: {workload: replay}\n")
    for words in (["plan", str(path)], ["plan", str(sweep), "--cluster", str(path)]):
        done = CliRunner().invoke(cli, words)
        assert isinstance(done.exception, ConfigError) and str(done.exception).startswith(f"{path}: cannot be read")
        assert said in str(done.exception)
    for words in (["--logs", str(path), "--pattern", "keras"], ["--logs", str(sweep), "--pattern", str(path)]):
        done = CliRunner().invoke(cli, ["collect", *words])
        assert isinstance(done.exception, UserError)
        assert str(done.exception).startswith(f"{path}: {said}"), str(done.exception)


def test_what_a_shell_hands_over_is_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        os.write(writer, b"name: s\nbase: {workload: replay}\n")
        os.close(writer)
        done = CliRunner().invoke(cli, ["plan", f"/dev/fd/{reader}", "--json"])
    finally:
        os.close(reader)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["sweep"] == "s"


@pytest.mark.parametrize("name", [b"caf\xe9", b"\xff\xfe"])
def test_a_directory_whose_name_is_no_text_costs_no_other_run(name: bytes, tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    for place in (campaign.layout.runs, layout.root.parent):
        (place / os.fsdecode(name) / "r0a1").mkdir(parents=True)
    damage: list[str] = []
    for _ in range(2):  # it is told each time
        damage.clear()
        assert collect_rows(campaign.layout, damage=damage)["state"].to_pylist() == ["SUCCEEDED"] * 2
        shown = name.decode(errors="backslashreplace")
        tail = "the name is no UTF-8 text; rename it: what lies there is left out"
        assert sorted(damage) == sorted(
            f"{place}/{shown}: {tail}" for place in (campaign.layout.runs, layout.root.parent)
        )


def test_evidence_whose_name_is_no_text_is_a_problem_of_its_run(tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    (layout.root / os.fsdecode(b"samples.\xff.jsonl")).touch()
    rows = collect(campaign.layout).set_index("cpu_cores")
    assert rows.loc[2, "images_per_s"] == pytest.approx(160.0)
    assert "samples.\\\\xff.jsonl: the name is no UTF-8 text" in rows.loc[2, "findings"]


def test_a_link_in_a_circle_costs_no_other_run(tmp_path: Path) -> None:
    campaign, layout = campaign_in(tmp_path)
    for place in (campaign.layout.runs, layout.root.parent, layout.root):
        (place / "samples.n9.jsonl").symlink_to("samples.n9.jsonl")
    rows = collect(campaign.layout).set_index("cpu_cores")
    assert rows.loc[1, "images_per_s"] == rows.loc[2, "images_per_s"] == pytest.approx(160.0)
