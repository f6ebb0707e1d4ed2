"""Pattern files: regular expressions with named groups that say what a program's log lines mean."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UserError, nearest

SHIPPED = Path(__file__).parent / "patterns"
#: Groups with a meaning; any other group of a ``configuration`` expression is a column of its own.
MEASURED = ("images_per_s", "step_s", "epoch_s", "steps", "step", "epoch", "images", "deviation", "loss", "val_loss")
SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0, "h": 3600.0, "images/s": 1.0}


def _compiles(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Regex = Annotated[str, AfterValidator(_compiles)]


class Pattern(BaseModel):
    """One program's log.

    ``steps`` match a line for each step (or for each few steps, or epoch), ``summary`` the line in which the program
    states its own result, ``configuration`` what it was told to do. A group ``X_unit`` beside a group ``X`` holds the
    unit as printed; otherwise ``units`` has it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    description: str
    source: str = Field("", description="where the format is defined")
    configuration: list[Regex] = Field(default_factory=list)
    steps: list[Regex] = Field(default_factory=list)
    summary: list[Regex] = Field(default_factory=list)
    units: dict[str, str] = Field(default_factory=dict)
    per_rank: bool = Field(False, description="rates of steps are those of one rank")
    batch_per_rank: bool = Field(True, description="batch_size is that of one rank")
    running_mean: bool = Field(False, description="each step line gives the mean since the first step")
    once_after: Regex | None = Field(None, description="of the step lines after such a line only the first counts")

    @cached_property
    def once(self) -> re.Pattern[str] | None:
        """``once_after``, compiled."""
        return None if self.once_after is None else re.compile(self.once_after)

    @cached_property
    def expressions(self) -> dict[str, list[re.Pattern[str]]]:
        """The compiled expressions by the part of the pattern they stand in."""
        parts = {"configuration": self.configuration, "steps": self.steps, "summary": self.summary}
        return {part: [re.compile(text) for text in texts] for part, texts in parts.items()}


def shipped() -> list[str]:
    """Names of the patterns that come with the program."""
    return sorted(path.stem for path in SHIPPED.glob("*.yml"))


def load(name: str) -> Pattern:
    """A shipped pattern by its name, or a pattern file by its path.

    Raises:
        UserError: for a name that is neither, and for a file that is not a pattern.
    """
    path = SHIPPED / f"{name}.yml" if name in shipped() else Path(name)
    try:
        raw: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"no pattern {name!r} and no such file; {nearest(name, shipped())}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: cannot be read as YAML: {' '.join(str(error).split())}") from None
    try:
        pattern = Pattern.model_validate(raw)
    except ValidationError as error:
        told = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors())
        raise UserError(f"{path}: {told}; fields are {', '.join(Pattern.model_fields)}") from None
    _check_groups(pattern, path)
    return pattern


def _check_groups(pattern: Pattern, path: Path) -> None:
    for part in ("steps", "summary"):
        for expression in pattern.expressions[part]:
            groups = set(expression.groupindex)
            if not groups & {"images_per_s", "step_s", "epoch_s"}:
                raise UserError(
                    f"{path}: {part}: {expression.pattern!r} has no group images_per_s, step_s or epoch_s; "
                    "write it as (?P<images_per_s>…)"
                )
            unknown = sorted(g for g in groups if g.removesuffix("_unit") not in MEASURED)
            if unknown:
                raise UserError(f"{path}: {part}: unknown group {unknown[0]!r}; {nearest(unknown[0], MEASURED)}")
    for group, unit in pattern.units.items():
        if unit not in SCALES:
            raise UserError(f"{path}: units: {group}: unknown unit {unit!r}; valid: {', '.join(SCALES)}")
