"""The yardsticks of bench_collect.py: read the same bytes, parse them, keep nothing.

    python benchmarks/bare_readers.py json DIRECTORY PROCESSES
    python benchmarks/bare_readers.py regex DIRECTORY PROCESSES PATTERN

``json``: every file of a campaign that holds JSON, line by line where it holds lines, with orjson. ``regex``: every
log of a directory line by line, each line against the expressions of a shipped pattern. Nothing is imported beyond
that, and processes are forked: this is as little as reading can cost from Python.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing import get_context
from pathlib import Path

CHUNK = 128


def files_in(directory: str) -> Iterator[str]:
    for entry in os.scandir(directory):
        if entry.is_dir():
            yield from files_in(entry.path)
        else:
            yield entry.path


def read_json(paths: list[str]) -> int:
    import orjson

    size = 0
    for path in paths:
        with open(path, "rb") as stream:  # noqa: PTH123 - the bare way
            if path.endswith(".jsonl"):
                for line in stream:
                    size += len(line)
                    orjson.loads(line)
            else:
                data = stream.read()
                size += len(data)
                orjson.loads(data)
    return size


def read_lines(expressions: list[str], paths: list[str]) -> int:
    size, searches = 0, [re.compile(text).search for text in expressions]
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - the bare way
            for line in stream:
                size += len(line)
                for search in searches:
                    if (match := search(line)) is not None:
                        match.groupdict()
    return size


def expressions_of(pattern: str) -> list[str]:
    import yaml

    file = Path(__file__).parents[1] / "harness" / "analysis" / "foreign" / "patterns" / f"{pattern}.yml"
    found = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return [text for part in ("configuration", "steps", "summary") for text in found.get(part, ())]


def main(kind: str, directory: str, processes: str, pattern: str = "") -> None:
    read: Callable[[list[str]], int] = read_json if kind == "json" else partial(read_lines, expressions_of(pattern))
    endings = (".json", ".jsonl") if kind == "json" else ("",)
    paths = [path for path in files_in(directory) if path.endswith(endings)]
    chunks = [paths[first : first + CHUNK] for first in range(0, len(paths), CHUNK)]
    if processes == "1":
        size = sum(map(read, chunks))
    else:
        with get_context("fork").Pool(int(processes)) as pool:
            size = sum(pool.imap_unordered(read, chunks))
    print(len(paths), size)


if __name__ == "__main__":
    main(*sys.argv[1:])
