"""kill -9 of ``collect`` at every file operation it makes: the next collection gives the whole table."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from evidence_support import FakeCampaign, FakeRun

from harness.model.axes import Axes

PROGRAM = """
import json, os, signal, sys
from pathlib import Path
from harness.analysis.collect import collect
from harness.layout import CampaignLayout

layout = CampaignLayout(Path(sys.argv[1]))

def in_a_child(action):  # each from the same state, before any thread was started
    if (pid := os.fork()) == 0:
        action()
        os._exit(0)
    return os.waitpid(pid, 0)[1]

def dying_at(number):
    def action():
        left = number
        os.utime(next(layout.runs.rglob("exit.json")))  # or there would be nothing to do
        def counted(real):
            def call(*arguments, **named):
                nonlocal left
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **named)
            return call
        os.fsync = counted(os.fsync)
        Path.replace, Path.unlink = counted(Path.replace), counted(Path.unlink)
        collect(layout)
    return action

def derived():
    return layout.runs_csv.read_bytes()

assert in_a_child(lambda: collect(layout)) == 0
whole, killed = derived(), 0
while in_a_child(dying_at(killed)) != 0:
    assert derived() == whole, f"a table was left in pieces by kill {killed}"
    assert in_a_child(lambda: collect(layout)) == 0
    assert derived() == whole, f"the collection after kill {killed} differs"
    killed += 1
print(json.dumps({"killed": killed, "left": sorted(p.name for p in layout.root.iterdir())}))
"""


def test_a_killed_collection_costs_nothing(tmp_path: Path) -> None:
    campaign = FakeCampaign(tmp_path, repeats=2)
    for cores in (1, 2):
        for repeat in range(2):
            axes = Axes(workload="replay", framework="none", cpu_cores=cores)
            campaign.add(axes, FakeRun(durations=[[0.1 / cores] * 30]), repeat)
    campaign.save()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(campaign.layout.root)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["killed"] >= 8  # three tables and the record of what was read, each synchronised and moved
    assert {"runs.csv", "runs.parquet", "steps.parquet"} <= set(said["left"])
