"""What ``harness submit`` hands to the harness in the background is what it was asked for."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from harness.cli.background import arguments
from harness.cli.campaign_options import handle
from harness.cli.campaign_run import Wishes
from harness.cli.options import SweepChoice
from harness.cli.run import run
from harness.jobs.modes import How
from harness.layout import CampaignLayout


def test_every_option_is_handed_on() -> None:
    choice = SweepChoice(
        sweep=Path("-a b.yml"),
        cluster="c",
        queue="q",
        campaign="-n",
        overrides=("workers=1", "repeats=2"),
        only="workers > 1",
        results=Path("/r"),
        project_root=Path("/p"),
        scale="smoke",
        ladder=True,
    )
    words = arguments(choice, Wishes(fresh=True, how=How("pack", 3, 4, 5.0), retries=6))
    assert words[0] == "run"
    given, left, _ = run.make_parser(click.Context(run)).parse_args(words[1:])
    assert not left
    asked = {
        "sweep": "-a b.yml",
        "cluster": "c",
        "queue": "q",
        "campaign": "-n",
        "overrides": ["workers=1", "repeats=2"],
        "only": "workers > 1",
        "results": "/r",
        "scale": "smoke",
        "ladder": True,
        "fresh": True,
        "mode": "pack",
        "jobs": "3",
        "max_queued": "4",
        "rate": "5.0",
        "retries": "6",
    }
    assert {name: given[name] for name in asked} == asked
    # what the sweep options can say, and what the background is told, cannot drift apart unseen
    assert {field for field in SweepChoice.__dataclass_fields__ if field != "project_root"} <= set(asked)


def test_what_names_a_campaign_in_a_command_is_no_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = {name: handle(CampaignLayout(tmp_path / "results" / name)) for name in ("a", "a b", "-x")}
    assert names == {"a": "a", "a b": "'a b'", "-x": f"{tmp_path}/results/-x"}
