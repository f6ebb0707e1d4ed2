"""The look of all figures: colours that colour-blind readers tell apart, markers that survive grey print."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from harness.analysis.scaling import axis_word
from harness.model.campaign import Campaign

#: Okabe & Ito's palette (black and yellow left out: too heavy, too faint on white).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
LINES = ("-", "--", ":", "-.")
GREY = "#666666"
#: Opacity of bars not to rely on.
PALE = 0.35
#: More series than this in one panel are drawn without a legend of names.
MOST_NAMED = 12

#: Panels in a row.
ACROSS = 3

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


Item = TypeVar("Item")


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
    """A long name on at most three lines; of a longer one the beginning and the end, which tell it from others."""
    lines = textwrap.wrap(text, width, break_long_words=True) or [""]
    return "\n".join(lines if len(lines) <= 3 else [*lines[:2], "…" + text[1 - width :]])


def legend_below(figure: Figure, handles: Mapping[str, Any]) -> None:
    """One legend under the panels, in as many columns as fit; the figure grows by its height."""
    if not handles:
        return
    widest = max(len(line) for name in handles for line in name.split("\n"))
    columns = max(1, min(len(handles), int(figure.get_figwidth() / (0.08 * widest + 0.64))))
    tallest = max(name.count("\n") + 1 for name in handles)
    figure.set_figheight(figure.get_figheight() + 0.17 * tallest * -(-len(handles) // columns))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)


def handles_of(axes: Sequence[Axes]) -> dict[str, Any]:
    """Legend name → handle, of all panels together, each name once."""
    found: dict[str, Any] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            if name:
                found.setdefault(name, handle)
    return found


def panels(count: int, width: float = 4.2, height: float = 3.2) -> tuple[Figure, list[Axes]]:
    """A figure with ``count`` panels in rows of at most :data:`ACROSS`. Not registered with pyplot: no global state."""
    across = min(count, ACROSS)
    down = -(-count // across)
    figure = Figure(figsize=(max(width * across, 5.0), height * down + 0.3), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for spare in axes[count:]:
        spare.remove()
    return figure, axes[:count]


def crowd_style(index: int, count: int) -> dict[str, Any]:
    """The look of one of very many lines: thin, coloured by its place in their order."""
    colour = matplotlib.colormaps["viridis"](0.9 * index / max(count - 1, 1))
    return {"color": colour, "marker": ".", "markersize": 3, "linewidth": 0.9, "alpha": 0.8}


def doubling(values: Sequence[float]) -> bool:
    """Whether sorted positive values spread so far that a logarithmic axis shows them better."""
    return len(values) > 3 and values[0] > 0 and values[-1] / values[0] >= 8


def integer_ticks(ax: Axes, values: Sequence[float]) -> None:
    """Ticks at the measured values where they are few; doubling values get a logarithmic axis."""
    unique = sorted(set(values))
    if doubling(unique):
        ax.set_xscale("log", base=2)
    if len(unique) <= 12:
        ax.set_xticks(unique, [f"{value:g}" for value in unique])
        ax.set_xticks([], minor=True)
    elif ax.get_xscale() == "log":
        plain_powers(ax.xaxis)
    if len(unique) == 1:
        ax.set_xlim(unique[0] - 1, unique[0] + 1)


def every(items: list[Item], most: int) -> list[Item]:
    """At most ``most`` of the items, evenly chosen, in their order."""
    return items[:: -(-len(items) // most)]


def of_all(shown: Sequence[Any], everything: Sequence[Any], noun: str = "points") -> str:
    """``12 of 40 points; `` where not all are shown."""
    return f"{len(shown)} of {len(everything)} {noun}; " if len(shown) < len(everything) else ""


def undrawn(known: bool) -> str:
    """What is said where an interval is known and the figure has no place for it."""
    return "; 95 % intervals not drawn, see the table" if known else ""


def interval_words(once: Iterable[bool]) -> str:
    """What drawn intervals are; ``once`` tells of each whether it rests on a single run."""
    kinds = set(once)
    if True not in kinds:
        return "95 % interval"
    if False in kinds:
        return "95 % interval (of points run once: within that run, not between runs)"
    return "95 % interval within one run, not between runs"


def plain_log(axis: Axis) -> None:
    """Plain numbers on a logarithmic axis, a label at 1, 2 and 5 of each decade."""
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(LogLocator(subs=(2.0, 5.0)))
    axis.set_minor_formatter(StrMethodFormatter("{x:g}"))


def plain_powers(axis: Axis) -> None:
    """Plain numbers at the powers of two."""
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


def note(figure: Figure, campaign: Campaign, text: str) -> None:
    """One small line above the panels: whose numbers these are, and how to read them."""
    line = f"{campaign.name} on {campaign.cluster} · {text}"
    width = int(figure.get_figwidth() * 16)
    figure.suptitle("\n".join(textwrap.wrap(line, width)), fontsize=8, color=GREY, x=0.01, ha="left")


def named(axis: str) -> str:
    """An axis' name for people."""
    return axis_word(axis).replace("cpu", "CPU").replace("gpus", "GPUs")
