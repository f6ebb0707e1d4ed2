"""The values of axes in words, apart from the verbs: who labels a run need not import what another verb takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.model.axes import Axes


def axis_text(axes: Axes, axis: str) -> str:
    """The value of an axis, or of ``options.<name>``, for people: unset is a dash."""
    from harness.config.axis_types import OPTION_PREFIX, default_of

    if axis.startswith(OPTION_PREFIX):
        value = axes.options.get(axis.removeprefix(OPTION_PREFIX), default_of(axis))
    else:
        value = getattr(axes, axis)
    return "–" if value is None else str(value)
