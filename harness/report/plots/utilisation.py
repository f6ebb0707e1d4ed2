"""CPU and GPU utilisation over time, a panel per point: the samples of its first counting run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from harness.analysis.points import plain, point_results, sort_key
from harness.analysis.scaling import label, naming_axes
from harness.analysis.stats import Floats
from harness.files import read_json_lines
from harness.layout import CampaignLayout
from harness.model.campaign import Campaign
from harness.report.plots import style

NAME = "utilisation"
MOST_PANELS = 12


@dataclass(frozen=True)
class Trace:
    """One run, first node by name: arrays of shape (samples,). ``gpu`` is all NaN where no GPU reported."""

    title: str
    seconds: Floats
    cpu: Floats
    gpu: Floats


def data(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> list[Trace] | str:
    """A trace per measured point with samples, or what is missing."""
    runs = table[table["counts"].fillna(False).astype(bool)].sort_values("repeat").drop_duplicates("point_id")
    names = naming_axes(point_results(table), campaign.varied)
    found = []
    for _, run in runs.iterrows():
        values = {name: plain(run[name]) for name in names}
        title = label({name: value for name, value in values.items() if value not in (None, "none")})
        attempt = layout.attempt(str(run["point_id"]), int(run["repeat"]), int(run["attempt"]))
        files = sorted(attempt.root.glob("samples.*.jsonl"))
        trace = _trace([dict(r) for r in read_json_lines(files[0])], title) if files else None
        if trace is not None:
            found.append((sort_key(values.values()), trace))
    if not found:
        return "no run has two samples of utilisation"
    return [trace for _, trace in sorted(found, key=lambda item: item[0])]


def _trace(samples: list[dict[str, object]], title: str) -> Trace | None:
    rows = []
    for sample in samples:
        cpus, at = sample.get("cpu_percent"), sample.get("t_s")
        if isinstance(cpus, list) and cpus and isinstance(at, int | float):
            rows.append((float(at), float(np.mean(cpus)), _gpu(sample.get("gpu"))))
    if len(rows) < 2:
        return None
    seconds, cpu, gpu = np.asarray(rows, dtype=np.float64).T
    return Trace(title, seconds - seconds[0], cpu, gpu)


def _gpu(gpus: object) -> float:
    utils = [g.get("util_percent") for g in gpus if isinstance(g, dict)] if isinstance(gpus, list) else []
    known = [float(u) for u in utils if isinstance(u, int | float)]
    return float(np.mean(known)) if known else float("nan")


def draw(traces: list[Trace], campaign: Campaign) -> Figure:
    """Percent over seconds: CPU (all of the node's) and GPU (mean)."""
    everything, traces = traces, style.every(traces, MOST_PANELS)
    figure, axes = style.panels(len(traces), height=2.5)
    for ax, trace in zip(axes, traces, strict=True):
        ax.plot(trace.seconds, trace.cpu, color=style.COLOURS[0], label="CPU", linewidth=1.2)
        if np.isfinite(trace.gpu).any():
            ax.plot(trace.seconds, trace.gpu, color=style.COLOURS[1], label="GPU", linewidth=1.2, linestyle="--")
        ax.set_ylim(0, 105)
        ax.set_xlabel("time, s")
        ax.set_ylabel("utilisation, %")
        ax.set_title(style.wrapped(trace.title, 36), fontsize=9)
    style.legend_below(figure, style.handles_of(axes))
    note = f"{style.of_all(traces, everything)}first repeat, first node; CPU: mean over all of the node's"
    style.note(figure, campaign, note)
    return figure


def figure(layout: CampaignLayout, table: pd.DataFrame, campaign: Campaign) -> Figure | str:
    found = data(layout, table, campaign)
    return found if isinstance(found, str) else draw(found, campaign)
