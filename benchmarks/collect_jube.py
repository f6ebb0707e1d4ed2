"""JUBE on the logs of bench_collect.py: one work package for each log, three patterns, a table of their means."""

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
      <pattern name="end_s" type="float">end_s=$jube_pat_fp</pattern>
      <pattern name="wait_s" type="float">wait_s=$jube_pat_fp</pattern>
      <pattern name="compute_s" type="float">compute_s=$jube_pat_fp</pattern>
    </patternset>
    <analyser name="analyse"><use>steps</use><analyse step="show"><file>stdout</file></analyse></analyser>
    <result><use>analyse</use><table name="result" style="csv">
      <column>number</column><column>end_s_max</column><column>wait_s_avg</column><column>compute_s_avg</column>
    </table></result>
  </benchmark>
</jube>
"""


def jube_seconds(directory: Path, logs: Path, repetitions: int) -> tuple[list[float], str]:
    """Seconds of ``jube analyse`` and ``jube result`` together, each time anew; and a note: version, or what lacks."""
    jube = shutil.which("jube")
    if jube is None:
        return [], "jube is not installed (Debian: apt install jube)"
    directory.mkdir()
    out, numbers = directory / "out", ",".join(str(n) for n in range(len(list(logs.iterdir()))))
    configuration = directory / "collect.xml"
    configuration.write_text(CONFIGURATION.format(out=out, numbers=numbers, logs=logs))
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
