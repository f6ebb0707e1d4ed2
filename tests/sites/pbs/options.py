"""Reading qsub's command line and a script's ``#PBS`` directives, with the refusals that qsub itself makes."""

from __future__ import annotations

import getopt
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sites.pbs.words import USAGE, Rejected

LETTERS = "a:A:c:C:e:fhIj:J:k:l:m:M:N:o:p:P:q:r:R:S:u:v:VW:Xz"
MAX_NAME = 230
NAME = re.compile(r"[A-Za-z0-9_.+-]+")
RANGE = re.compile(r"(\d+)-(\d+)(?::(\d+))?(?:%(\d+))?")
TORQUE_INDICES = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*(%\d+)?")
CHOICES = {"j": ("oe", "eo", "n"), "r": ("y", "n"), "R": ("o", "e", "oe", "eo")}
JOB_ID = r"\d+(\[\])?(\.\w+)?"
DEPEND = re.compile(rf"(after|afterok|afternotok|afterany):{JOB_ID}(:{JOB_ID})*")


@dataclass
class Request:
    """A submission as understood: single-letter options, resources by name, the script and its name."""

    values: dict[str, str] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    operands: list[str] = field(default_factory=list)

    def add_missing(self, other: Request) -> None:
        """Take from ``other`` (directives) what is not given here (command line): option by option."""
        for mine, theirs in (
            (self.values, other.values),
            (self.resources, other.resources),
            (self.attributes, other.attributes),
        ):
            for name, value in theirs.items():
                mine.setdefault(name, value)


def from_command_line(argv: Sequence[str], letters: str = LETTERS) -> Request:
    words, command = list(argv), []
    if "--" in words:
        at = words.index("--")
        words, command = words[:at], words[at + 1 :]
    try:
        options, operands = getopt.gnu_getopt(words, letters)
    except getopt.GetoptError as error:
        raise Rejected(f"invalid option -- '{error.opt}'\n{USAGE}", 2) from None
    request = Request(operands=["--", *command] if command else operands)
    for option, value in options:
        try:
            _take(request, option[1:], value)
        except ValueError as error:
            raise Rejected(f"{error}\n{'' if 'too long' in str(error) else USAGE}", 2) from None
    return request


def from_script(text: str, letters: str = LETTERS) -> Request:
    """The directives of a script: up to its first command, each line parsed as a command line of its own."""
    if "\r\n" in text:
        raise Rejected("script contains cr, lf\n", 1)
    request = Request()
    for line in text.split("\n"):
        if line.startswith("#PBS"):
            _directive(request, line[len("#PBS") :].strip(), letters)
        elif line.strip() and not line.lstrip().startswith(("#", ":")):
            break
    return request


def _directive(request: Request, text: str, letters: str) -> None:
    try:
        options, operands = getopt.gnu_getopt(shlex.split(text), letters)
        if ("-X", "") in options:
            raise Rejected(f"DISPLAY not set\nqsub: directive error: {text} \n", 1)
        if operands or not options:
            raise ValueError(text)
        for option, value in options:
            _take(request, option[1:], value)
    except (ValueError, getopt.GetoptError):
        raise Rejected(f"directive error: {text} \n", 1) from None


def _take(request: Request, letter: str, value: str) -> None:
    """Record one option; ValueError says what qsub says of a value that it refuses itself."""
    if letter == "N" and len(value) > MAX_NAME:
        raise ValueError("Job name is too long ")
    valid = {
        "N": lambda: NAME.fullmatch(value) is not None,
        "J": lambda: _valid_range(value),
        "W": lambda: _valid_attributes(value),
        "t": lambda: TORQUE_INDICES.fullmatch(value) is not None,
    }
    if letter in CHOICES and value not in CHOICES[letter] or letter in valid and not valid[letter]():
        raise ValueError(f"illegal -{letter} value")
    if letter == "l":
        request.resources.update(_resources(value))
    elif letter == "W":
        request.attributes.update(_attributes(value))
    else:
        request.values[letter] = value


def _resources(text: str) -> dict[str, str]:
    """``a=1,b=2``: a word without ``=`` is a resource without value, which no resource is."""
    found = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        found[name.strip()] = value
    return found


def _attributes(text: str) -> dict[str, str]:
    return {item.partition("=")[0]: item.partition("=")[2] for item in text.split(",")}


def _valid_range(text: str) -> bool:
    match = RANGE.fullmatch(text)
    return match is not None and int(match[1]) < int(match[2])


def _valid_attributes(text: str) -> bool:
    depend = _attributes(text).get("depend")
    return depend is None or DEPEND.fullmatch(depend) is not None


def variables(text: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The ``-v`` list: split at commas, quotes group and are taken away, a bare name is copied from the environment."""
    found = {}
    for item in _split_quoted(text):
        name, equals, value = item.partition("=")
        if not equals:
            if name not in environment:
                raise Rejected("cannot send environment with the job\n", 1)
            value = environment[name]
        found[name] = value
    return found


def _split_quoted(text: str) -> list[str]:
    items, word, quote, escaped = [], "", "", False
    for letter in text:
        if escaped:
            word += letter if letter == "," else "\\\\" + letter
            escaped = False
        elif letter == "\\":
            escaped = True
        elif quote:
            quote, word = ("", word) if letter == quote else (quote, word + letter)
        elif letter in "\"'":
            quote = letter
        elif letter == ",":
            items.append(word)
            word = ""
        else:
            word += letter
    if quote:
        raise Rejected("cannot send environment with the job\n", 1)
    return [*items, word]
