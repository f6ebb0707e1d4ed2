"""All benchmarks one after the other, and the table in docs/performance.md: what `make bench` runs.

    python benchmarks/run.py [--only plan,collect] [--quick] [--table]

Each ``bench_<name>.py`` is a process of its own. Its rows, with the machine and its load, go to
results/benchmarks/<name>.json, from which the table between two marks in docs/performance.md is written anew; --table
does only that. Records of other machines, kept in folders there, follow in tables of their rows with an aim. A
benchmark that fails is a line in the table that says so. --quick shows that all of them run: its numbers are worth
nothing, so nothing is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import peers
from common import machine, ratio_words

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = ROOT / "results" / "benchmarks"
PAGE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- written by benchmarks/run.py: begin -->", "<!-- end -->"
LIMIT_S = 3600
#: of other processes, beyond which times by the clock mean little
IDLE_LOAD = 0.5

Record = Mapping[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="NAMES", help="some of them, such as plan,collect")
    parser.add_argument("--quick", action="store_true", help="small trials of all")
    parser.add_argument("--table", action="store_true", help="only write the table from what was measured before")
    options = parser.parse_args()
    if options.table:
        write_page(RESULTS)
        return 0
    names = chosen(options.only)
    peers.install()
    warn_of_load()
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) if options.quick else RESULTS
        target.mkdir(parents=True, exist_ok=True)
        failed = [name for name in names if not run(name, target, options.quick)]
    if not options.quick:
        write_page(RESULTS)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def available() -> list[str]:
    """The names of those that leave rows."""
    files = [path for path in HERE.glob("bench_*.py") if "finish(" in path.read_text()]
    return sorted(path.stem.removeprefix("bench_") for path in files)


def chosen(only: str) -> list[str]:
    """Those that were asked for; all where none was named."""
    names = [name for name in only.split(",") if name]
    if unknown := [name for name in names if name not in available()]:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(available())}")
    return names or available()


def warn_of_load() -> None:
    load = os.getloadavg()[0]
    print(f"load over the last minute: {load:.1f}", flush=True)
    if load > IDLE_LOAD:
        print("this machine is not idle: ratios scatter, and times by the clock are too long", file=sys.stderr)


def run(name: str, target: Path, quick: bool) -> bool:
    """One benchmark in a process of its own; False where it fails, which its record then says."""
    file = target / f"{name}.json"
    argv = [sys.executable, str(HERE / f"bench_{name}.py"), "--json", str(file), *(["--quick"] if quick else [])]
    print(f"\n== {name}", flush=True)
    begin = time.monotonic()
    try:
        code = subprocess.run(argv, cwd=ROOT, check=False, timeout=LIMIT_S).returncode
        why = f"exit code {code}" if code else ""
    except subprocess.TimeoutExpired:
        why = f"not done after {LIMIT_S} s"
    print(f"== {name}: {why or 'done'} after {time.monotonic() - begin:.0f} s", flush=True)
    if why:
        file.write_text(json.dumps({"machine": machine(), "quick": quick, "failed": why, "rows": []}) + "\n")
    return not why


def read_records(directory: Path) -> dict[str, Record]:
    """The record of each benchmark that was run, by its name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(directory.glob("*.json"))}


def write_page(results: Path) -> None:
    """Put the tables of all records between the marks of the page."""
    text = PAGE.read_text()
    if BEGIN not in text or END not in text:
        sys.exit(f"{PAGE}: the lines {BEGIN!r} and {END!r} are not there")
    head, rest = text.split(BEGIN, 1)
    records = read_records(results)
    tables = [table(records)]
    for folder in sorted(path for path in results.iterdir() if path.is_dir()):
        tables.append(f"Rows with an aim on another machine, from `results/benchmarks/{folder.name}`:\n")
        tables.append(table(read_records(folder), aims_only=True))
    PAGE.write_text(f"{head}{BEGIN}\n{chr(10).join(tables)}{END}{rest.split(END, 1)[1]}")
    print(f"table of {sum(len(record['rows']) for record in records.values())} rows in {PAGE.relative_to(ROOT)}")


def table(records: Mapping[str, Record], aims_only: bool = False) -> str:
    """The rows of all records as a Markdown table, after a line on each machine that they come from.

    ``aims_only``: without the rows for which no aim was set.
    """
    places: dict[str, list[str]] = {}
    for name, record in records.items():
        places.setdefault(place_words(record["machine"]), []).append(f"{name} ({when_words(record['machine'])})")
    lines = [f"- {place}: {', '.join(names)}" for place, names in places.items()]
    lines += [
        "",
        "| what | ours | against | ratio [95 % interval] | aim | met | command |",
        "|---|--:|--:|--:|---|---|---|",
    ]
    for name, record in records.items():
        command = f"`make bench ONLY={name}`"
        if record.get("failed"):
            lines.append(f"| {name} | | | | | failed: {cell(record['failed'])} | {command} |")
        rows = [row for row in record["rows"] if row["aim"] or not aims_only]
        lines += [f"| {' | '.join(cells(row))} | {command} |" for row in rows]
    return "\n".join(lines) + "\n"


def place_words(facts: Mapping[str, Any]) -> str:
    cores = f"{facts['cores']} core" + "s" * (facts["cores"] != 1)
    return f"{facts['cpu']}, {cores}, {facts['memory_gib']} GiB, Linux {facts['kernel']}, Python {facts['python']}"


def when_words(facts: Mapping[str, Any]) -> str:
    return f"{facts['utc'][:10]}, load {facts['load_1min']} at the end"


def cells(row: Mapping[str, Any]) -> Sequence[str]:
    """A row's cells but for the command."""
    theirs = "" if row["theirs"] is None else f"{number(row['theirs'])} {row['unit']}"
    against = ": ".join(part for part in (row["against"], theirs) if part)
    found = row["ratio"]
    ratio = f"{ratio_words(found['value'], found['low'], found['high'])} ({row['ratio_is']})" if found else ""
    met = {True: "yes", False: "**no**", None: "not decided" if row["aim"] else ""}[row["met"]]
    what = f"{row['what']} ({row['note']})" if row["note"] else row["what"]
    ours = "" if not row["unit"] and not row["ours"] else f"{number(row['ours'])} {row['unit']}".strip()
    return [cell(text) for text in (what, ours, against, ratio, row["aim"], met)]


def number(value: float) -> str:
    """Three digits, or all of them before the point, in groups."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    sys.exit(main())
