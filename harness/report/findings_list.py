"""Findings of a campaign, by kind, worst first: what was found, what to do, and at which points on what evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from harness.analysis import findings
from harness.analysis.campaign_findings import advised, campaign_findings
from harness.analysis.findings import Finding
from harness.analysis.points import PointResult, point_results
from harness.analysis.scaling import naming_axes, point_label
from harness.model.campaign import Campaign

#: Findings on a number, which a run that gave none does not have: told of a failed run they would hide why it failed.
OF_A_NUMBER = frozenset({"not_steady", "short_window", "few_independent_steps", "buffer_drain"})
_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True)
class Occurrence:
    """A finding at one point; ``advice`` where it is not the same at all of them."""

    point_id: str
    point: str
    evidence: Mapping[str, Any]
    advice: str = ""

    def __str__(self) -> str:
        facts = findings.evidence_text(self.evidence)
        said = f"{self.point}: {facts}" if facts else self.point
        return f"{said} → {self.advice}" if self.advice else said


@dataclass(frozen=True)
class FindingGroup:
    """All occurrences of a finding of one code; ``advice`` is empty where each has its own."""

    code: str
    severity: str
    message: str
    advice: str
    occurrences: tuple[Occurrence, ...]


def list_findings(table: pd.DataFrame, campaign: Campaign, severities: Sequence[str]) -> list[FindingGroup]:
    """Findings of these severities, grouped by what they say, the worst first, then the most frequent."""
    results = [result for result in point_results(table) if result.variant == 0]
    names = naming_axes(results, campaign.varied)
    groups: dict[tuple[str, str, str], list[Occurrence]] = {}
    for result in results:
        for finding in findings.unique((*failures(result), *(advised(f, result, results) for f in result.findings))):
            if finding.severity in severities:
                groups.setdefault(_key(finding), []).append(_occurrence(result, names, finding))
    for found in campaign_findings(table, results):
        if found.finding.severity in severities:
            named = [r for r in results if found.point_ids == (r.point_id,)]
            whole = Occurrence("", "the campaign", found.finding.evidence, found.finding.advice)
            occurrence = _occurrence(named[0], names, found.finding) if named else whole
            groups.setdefault(_key(found.finding), []).append(occurrence)
    ordered = sorted(groups.items(), key=lambda item: (_ORDER[item[0][0]], -len(item[1]), item[0][1]))
    return [_group(*key, occurrences) for key, occurrences in ordered]


def failures(result: PointResult) -> list[Finding]:
    """Findings on the runs of a point that gave no number."""
    return [finding for finding in result.failures if finding.code not in OF_A_NUMBER]


def _key(finding: Finding) -> tuple[str, str, str]:
    return finding.severity, finding.code, finding.message


def _group(severity: str, code: str, message: str, occurrences: Sequence[Occurrence]) -> FindingGroup:
    advices = {occurrence.advice for occurrence in occurrences}
    if len(advices) > 1:
        return FindingGroup(code, severity, message, "", tuple(occurrences))
    return FindingGroup(code, severity, message, advices.pop(), tuple(replace(o, advice="") for o in occurrences))


def _occurrence(result: PointResult, names: Sequence[str], finding: Finding) -> Occurrence:
    return Occurrence(result.point_id, point_label(result, names), finding.evidence, finding.advice)
