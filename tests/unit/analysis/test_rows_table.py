"""The table of runs as CSV reads back as it is."""

from __future__ import annotations

import csv
import io

from harness.analysis.dictionary import RUN_COLUMNS
from harness.analysis.rows_table import csv_text, rows_table

TEXTS = ["", "plain", " two words ", 'says "so"', "a,b", "two\nlines", "DOS\r\n", "old\rMac", '"', "größer\u2028;\t"]


def test_csv_reads_back_as_it_is() -> None:
    text, whole, number, truth = (next(c.name for c in RUN_COLUMNS if c.kind == kind) for kind in _KINDS)
    rows = [{text: value, whole: 7, number: 1e-7 / 3, truth: True} for value in TEXTS] + [{whole: None}]
    written = csv_text(rows_table(rows))
    header, *lines = csv.reader(io.StringIO(written, newline=""))
    assert header == [c.name for c in RUN_COLUMNS]
    read = [dict(zip(header, line, strict=True)) for line in lines]
    assert [line[text] for line in read] == [*TEXTS, ""]
    assert {line[whole] for line in read} == {"7", ""}
    assert [float(line[number]) for line in read[:-1]] == [1e-7 / 3] * len(TEXTS)
    assert {line[truth] for line in read} == {"True", ""}


_KINDS = ("text", "int", "float", "bool")
