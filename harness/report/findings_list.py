"""Findings of a campaign, by kind, worst first: what was found, what to do, and at which points on what evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from harness.analysis import findings
from harness.analysis.campaign_findings import advised, campaign_findings
from harness.analysis.points import PointResult, point_results
from harness.analysis.scaling import naming_axes, point_label
from harness.model.campaign import Campaign

_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True)
class Occurrence:
    """A finding at one point."""

    point_id: str
    point: str
    evidence: Mapping[str, Any]

    def __str__(self) -> str:
        facts = findings.evidence_text(self.evidence)
        return f"{self.point}: {facts}" if facts else self.point


@dataclass(frozen=True)
class FindingGroup:
    """All occurrences of a finding of one code and advice."""

    code: str
    severity: str
    message: str
    advice: str
    occurrences: tuple[Occurrence, ...]


def list_findings(table: pd.DataFrame, campaign: Campaign, severities: Sequence[str]) -> list[FindingGroup]:
    """Findings of these severities, grouped by what they say, the worst first, then the most frequent."""
    results = [result for result in point_results(table) if result.variant == 0]
    names = naming_axes(results, campaign.varied)
    groups: dict[tuple[str, str, str, str], list[Occurrence]] = {}
    for result in results:
        for finding in findings.unique((*result.failures, *(advised(f, result, results) for f in result.findings))):
            if finding.severity in severities:
                key = (finding.severity, finding.code, finding.message, finding.advice)
                groups.setdefault(key, []).append(_occurrence(result, names, finding.evidence))
    for found in campaign_findings(table, results):
        if found.finding.severity in severities:
            occurrence = Occurrence("", "the campaign", found.finding.evidence)
            named = [r for r in results if found.point_ids == (r.point_id,)]
            key = (found.finding.severity, found.finding.code, found.finding.message, found.finding.advice)
            groups.setdefault(key, []).append(
                _occurrence(named[0], names, found.finding.evidence) if named else occurrence
            )
    ordered = sorted(groups.items(), key=lambda item: (_ORDER[item[0][0]], -len(item[1]), item[0][1]))
    return [FindingGroup(code, severity, message, advice, tuple(o)) for (severity, code, message, advice), o in ordered]


def _occurrence(result: PointResult, names: Sequence[str], evidence: Mapping[str, Any]) -> Occurrence:
    return Occurrence(result.point_id, point_label(result, names), evidence)
