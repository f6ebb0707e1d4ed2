"""Findings of a campaign, by point, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from harness.analysis import findings
from harness.analysis.findings import Finding
from harness.analysis.points import point_results
from harness.analysis.scaling import label
from harness.model.campaign import Campaign

_ORDER = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True)
class PointFindings:
    """Findings of one point; ``where`` names the attempts that count."""

    point_id: str
    label: str
    where: str
    findings: tuple[Finding, ...]


def list_findings(table: pd.DataFrame, campaign: Campaign, severities: Sequence[str]) -> list[PointFindings]:
    """Points with findings of these severities, those with the worst first."""
    listed = []
    for result in point_results(table):
        kept = [f for f in findings.unique(result.findings) if f.severity in severities]
        if kept and result.variant == 0:
            kept.sort(key=lambda finding: _ORDER[finding.severity])
            listed.append(_of_point(result.point_id, result.axes, kept, table, campaign))
    return sorted(listed, key=lambda one: _ORDER[one.findings[0].severity])


def _of_point(
    point_id: str, axes: object, kept: list[Finding], table: pd.DataFrame, campaign: Campaign
) -> PointFindings:
    runs = table[(table["point_id"] == point_id) & table["counts"].fillna(False).astype(bool)]
    where = ", ".join(f"r{repeat}a{attempt}" for repeat, attempt in zip(runs["repeat"], runs["attempt"], strict=True))
    values = dict(axes) if isinstance(axes, dict) else {}
    names = {name: values[name] for name in campaign.varied if values.get(name) is not None}
    return PointFindings(point_id, label(names), where, tuple(kept))
