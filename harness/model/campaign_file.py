"""campaign.json, written and read a point at a time: a campaign may have a hundred thousand of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic import BaseModel

from harness.model.campaign import Campaign, PlannedPoint
from harness.model.sharing import Sharing

_BEGIN, _END = b'\n "points": {\n', b'\n },\n "refusals": ['
_POINT = re.compile(rb'  "([^"\\\n]+)": (\{[^\n]*\}),?(?:\n|$)')


def campaign_text(campaign: Campaign) -> Iterator[str]:
    """The content of campaign.json, a line for each point, refusal and task; fields at their default are left out."""
    rest = campaign.model_dump(mode="json", exclude={"points", "tasks", "refusals"})
    yield "{\n" + "".join(f" {_json(name)}: {_json(value)},\n" for name, value in rest.items())
    points = (f"{_json(name)}: {_dump(point)}" for name, point in campaign.points.items())
    for name, brackets, lines in (
        ("points", "{}", points),
        ("refusals", "[]", map(_dump, campaign.refusals)),
        ("tasks", "[]", map(_dump, campaign.tasks)),
    ):
        comma = "\n"
        yield f" {_json(name)}: {brackets[0]}"
        for line in lines:
            yield f"{comma}  {line}"
            comma = ",\n"
        yield f"\n {brackets[1]}" + ("\n}\n" if name == "tasks" else ",\n")


def parse_campaign(data: bytes) -> Campaign:
    """The campaign that a campaign.json describes, in this form or in any other that JSON has for it.

    Raises:
        ValidationError: it is no JSON, or does not describe a campaign.
    """
    begin, end = data.find(_BEGIN) + len(_BEGIN), data.rfind(_END)
    points = _points(data, begin, end) if len(_BEGIN) <= begin <= end else None
    if points is None:
        return Campaign.model_validate_json(data)
    campaign = Campaign.model_validate_json(data[:begin] + data[end:])
    share = Sharing()
    for task in campaign.tasks:
        share(task)
    return campaign.model_copy(update={"points": points})


def _points(data: bytes, begin: int, end: int) -> dict[str, PlannedPoint] | None:
    """The points in these lines, equal placements kept once; None where something else stands there, too."""
    points, share = {}, Sharing()
    while begin < end:
        match = _POINT.match(data, begin, end)
        if match is None:
            return None
        point = PlannedPoint.model_validate_json(match[2])
        point = PlannedPoint(axes=share(point.axes), placement=share.equal(point.placement))
        points[match[1].decode()] = share(point)
        begin = match.end()
    return points


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _dump(model: BaseModel) -> str:
    return model.model_dump_json(exclude_defaults=True)
