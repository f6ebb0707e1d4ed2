"""Commands run in the environment that jobs get: the site's own body, containers, commands that hang."""

from __future__ import annotations

from pathlib import Path

import pytest
from health_support import interpreter, patient, program

from harness.cli.health import inside
from harness.jobs.render import render_environment
from harness.jobs.schedulers.interface import Answer
from harness.jobs.survey.ask import NoAnswer, ask_any, recognise


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('{% extends "body.sh.j2" %}{% block environment %}first\n{{ super() }}last\n{% endblock %}', "first\n"),
        ('{% extends "body.sh.j2" %}{% block launch %}other{% endblock %}', ""),
    ],
)
def test_a_sites_own_body_sets_the_environment(tmp_path: Path, body: str, expected: str) -> None:
    plain = render_environment(patient(tmp_path, python="/opt/py/bin/python").cluster, tmp_path)
    assert "export PATH=/opt/py/bin" in plain
    (tmp_path / "jobscripts").mkdir()
    (tmp_path / "jobscripts" / "own.j2").write_text(body)
    own = patient(tmp_path, python="/opt/py/bin/python", body_template="own.j2").cluster
    text = render_environment(own, tmp_path)
    assert text == (f"{expected}{plain}last\n" if expected else plain)


def test_a_container_wraps_the_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter(tmp_path / "python3", {"storage /data it's": {"said": "inside"}})
    # stands in for apptainer exec --bind A --bind B IMAGE COMMAND…
    skip = 'while [ "$1" != image.sif ]; do shift; done; shift'
    program(tmp_path / "apptainer", f'echo "$*" >{tmp_path}/words; {skip}; "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    there = patient(tmp_path, python="python3", container={"runtime": "apptainer", "image": "image.sif"})
    told = inside.probe(there, ["storage", "/data it's"])
    assert told.records == [{"said": "inside"}]
    words = (tmp_path / "words").read_text()
    assert words.startswith("exec --bind ")
    assert "--bind /data it's image.sif env PYTHONPATH=" in words


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    python = interpreter(tmp_path / "python", {"interpreter": "sleep 300"})
    told = inside.probe(patient(tmp_path, python=str(python)), ["interpreter"], timeout_s=1)
    assert told.records == []
    assert told.trouble == "no answer in time"


def test_answers_are_found_among_other_output() -> None:
    text = 'warning: x\nprefix harness-probe:{"a":1}\nharness-probe:{"a":\nharness-probe:{"b":2}\n'
    assert inside.records(text) == [{"a": 1}, {"b": 2}]


# which scheduler


def test_schedulers_are_recognised_by_all_their_commands() -> None:
    both = {"sbatch", "squeue", "scancel", "scontrol", "sinfo", "qsub", "qstat", "qdel"}
    assert recognise(lambda name: name if name in both else None) == ["slurm", "pbs"]
    assert recognise(lambda name: name if name in both - {"sinfo"} else None) == ["pbs"]
    assert recognise(lambda name: None) == []


def test_the_first_scheduler_that_answers_counts() -> None:
    def run(argv: list[str]) -> Answer:
        if argv[0] == "scontrol":
            return Answer(1, "", "trace\nUnable to contact slurm controller\n")
        return Answer(0, "Server: head\n    pbs_version = 23.06.06\n" if "-B" in argv else "", "")

    site = ask_any(["slurm", "pbs"], run)
    assert site is not None
    assert (site.scheduler, site.name) == ("pbs", "head")
    with pytest.raises(NoAnswer, match="scontrol show node -o returned 1: Unable to contact slurm controller"):
        ask_any(["slurm"], run)
    with pytest.raises(NoAnswer, match="did not answer in time"):
        ask_any(["pbs"], lambda argv: Answer(None, "", ""))
    assert ask_any([], run) is None
