"""Numbers of earlier studies, to draw beside one's own: read from ``results/published``, chosen by the sweep's name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from harness.layout import CampaignLayout
from harness.model.campaign import Campaign

#: Sweep's name begins with → (file, how the study is named in a legend).
STUDIES = {
    "alcf_threads_prefetch": ("alcf_threads_prefetch.csv", "ALCF exercise, A100 (mean of rates)"),
    "alcf_horovod_scaling": ("alcf_horovod_scaling.csv", "ALCF, A100 (mean of rates)"),
    "dell_scaling": ("dell_scaling.csv", "Dell, V100"),
    "dell_pipeline_order": ("dell_scaling.csv", "Dell, V100"),
    "afrl_batch_interval": ("afrl_step_time.csv", "AFRL, P100"),
    "aws_workers": ("aws_workers.csv", "AWS, V100"),
}


@dataclass(frozen=True)
class Study:
    """``table`` has the columns of the file, numbers as published."""

    name: str
    table: pd.DataFrame


def study(layout: CampaignLayout, campaign: Campaign) -> Study | None:
    """The study that a campaign repeats; None where there is none or its file is not there."""
    for prefix, (file, name) in STUDIES.items():
        path = _directory(layout) / file
        if campaign.sweep.startswith(prefix) and path.is_file():
            return Study(name, pd.read_csv(path, comment="#"))
    return None


def _directory(layout: CampaignLayout) -> Path:
    """Beside the campaign, or in the checkout that this program runs from."""
    beside = layout.root.parent / "published"
    return beside if beside.is_dir() else Path(__file__).resolve().parents[3] / "results" / "published"
