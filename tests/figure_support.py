"""What makes a figure readable, as numbers: boxes of its texts as the renderer places them."""

from __future__ import annotations

from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox

#: Pixels that boxes may share or stand out: rounding, and the room around letters.
SLACK = 2.0
#: Names in a legend that a reader can still tell apart: 6 colours × lines × markers, and an ideal and a published one.
MOST_NAMES = 14
#: Inches of a figure that still fits on a page when printed at half size.
MOST_INCHES = 24.0


def complaints(figure: Figure) -> list[str]:
    """What is wrong with a figure, in words; nothing where it is readable."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    found = []
    width, height = figure.get_size_inches()
    if max(width, height) > MOST_INCHES:
        found.append(f"{width:.0f} × {height:.0f} inches")
    ticks = [_tick_labels(axis) for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    found += _outside(figure, [*_texts(figure), *(label for labels in ticks for label in labels)])
    for labels in [*ticks, *([text for text in ax.texts if _shown(text)] for ax in figure.axes)]:
        found += _overlaps(labels)
    found += _overlaps(_titles(figure))
    found += _legends(figure)
    return found


def _shown(text: Text) -> bool:
    return bool(text.get_visible() and text.get_text().strip())


def _tick_labels(axis: Axis) -> list[Text]:
    """The labels that are drawn: those of ticks within the limits."""
    labels = [label for tick in axis._update_ticks() for label in (tick.label1, tick.label2)]
    return [label for label in labels if _shown(label)]


def _texts(figure: Figure) -> list[Text]:
    """All texts but tick labels, of which many are made and not drawn."""
    axes = [axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)]
    ticks = [tick for axis in axes for tick in (*axis.majorTicks, *axis.minorTicks)]
    labels = {id(label) for tick in ticks for label in (tick.label1, tick.label2)}
    return [text for text in figure.findobj(Text) if _shown(text) and id(text) not in labels]


def _titles(figure: Figure) -> list[Text]:
    """Titles and labels of all axes, and the note: none of them may lie on another."""
    found = [text for ax in figure.axes for text in (ax.title, ax._left_title, ax.xaxis.label, ax.yaxis.label)]
    note = [figure._suptitle] if figure._suptitle else []
    return [text for text in [*found, *note] if _shown(text)]


def _outside(figure: Figure, texts: list[Text]) -> list[str]:
    page = figure.bbox
    return [
        f"{text.get_text()!r} is cut off"
        for text in texts
        if _beyond(text.get_window_extent(), page) and text.get_window_extent().width > 0
    ]


def _beyond(box: Bbox, page: Bbox) -> bool:
    return bool(
        box.x0 < page.x0 - SLACK or box.y0 < page.y0 - SLACK or box.x1 > page.x1 + SLACK or box.y1 > page.y1 + SLACK
    )


def _overlaps(texts: list[Text]) -> list[str]:
    found = []
    for one, other in combinations(texts, 2):
        a, b = one.get_window_extent(), other.get_window_extent()
        across = min(a.x1, b.x1) - max(a.x0, b.x0)
        down = min(a.y1, b.y1) - max(a.y0, b.y0)
        if across > SLACK and down > SLACK:
            found.append(f"{one.get_text()!r} lies on {other.get_text()!r}")
    return found


def _legends(figure: Figure) -> list[str]:
    found = []
    for legend in [*figure.legends, *(ax.get_legend() for ax in figure.axes if ax.get_legend())]:
        names = [text.get_text() for text in legend.get_texts()]
        if len(names) > MOST_NAMES:
            found.append(f"{len(names)} names in a legend")
        if len(set(names)) < len(names):
            found.append(f"a name twice in a legend: {sorted(names)}")
        box = legend.get_window_extent()
        if _beyond(box, figure.bbox):
            found.append("a legend is cut off")
        found += [f"a legend lies on {_named(ax)}" for ax in figure.axes if _covers(box, ax)]
    return found


def _covers(box: Bbox, ax: Axes) -> bool:
    frame = ax.get_window_extent()
    across = min(box.x1, frame.x1) - max(box.x0, frame.x0)
    down = min(box.y1, frame.y1) - max(box.y0, frame.y0)
    return bool(across > SLACK and down > SLACK)


def _named(ax: Axes) -> str:
    return f"the panel {ax._left_title.get_text() or ax.get_title()!r}"
