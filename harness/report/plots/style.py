"""The look of all figures: colours that colour-blind readers tell apart, markers that survive grey print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

#: Okabe & Ito's palette (black and yellow left out: too heavy, too faint on white).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINES = ("-", "--", ":", "-.")
GREY = "#666666"
#: More series than this in one panel are drawn without a legend of names.
MOST_NAMED = 12

RC: Any = {
    "figure.dpi": 120,
    "savefig.dpi": 150,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.5,
    "errorbar.capsize": 3,
    "svg.fonttype": "none",
    "svg.hashsalt": "harness",
    "pdf.fonttype": 42,
    "text.parse_math": False,
}


@contextmanager
def applied() -> Iterator[None]:
    """The style, for the block; nothing global stays changed."""
    with matplotlib.rc_context(RC):
        yield


def series_style(index: int) -> dict[str, Any]:
    """Colour, marker and line of the series ``index``: 6 colours × 4 lines before two look alike."""
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": LINES[index // len(COLOURS) % len(LINES)],
    }


def wrapped(text: str, width: int = 34) -> str:
    """A long name on at most three lines."""
    lines = textwrap.wrap(text, width, break_long_words=True) or [""]
    return "\n".join(lines if len(lines) <= 3 else [*lines[:2], lines[2][: width - 1] + "…"])


def panels(count: int, width: float = 4.2, height: float = 3.2, columns: int = 3) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels in rows of at most ``columns``. Not registered with pyplot: no global state."""
    across = min(count, columns)
    down = -(-count // across)
    figure = Figure(figsize=(max(width * across, 5.0), height * down + 0.5), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def integer_ticks(ax: Axes, values: Sequence[float]) -> None:
    """Ticks at the measured values where they are few; doubling values get a logarithmic axis."""
    unique = sorted(set(values))
    positive = unique and unique[0] > 0
    if positive and len(unique) > 3 and unique[-1] / unique[0] >= 8:
        ax.set_xscale("log", base=2)
    if len(unique) <= 12:
        ax.set_xticks(unique, [f"{value:g}" for value in unique])
        ax.set_xticks([], minor=True)
    if len(unique) == 1:
        ax.set_xlim(unique[0] - 1, unique[0] + 1)


def named(axis: str) -> str:
    """An axis' name for people."""
    return axis.removeprefix("options.").replace("_", " ").replace("cpu", "CPU").replace("gpus", "GPUs")
