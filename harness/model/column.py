"""A column of a derived table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "int", "float", "bool"]


@dataclass(frozen=True)
class Column:
    """One column. ``higher_is_better`` None: no direction. ``must_match``: runs that differ in it are never merged."""

    name: str
    kind: Kind
    unit: str
    meaning: str
    higher_is_better: bool | None = None
    must_match: bool = False
