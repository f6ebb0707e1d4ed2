"""campaign.json: the same campaign whatever form it is written in, and never a part of one."""

from __future__ import annotations

import pytest
from pydantic import ValidationError
from simulation_support import campaign

from harness.model.campaign import Refusal
from harness.model.campaign_file import campaign_text, parse_campaign

POINTS = tuple(campaign(points=3).points.values())
PLAN = campaign(points=3, repeats=2).model_copy(
    update={
        "description": 'of "points": {\n and \\ é',
        "refusals": (Refusal(point_id="f" * 16, axes=POINTS[0].axes, code="nodes", reason='\n },\n "refusals": ['),),
    }
)


def written() -> bytes:
    return "".join(campaign_text(PLAN)).encode()


def test_what_is_written_reads_back() -> None:
    assert parse_campaign(written()) == PLAN
    assert list(parse_campaign(written()).points) == list(PLAN.points)


def test_any_form_of_the_same_json_is_read() -> None:
    assert parse_campaign(PLAN.model_dump_json(indent=1).encode()) == PLAN
    assert parse_campaign(PLAN.model_dump_json().encode()) == PLAN


def test_equal_placements_are_one_object_and_the_names_of_given_fields_are_shared() -> None:
    points = list(parse_campaign(written()).points.values())
    assert points[0].placement is points[1].placement
    assert points[0].axes.__pydantic_fields_set__ is points[1].axes.__pydantic_fields_set__
    assert points[0].axes.model_fields_set < set(type(points[0].axes).model_fields)


def test_a_file_cut_off_anywhere_is_no_campaign() -> None:
    data = written()
    for length in range(len(data) - 2):
        with pytest.raises(ValidationError):
            parse_campaign(data[:length])


def test_a_damaged_point_is_not_passed_over() -> None:
    data = written()
    for old, new in ((b'{"axes"', b'{"axis"'), (b'"workload"', b'"workloads"'), (b'  "', b"  ")):
        with pytest.raises(ValidationError):
            parse_campaign(data.replace(old, new))
