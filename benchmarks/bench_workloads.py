"""Step time of our sessions under the step clock against plain scripts of the same models, in one process, in turn.

    python benchmarks/bench_workloads.py [--quick] [--json FILE] [--framework torch|tensorflow]

ResNet20 with batches of 64 and the DCGAN with batches of 32, data in memory, on all cores of the process. "Plain" is
what tutorials write: ``model.fit``, ``train_on_batch``, a custom loop as a ``tf.function``, torch's loop of
``zero_grad``, ``backward``, ``step``. Ours includes the copy to the device, the clock on every step and its events.
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

FRAMEWORKS = ("torch", "tensorflow")
AIM = "≤ 1.00 within noise"


def rows_of(framework: str, quick: bool) -> Iterator[Row]:
    """The rows that one framework's process measures."""
    with tempfile.TemporaryDirectory() as directory:
        found = Path(directory, "found")
        cpus = sorted(os.sched_getaffinity(0))
        confined.run(f"workloads_{framework}.py", [str(found), *(["--quick"] if quick else [])], cpus)
        for line in found.read_text().splitlines():
            name, sides = json.loads(line)
            ours = sides.pop("ours")
            for against, theirs in sides.items():
                ratio = paired_ratio(ours, theirs)
                medians = statistics.median(ours), statistics.median(theirs)
                met = ratio.low <= 1 or ratio.value <= 1
                yield Row(name, medians[0], "ms/step", against, medians[1], "ours/plain", ratio, AIM, met)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--framework", choices=FRAMEWORKS)
    options = parser.parse_args()
    chosen = [options.framework] if options.framework else FRAMEWORKS
    finish([row for framework in chosen for row in rows_of(framework, options.quick)], options)


if __name__ == "__main__":
    main()
