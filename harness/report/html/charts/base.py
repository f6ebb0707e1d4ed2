"""What the interactive charts share: their form, text that is safe in them, a line with its intervals."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Any

from harness.report.plots import style

#: A chart is {title, note, wide} and {traces, layout} as plotly takes them, texts escaped; ``narrow``: the labels of
#: its bars for narrow screens. One of many panels has ``choices`` instead: a list of {label, traces, layout}, or
#: {label, point} for the step trace of a point of the page's data.
Chart = dict[str, Any]

#: More panels than this become one chart with a menu.
MOST_PANELS = 4

SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "triangle-left", "star")
DASHES = ("solid", "dash", "dot", "dashdot")
#: Published numbers, and lines that are no measurement.
REFERENCE = "#888888"


def safe(text: str) -> str:
    """Text as plotly must get it to show it literally: it reads a subset of HTML, and formulas between dollars."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def short(text: str, width: int = 40) -> str:
    """At most ``width`` letters: the end of a long name tells it from others as often as its beginning."""
    half = (width - 1) // 2
    return safe(text if len(text) <= width else f"{text[:half]}…{text[-half:]}")


def titled(title: str, panel: str) -> str:
    return title if panel in ("", "all") else f"{title}: {panel}"


def panelled(title: str, panels: Sequence[tuple[str, Chart]], wide: bool = False) -> list[Chart]:
    """A chart for each (name, {note, traces, layout}); one with a menu where they are many."""
    if len(panels) <= MOST_PANELS:
        return [{"title": titled(title, name), "note": "", "wide": wide} | chart for name, chart in panels]
    note = max((str(chart.get("note", "")) for _, chart in panels), key=len)
    choices = [{"label": name or "all"} | chart for name, chart in panels]
    return [{"title": title, "note": note, "wide": wide, "choices": choices}]


def line(
    index: int,
    name: str,
    x: Sequence[float],
    y: Sequence[float],
    low: Sequence[float] = (),
    high: Sequence[float] = (),
    doubtful: Sequence[bool] = (),
    many: bool = False,
) -> Chart:
    """Markers and lines of the series ``index``, with interval bars where its ends are known; doubtful ones hollow."""
    colour = str(style.series_style(index)["color"])
    doubtful = doubtful or [False] * len(x)
    symbols = [SYMBOLS[index % len(SYMBOLS)] + ("-open" if doubt else "") for doubt in doubtful]
    trace: Chart = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": short(name) or "measured",
        "x": list(x),
        "y": list(y),
        "text": [
            _hover(name, *values) for values in zip(x, y, _padded(low, y), _padded(high, y), doubtful, strict=True)
        ],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"color": colour, "width": 1 if many else 2, "dash": DASHES[index // 6 % len(DASHES)]},
        "marker": {"color": colour, "size": 4 if many else 8, "symbol": symbols},
    }
    if not many and any(map(math.isfinite, low)):
        trace["error_y"] = {"type": "data", "symmetric": False, "color": colour}
        trace["error_y"]["array"] = [h - v if math.isfinite(h) else 0.0 for h, v in zip(high, y, strict=True)]
        trace["error_y"]["arrayminus"] = [v - w if math.isfinite(w) else 0.0 for w, v in zip(low, y, strict=True)]
    return trace


def reference(name: str, x: Sequence[float], y: Sequence[float], published: bool = False) -> Chart:
    """A line that was not measured here: the ideal, a ceiling, or published numbers (crosses)."""
    look: Chart = {"color": REFERENCE, "width": 1.5, "dash": "dot" if not published else "dashdot"}
    trace: Chart = {"type": "scatter", "name": short(name, 60), "x": list(x), "y": list(y), "line": look}
    trace["mode"] = "lines+markers" if published else "lines"
    if published:
        trace["marker"] = {"color": REFERENCE, "size": 8, "symbol": "x"}
    return trace | {"hovertemplate": f"{short(name, 60)}<br>%{{x}}: %{{y:.4g}}<extra></extra>"}


def number_axis(name: str, values: Sequence[float]) -> Chart:
    """An x axis with ticks at the measured values where they are few, logarithmic where they double."""
    unique = sorted(set(values))
    axis: Chart = {"title": {"text": safe(name)}}
    if style.doubling(unique):
        axis |= {"type": "log"}
    if len(unique) <= 12:
        axis |= {"tickmode": "array", "tickvals": unique, "ticktext": [f"{x:g}" for x in unique]}
    return axis


def _padded(values: Sequence[float], like: Sequence[float]) -> Sequence[float]:
    return values or [math.nan] * len(like)


def _hover(name: str, x: float, y: float, low: float, high: float, doubt: bool) -> str:
    interval = f" [{low:.4g}, {high:.4g}]" if math.isfinite(low) else ""
    doubted = "<br>do not rely on it: see the findings" if doubt else ""
    return f"{safe(name)}<br>{x:g}: {y:.4g}{interval}{doubted}".removeprefix("<br>")
