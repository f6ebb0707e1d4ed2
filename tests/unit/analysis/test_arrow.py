"""Arrays made from buffers are those of Arrow itself, and pandas is not imported for them."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from harness.analysis import arrow


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


def test_what_reads_evidence_needs_no_pandas() -> None:
    program = (
        "import sys, harness.analysis.reading as r; from harness.analysis.rows_table import rows_table; "
        "t = r.table_of([]); rows = rows_table([{'campaign': 'c', 'ranks': 2, 'latest': True, 'job_s': 1}]); "
        "assert (len(t), len(rows)) == (0, 1); print('pandas' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
