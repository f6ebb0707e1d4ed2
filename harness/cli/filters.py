"""Which attempts of a campaign are meant: ``--only`` on the axes of their points."""

from __future__ import annotations

from collections.abc import Iterable

from harness.config.axis_types import OPTION_PREFIX
from harness.config.expressions import ExpressionError, evaluate, names_used
from harness.errors import UserError
from harness.model.axes import Axes
from harness.model.campaign import Campaign


def chosen_points(campaign: Campaign, only: str | None) -> set[str]:
    """The ids of the points where ``only`` holds; None: all.

    Raises:
        UserError: the expression makes no sense, or holds for no point.
    """
    if only is None:
        return set(campaign.points)
    try:
        names_used(only)
        found = {name for name, point in campaign.points.items() if evaluate(only, flat(point.axes))}
    except ExpressionError as error:
        raise UserError(f"--only: {error}") from None
    if not found:
        raise UserError(f"--only {only!r} holds for none of the {len(campaign.points)} points of {campaign.name}")
    return found


def flat(axes: Axes) -> dict[str, object]:
    """Axis → value, the options under dotted names."""
    values = axes.model_dump()
    options: Iterable[tuple[str, object]] = values.pop("options").items()
    return {**values, **{f"{OPTION_PREFIX}{name}": value for name, value in options}}
