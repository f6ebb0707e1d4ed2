"""Every command line that the documentation, the help texts or a message shows is one that the program takes."""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from harness.cli.main import VERBS
from harness.config.cluster_file import parse_cluster
from harness.config.sweep_file import parse_sweep
from harness.plan.plan import plan

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "jobscripts/*.md", "results/*.md", "configs/*/*.yml", "harness/**/*.py")
    for path in ROOT.glob(pattern)
)
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
HELP = re.compile(r'^EPILOG\w* = """\\b\n(.*?)"""|^\w+_EPILOG = """\\b\n(.*?)"""', re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`harness ([a-z][^`]*)`")
LINE = re.compile(r"^\s*(?:\$ )?harness\s+([a-z].*)$", re.MULTILINE)


def command_of(verb: str) -> click.Command | None:
    if verb not in VERBS:
        return None
    module, _, attribute = VERBS[verb][0].partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command


def whole_lines(text: str) -> Iterator[list[str]]:
    """The command lines of a block, each as words: what a shell joins is taken apart, and remarks are left out."""
    for line in LINE.findall(text):
        for part in re.split(r" && | \|\| | \| ", f"harness {line}"):
            words = shlex.split(re.split(r" > | &$", part)[0], comments=True)
            if words[0] == "harness":
                yield words[1:]


def shown() -> Iterator[tuple[str, list[str]]]:
    """(file, words after ``harness``) of every command line that stands whole in a block of a page or of a help."""
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        blocks = FENCED.findall(text) if path.suffix == ".md" else ["".join(found) for found in HELP.findall(text)]
        for block in blocks:
            for words in whole_lines(block):
                yield str(path.relative_to(ROOT)), words


def mentioned() -> Iterator[tuple[str, list[str]]]:
    """(file, words) of every command between backticks; it may stand without its arguments, or with made-up ones."""
    for path in PAGES:
        for text in INLINE.findall(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT)), re.sub(r"\{[^}]*\}", "X", text).split()


def the_command(words: list[str]) -> tuple[list[click.Command], list[str]]:
    """The commands meant (several: ``data make|fetch``) and the words after their names."""
    command = command_of(words[0])
    assert command is not None, f"no verb {words[0]!r}"
    if not isinstance(command, click.Group) or len(words) < 2 or words[1].startswith("-"):
        return [command], words[1:]
    found = [command.commands[name] for name in words[1].split("|")]
    return found, words[2:]


WHOLE = {f"{file}: {' '.join(words)}": words for file, words in shown()}
PARTS = {f"{file}: {' '.join(words)}": words for file, words in mentioned()}


def test_there_are_such_lines() -> None:
    assert len(WHOLE) > 80 and len(PARTS) > 60


@pytest.mark.parametrize("words", WHOLE.values(), ids=WHOLE)
def test_a_whole_line_is_taken(words: list[str]) -> None:
    [command], rest = the_command(words)
    context = click.Context(command)
    given, left, _ = command.make_parser(context).parse_args(list(rest))
    assert not left
    for parameter in command.params:
        value = given.get(parameter.name or "")
        if isinstance(value, str | list | tuple):  # else it was not given, or is a flag
            parameter.type_cast_value(context, value)


@pytest.mark.parametrize("words", PARTS.values(), ids=PARTS)
def test_a_mentioned_command_and_its_options_are_there(words: list[str]) -> None:
    for command in the_command(words)[0]:
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        options = {word.partition("=")[0] for word in words if re.match(r"-{1,2}[a-z]", word)}
        assert options <= known | {"--help"}, f"{command.name} has no {options - known}"


def test_the_readmes_sweep_plans() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    node = "{cores_per_socket: 8, memory: 16gb}"
    cluster = parse_cluster(f"name: c\nscheduler: slurm\nnode: {node}\nstorage: {{hpctmp: {{path: /data}}}}\n", ROOT)
    campaign = plan(parse_sweep(text), cluster, now_unix_s=0.0)
    assert (len(campaign.points), campaign.excluded, campaign.repeats) == (7, 1, 3)
    assert not campaign.refusals
