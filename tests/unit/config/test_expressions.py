"""Expressions: what they see, and that nothing else can be reached."""

from __future__ import annotations

import pytest

from harness.config.expressions import ExpressionError, evaluate, names_used

VALUES = {"workload": "replay", "nodes": 2, "ranks_per_node": 4, "cpu_cores": 8, "options.produce_s": 0.5}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ranks", 8),
        ("cores_per_rank", 2),
        ("gpus_per_node", 0),
        ("workers", 0),
        ("max(1, min(cpu_cores, 20) // 3)", 2),
        ("ceil(cpu_cores / 3) + floor(2.9) + round(1.6) + abs(-1)", 8),
        ("workload == 'replay' and not multiprocessing", True),
        ("cpu_cores in (4, 8)", True),
        ("'big' if nodes > 1 else 'small'", "big"),
        ("options.produce_s * 2", 1.0),
        ("options.consume_s", 0.01),
        ("prefetch is None", True),
        ("len([n for n in (1, 2, 3) if n > 1])", 2),
    ],
)
def test_values(text: str, value: object) -> None:
    names_used(text)
    assert evaluate(text, VALUES) == value


def test_names_used() -> None:
    assert names_used("max(options.produce_s, workers) + len([n for n in (1,)])") == {"options.produce_s", "workers"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("worker > 1", "no name 'worker'; did you mean 'workers'?"),
        ("options.produce", "no name 'options.produce'; did you mean 'options.produce_s'?"),
        ("mim(1, 2)", "no function 'mim'; did you mean 'min'?"),
        ("workers >", "is no expression"),
        ("workers = 1", "is no expression"),
        ("", "is no expression"),
        ("(" * 300 + ")" * 300, "is no expression"),
        ("1 + " * 600 + "1", "longer than 2000 characters"),
        ("__import__('os').system('id')", "no name"),
        ("open('/etc/passwd')", "no function 'open'"),
        ("workload.__class__", "no name"),
        ("workload.upper()", "no name"),
    ],
)
def test_unreadable_or_unknown(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message.replace("(", r"\(").replace("?", r"\?")):
        names_used(text)


@pytest.mark.parametrize("text", ["1 / workers", "prefetch + 1", "9**9**9**9", "len('a' * 10**9)", "max()", "int('x')"])
def test_no_value(text: str) -> None:
    names_used(text)
    with pytest.raises(ExpressionError, match="has no value"):
        evaluate(text, VALUES)
