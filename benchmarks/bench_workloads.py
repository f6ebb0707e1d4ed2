"""Step time of our sessions under the step clock against plain scripts of the same models, in one process, in turn.

    python benchmarks/bench_workloads.py [--quick] [--json FILE] [--part torch|tensorflow|gpu] [--rounds N]

ResNet20 with batches of 64 and the DCGAN with batches of 32, data in memory, on all cores of the process. "Plain" is
what tutorials write: ``model.fit``, ``train_on_batch``, a custom loop as a ``tf.function``, torch's loop of
``zero_grad``, ``backward``, ``step``, with Adam as it comes and with torch's fused one, which ours uses. Ours includes
the copy to the device, the clock on every step and its events. Short blocks of all sides alternate in random order; the
first step of a block, which finds the caches as another side left them, is not counted.
Where torch sees a GPU, ResNet50 and ResNet34 follow, synthetic and from files (see ``workloads_gpu.py``).
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path

import confined
from common import Row, arguments, finish, paired_ratio

PARTS = ("torch", "tensorflow", "gpu")
GPU_ROWS = "ResNet50 and ResNet34 on a GPU: fp32, TF32, bf16, channels_last, compiled, from files"
AIM = "≤ 1.00 within noise"
#: an interval that ends above this is too wide to say that there is no more than noise
NOISE = 1.05


def rows_of(part: str, told: list[str]) -> Iterator[Row]:
    """The rows that one part's process measures."""
    with tempfile.TemporaryDirectory() as directory:
        found = Path(directory, "found")
        cpus = sorted(os.sched_getaffinity(0))
        confined.run(f"workloads_{part}.py", [str(found), *told], cpus)
        for line in found.read_text().splitlines():
            name, sides = json.loads(line)
            if not isinstance(sides, dict):
                yield Row(name, sides, "%") if name != "skipped" else Row(GPU_ROWS, 0.0, "", note=f"skipped: {sides}")
                continue
            ours = sides.pop("ours")
            yield from (row_of(name, ours, against, theirs) for against, theirs in sides.items())


def row_of(name: str, ours: list[list[float]], against: str, theirs: list[list[float]]) -> Row:
    """Two sides beside each other; a reading is milliseconds by the clock and of CPU time."""
    (our_ms, our_cpu_ms), (their_ms, their_cpu_ms) = zip(*ours, strict=True), zip(*theirs, strict=True)
    ratio, of_cpu = paired_ratio(our_ms, their_ms), paired_ratio(our_cpu_ms, their_cpu_ms)
    met = None if ratio.low <= 1 < NOISE < ratio.high else ratio.low <= 1
    medians = statistics.median(our_ms), statistics.median(their_ms)
    note = f"{ratio.n} rounds; CPU time: {of_cpu}"
    return Row(name, medians[0], "ms/step", against, medians[1], "ours/plain", ratio, AIM, met, note)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--part", choices=PARTS, help="only these")
    parser.add_argument("--rounds", type=int, help="of one block of each side")
    parser.add_argument("--rehearse", action="store_true", help="the GPU's cases on the CPU, tiny: shows that they run")
    options = parser.parse_args()
    chosen = [options.part] if options.part else PARTS
    told = [f"--{name}" for name in ("quick", "rehearse") if getattr(options, name)]
    told += [f"--rounds={options.rounds}"] if options.rounds else []
    finish([row for part in chosen for row in rows_of(part, told)], options)


if __name__ == "__main__":
    main()
