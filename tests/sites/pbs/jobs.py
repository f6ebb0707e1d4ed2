"""Jobs as the server holds them: a job has one unit, an array one for each index; a unit is what runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sites.pbs.options import Request
from sites.pbs.resources import Needs, Node
from sites.pbs.words import SERVER

# substates, as qstat -f shows them
QUEUED, HELD, WAITING, RUNNING, BEGUN, TERMINATED, FINISHED, FAILED = 10, 22, 30, 42, 70, 91, 92, 93


@dataclass
class Unit:
    """One execution. ``exit_status`` stays None where the job never ran."""

    index: int | None
    state: str = "Q"
    substate: int = QUEUED
    nodes: list[Node] = field(default_factory=list)
    session_id: int | None = None
    began_s: float | None = None
    ended_s: float | None = None
    changed_s: float = field(default_factory=time.time)
    exit_status: int | None = None
    staged: bool = True
    killed_for: str = ""
    comment: str = ""
    run_count: int = 0

    def become(self, state: str, substate: int) -> None:
        self.state, self.substate, self.changed_s = state, substate, time.time()

    @property
    def ended(self) -> bool:
        return self.state == "F"


@dataclass
class Job:
    """A submission. ``request`` is merged from command line and directives."""

    number: int
    name: str
    user: str
    home: str
    cwd: str
    queue: str
    request: Request
    needs: Needs
    script: str
    variables: Mapping[str, str]
    arguments: str
    units: dict[int | None, Unit]
    throttle: int | None = None
    held: bool = False
    created_s: float = field(default_factory=time.time)
    forgotten: bool = False

    @property
    def is_array(self) -> bool:
        return None not in self.units

    @property
    def id(self) -> str:
        return f"{self.number}{'[]' if self.is_array else ''}.{SERVER}"

    def unit_id(self, unit: Unit) -> str:
        return self.id if unit.index is None else f"{self.number}[{unit.index}].{SERVER}"

    @property
    def ended(self) -> bool:
        return all(unit.ended for unit in self.units.values())

    @property
    def state(self) -> str:
        """The state letter of the job as a whole; B is an array of which something has begun."""
        if not self.is_array:
            return self.units[None].state
        if self.ended:
            return "F"
        if any(unit.state != "Q" for unit in self.units.values()):
            return "B"
        return "H" if self.held else "Q"

    @property
    def active(self) -> int:
        """Units that count against limits on queued jobs."""
        return sum(not unit.ended for unit in self.units.values())

    @property
    def waiting(self) -> Iterator[Unit]:
        return (unit for unit in self.units.values() if unit.state == "Q")

    def output(self, kind: str, unit: Unit | None = None) -> str:
        """Destination of stdout (``o``) or stderr (``e``): given with -o/-e, else NAME.oN in the submit directory."""
        given = self.request.values.get(kind)
        host, _, path = given.rpartition(":") if given else ("", "", "")
        index = "" if not self.is_array else "^array_index^" if unit is None else str(unit.index)
        if path:
            full = path if path.startswith("/") else f"{self.cwd}/{path}"
            return f"{host or 'localhost'}:{full.replace('^array_index^', index)}"
        suffix = f".{index}" if self.is_array else ""
        return f"{SERVER}:{self.cwd}/{self.name}.{kind}{self.number}{suffix}"

    def output_file(self, kind: str, unit: Unit) -> Path:
        path = self.output(kind, unit).partition(":")[2]
        if path.endswith("/") or Path(path).is_dir():
            return Path(path) / f"{self.unit_id(unit)}.{'OU' if kind == 'o' else 'ER'}"
        return Path(path)
