"""Opens a campaign's directory: its description and the attempts made, with the state of each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness.analysis.lines import line_blocks, records_of
from harness.errors import UserError, nearest
from harness.files import as_text, is_text, read_file
from harness.layout import SHARD_DIGITS, AttemptLayout, CampaignLayout
from harness.model import evidence, ledger
from harness.model.campaign import Campaign
from harness.model.campaign_file import parse_campaign
from harness.model.group import Group
from harness.model.job import JobState, RunSpec, advance
from harness.model.names import NUMBER_DIGITS

_ATTEMPT_NAME = re.compile(f"r([0-9]{{1,{NUMBER_DIGITS}}})a([0-9]{{1,{NUMBER_DIGITS}}})")


@dataclass(frozen=True)
class Attempt:
    """One try at one repeat of one point: where its evidence lies and what the ledger says."""

    point_id: str
    repeat: int
    attempt: int
    layout: AttemptLayout
    status: ledger.AttemptStatus | None


def load_campaign(layout: CampaignLayout) -> Campaign:
    """The campaign's description.

    Raises:
        UserError: where there is no campaign, or its description cannot be read.
    """
    try:
        return parse_campaign(read_file(layout.meta))
    except FileNotFoundError:
        raise UserError(f"{layout.root}: no campaign here (no {layout.meta.name}); {_others(layout.root)}") from None
    except OSError as error:
        raise UserError(f"{layout.meta}: {error.strerror}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(
            f"{layout.meta}: not a campaign description ({where}: {first['msg']}); "
            "move the directory away and run the sweep again"
        ) from None


def _others(root: Path) -> str:
    names = campaign_names(root.parent)
    return nearest(root.name, names) if names else "start one with `harness run SWEEP.yml`"


def campaign_names(results: Path) -> list[str]:
    """Names of the campaigns in a results directory."""
    return sorted(path.parent.name for path in results.glob("*/campaign.json")) if results.is_dir() else []


def attempts(layout: CampaignLayout, damage: list[str] | None = None) -> list[Attempt]:
    """Every attempt that has a directory or a line in the ledger, sorted by point, repeat, attempt.

    Args:
        damage: where given, what could not be read and was left out is added to it, a sentence each.

    Raises:
        OSError: where there is a ledger that cannot be read.
    """
    told: list[str] = [] if damage is None else damage
    lines: list[int] = []
    statuses = ledger.fold(_ledger_records(layout.ledger), lines)
    if lines:
        told.append(ledger.damage_text(layout.ledger, lines, ledger.NOT_SHOWN))
    roots = {key: AttemptLayout(Path(path)) for key, path in _attempt_directories(str(layout.runs), told)}
    missing = [key for key in statuses if key not in roots]
    roots |= {key: layout.attempt(*key) for key in missing}
    return [Attempt(*key, roots[key], statuses.get(key)) for key in sorted(roots)]


def _ledger_records(path: Path) -> Iterator[Mapping[str, Any] | None]:
    """The record of each line, None where it holds none; of an empty line, one that says nothing."""
    for lines in line_blocks(path):
        for line, record in zip(lines, records_of(lines), strict=True):
            yield record if record is not None or line.strip() else ledger.NOTE


def _attempt_directories(runs: str, damage: list[str]) -> Iterator[tuple[ledger.AttemptKey, str]]:
    """Directories of attempts: in those of their points, and these in shards where the campaign has such."""
    for name, path in _directories(runs, damage):
        points = _directories(path, damage) if len(name) == SHARD_DIGITS else [(name, path)]
        for point_id, point in points:
            for attempt, root in _directories(point, damage):
                if match := _ATTEMPT_NAME.fullmatch(attempt):
                    yield ledger.AttemptKey(point_id, int(match[1]), int(match[2])), root


def _directories(path: str, damage: list[str]) -> list[tuple[str, str]]:
    """(name, path) of each directory in another; none in one that cannot be listed, which is told as damage."""
    try:
        with os.scandir(path) as entries:
            found = [(entry.name, entry.path) for entry in entries if _is_directory(entry)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        damage.append(f"{path}: {error.strerror}; attempts there that the ledger does not name are left out")
        return []
    for name, one in found:
        if not is_text(name):
            damage.append(f"{as_text(one)}: the name is no UTF-8 text; rename it: what lies there is left out")
    return [(name, one) for name, one in found if is_text(name)]


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a symbolic link in a circle
        return False


def extra_canaries(layout: CampaignLayout, campaign: Campaign) -> frozenset[tuple[str, int]]:
    """(point, repeat) of the canary runs that packs added to what the sweep asks for. An unreadable group adds none."""
    tasks = {(task.point_id, task.repeat) for task in campaign.tasks}
    found: set[tuple[str, int]] = set()
    for path in sorted(layout.groups.glob("*/group.json")):
        try:
            group = Group.model_validate_json(read_file(path))
        except (OSError, ValidationError):
            continue
        found |= {(key.point_id, key.repeat) for key in group.canaries}
    return frozenset(found - tasks)


def state_of(attempt: Attempt, spec: RunSpec | None, gathered: evidence.Evidence | None = None) -> tuple[JobState, str]:
    """State and reason: evidence first, then the ledger; success without evidence is a loss.

    Args:
        gathered: the attempt's exit record and ends, where they have been read already.
    """
    status = attempt.status
    ranks = spec.placement.ranks if spec else 1
    told = status.state if status and status.state.ended and status.state is not JobState.SUCCEEDED else None
    left = gathered or evidence.gather(attempt.layout, ranks)
    verdict = evidence.judge(left, spec.placement.walltime_s if spec else 0, told)
    if verdict is not None and spec is not None:
        if told is None or told is JobState.LOST:
            return verdict.state, verdict.reason
        # the ledger's reason holds the scheduler's word, too
        return advance(told, verdict.state), (status.reason if status else "") or verdict.reason
    if status is not None and status.state is not JobState.SUCCEEDED:
        return status.state, status.reason
    missing = "exit.json" if spec else "point.json"
    return JobState.LOST, f"no usable {missing} in {attempt.layout.root.name}"
