"""JUBE on the logs of bench_collect.py: one work package for each log, three patterns, a table of what they found."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

CONFIGURATION = """\
<?xml version="1.0" encoding="UTF-8"?>
<jube>
  <benchmark name="collect" outpath="{out}">
    <parameterset name="runs"><parameter name="number" type="int">{numbers}</parameter></parameterset>
    <step name="show"><use>runs</use><do>cat {logs}/$number.log</do></step>
    <patternset name="steps">
      {patterns}
    </patternset>
    <analyser name="analyse"><use>steps</use><analyse step="show"><file>stdout</file></analyse></analyser>
    <result><use>analyse</use><table name="result" style="csv">
      <column>number</column>{columns}
    </table></result>
  </benchmark>
</jube>
"""
#: For each kind of log in text_logs.py: pattern → its expression, and what the table shows of all its matches.
PATTERNS = {
    "columns": {
        "end_s": ("end_s=$jube_pat_fp", "max"),
        "wait_s": ("wait_s=$jube_pat_fp", "avg"),
        "compute_s": ("compute_s=$jube_pat_fp", "avg"),
    },
    "alcf": {
        "loss": ("loss= $jube_pat_fp", "last"),
        "images_per_s": (r"\($jube_pat_fp img/s\)", "avg"),
        "published": (r"mean image/s =\s+$jube_pat_fp", "last"),
    },
}


def jube_seconds(directory: Path, logs: Path, kind: str, repetitions: int) -> tuple[list[float], str]:
    """Seconds of ``jube analyse`` and ``jube result`` together, each time anew; and a note: version, or what lacks."""
    jube = shutil.which("jube")
    if jube is None:
        return [], "jube is not installed (Debian: apt install jube)"
    directory.mkdir()
    out, numbers = directory / "out", ",".join(str(n) for n in range(len(list(logs.iterdir()))))
    configuration = directory / "collect.xml"
    wanted = PATTERNS[kind].items()
    patterns = "\n      ".join(f'<pattern name="{name}" type="float">{text}</pattern>' for name, (text, _) in wanted)
    columns = "".join(f"<column>{name}_{shown}</column>" for name, (_, shown) in wanted)
    filled = CONFIGURATION.format(out=out, numbers=numbers, logs=logs, patterns=patterns, columns=columns)
    configuration.write_text(filled)
    _run(jube, "run", configuration)
    times = []
    for _ in range(repetitions):
        for old in out.glob("*/analyse.xml"):
            old.unlink()
        begin = time.perf_counter()
        _run(jube, "analyse", out)
        _run(jube, "result", out)
        times.append(time.perf_counter() - begin)
    said = subprocess.run([jube, "--version"], capture_output=True, text=True, check=False)
    return times, (said.stdout + said.stderr).strip()


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
