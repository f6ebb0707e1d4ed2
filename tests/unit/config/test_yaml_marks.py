"""Trees with lines: repeated keys, aliases and merges, and files that are no YAML or meant to hurt."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config.yaml_marks import MAX_FILE_BYTES, Mapping, Scalar, Sequence, parse, parse_mapping, read_mapping
from harness.errors import ConfigError


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_mapping(text, "f.yml")
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.problems]


def test_every_value_knows_its_line_and_its_text() -> None:
    tree = parse_mapping("a: 3.10\nb:\n  - x\n  - 'y'\n", "f.yml")
    assert tree.entries["a"].value == Scalar("3.10", quoted=False, kind="float", line=1)
    assert tree.entries["b"].line == 2
    items = tree.entries["b"].value
    assert isinstance(items, Sequence)
    assert items.items == (Scalar("x", False, "str", 3), Scalar("y", True, "str", 4))


def test_repeated_keys_are_all_reported() -> None:
    assert problems("a: 1\nb: 2\na: 3\nc: {d: 1, d: 2}\n") == [
        "f.yml:3: key 'a' is repeated; it stands on line 1 already; keep one of them",
        "f.yml:4: key 'd' is repeated; it stands on line 4 already; keep one of them",
    ]


def test_merge_keys_give_way_to_own_keys_and_to_earlier_merges() -> None:
    text = "x: &x {p: 1, q: 1}\ny: &y {q: 2, r: 2}\nz:\n  <<: [*x, *y]\n  r: 3\n"
    merged = parse_mapping(text, "f.yml").entries["z"].value
    assert isinstance(merged, Mapping)
    values = {key: entry.value.text for key, entry in merged.entries.items() if isinstance(entry.value, Scalar)}
    assert values == {"p": "1", "q": "1", "r": "3"}


def test_keys_that_yaml_takes_for_booleans_or_numbers_are_words() -> None:
    assert list(parse_mapping("on: 1\n1: 2\nnull: 3\n", "f.yml").entries) == ["on", "1", "null"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.yml: the file is empty"),
        ("# nothing\n", "f.yml: the file is empty"),
        ("null\n", "f.yml:1: the file is empty"),
        ("- a\n", "f.yml:1: the file holds no mapping"),
        ("word\n", "f.yml:1: the file holds no mapping"),
        ("a: 1\n\tb: 2\n", "indent with spaces, not tabs"),
        ("a:\n\tb: 2\n", "indent with spaces, not tabs"),
        ("a: [1\n", "f.yml:2: not readable as YAML"),
        ("a: 'x\n", "not readable as YAML"),
        ("a: 1\n---\nb: 2\n", "f.yml:2: not readable as YAML: expected a single document"),
        ("a: *x\n", "f.yml:1: not readable as YAML: found undefined alias"),
        ("a: &x [*x]\n", "f.yml:1: an alias refers to a value that contains it"),
        ("a: &x\n  b: 1\n  <<: *x\n", "an alias refers to a value that contains it"),
        ("a: 1\n<<: 3\n", "f.yml:2: <<: takes an alias of a mapping"),
        ("? [a, b]\n: 1\n", "f.yml:1: a key must be a plain word"),
        ("a: !!python/object/apply:os.system [id]\n", "f.yml:1: the YAML tag !!python/object/apply:os.system"),
        ("a: !mine 3\n", "f.yml:1: the YAML tag !mine"),
        ("a: 1\nb: \a\n", "f.yml:2: holds the control character U+0007"),
        ("a: " + "[" * 5000, "f.yml:1: values are nested deeper than 30 levels"),
        ("a: " + "{b: " * 5000, "f.yml:1: values are nested deeper than 30 levels"),
    ],
)
def test_one_clear_message(text: str, message: str) -> None:
    found = problems(text)
    assert len(found) == 1
    assert message in found[0]


def test_aliases_cannot_blow_up() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert "more than 100000 values" in problems("\n".join(lines))[0]


def test_shared_aliases_are_no_circle() -> None:
    tree = parse_mapping("a: &x [1]\nb: [*x, *x]\n", "f.yml")
    assert isinstance(tree.entries["b"].value, Sequence)


def test_an_empty_document_has_no_tree() -> None:
    assert parse("", "f.yml") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: caf\xe9\n", ":2: is not UTF-8 text; save the file in UTF-8"),
        ("a: 1\n".encode("utf-16"), ": is not UTF-8 text"),
        (b"a: 1\n" * (MAX_FILE_BYTES // 5 + 1), "more than the 1000000 a YAML file may have"),
    ],
)
def test_files_that_are_no_text(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "f.yml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_mapping(path)
    assert message.lstrip(":") in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_byte_order_mark_is_no_character(tmp_path: Path) -> None:
    path = tmp_path / "f.yml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert list(read_mapping(path).entries) == ["a"]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: No such file or directory"):
        read_mapping(tmp_path / "none.yml")
    with pytest.raises(ConfigError, match="cannot be read: Is a directory"):
        read_mapping(tmp_path)
