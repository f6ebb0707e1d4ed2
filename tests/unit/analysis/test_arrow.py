"""Arrays made from buffers are those of Arrow itself, and pandas is not imported for them."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from evidence_support import FakeCampaign, FakeRun

from harness.analysis import arrow
from harness.model.axes import Axes


def test_numbers_and_truths() -> None:
    values = np.arange(20)
    assert arrow.numbers(values).equals(pa.array(values))
    assert arrow.numbers(values[::2], values[::2] > 10).equals(pa.array(values[::2], mask=values[::2] > 10))
    floats = np.array([1.5, math.nan, -0.0, math.inf])
    assert arrow.floats(floats).equals(pa.array(floats, from_pandas=True))
    told = [True, None, False] * 5
    assert arrow.truths(told).equals(pa.array(told))
    assert arrow.truths([]).equals(pa.array([], pa.bool_()))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_texts(kind: pa.DataType) -> None:
    for values in ([], ["a"], ["", None, "größer", "\U0001f600\n", None]):
        made = arrow.texts(values, kind)
        made.validate(full=True)
        assert made.equals(pa.array(values, kind))


def test_a_table_arrives_as_it_was_sent() -> None:
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.int32()), pa.array(["a", "b"]))
    schema = pa.schema([("text", codes.type), ("value", pa.float64())], metadata={"pandas": "{}"})
    table = pa.Table.from_arrays([codes, pa.array([1.5, None, -0.0, math.inf])], schema=schema)
    for sent in (table, table.slice(0, 0), table.slice(1, 2)):
        assert arrow.from_bytes(arrow.to_bytes(sent)).equals(sent, check_metadata=True)


def test_collecting_needs_no_pandas(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path)
    axes = Axes(workload="replay", framework="none", batch_size=32, steps_timed=40)
    for repeat in range(2):
        campaign.add(axes, FakeRun([[5.0] + [0.25] * 40]), repeat=repeat)
    campaign.save()
    program = (
        "import sys; from pathlib import Path; from harness.layout import CampaignLayout as L; "
        "from harness.analysis.collect import collect_rows; l = L(Path(sys.argv[1])); first = collect_rows(l); "
        "(l.attempt(first['point_id'][1].as_py(), 1, 1).root / 'exit.json').unlink(); "
        "print(first['state'].to_pylist(), collect_rows(l)['state'].to_pylist(), 'pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", program, str(campaign.layout.root)]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "['SUCCEEDED', 'SUCCEEDED'] ['SUCCEEDED', 'LOST'] False"
