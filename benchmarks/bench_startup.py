"""What a login verb costs before it does anything: time from call to end, and calls to the file system.

    python benchmarks/bench_startup.py [--quick]

Home directories of clusters lie on file servers, where each look at a file may take a millisecond, so the calls that
open, look at, list and read files are counted, too (strace; Python's own start is among them on all sides). Commands
of the two sides alternate. The files are in the page cache.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench_plan import CLUSTER, REFRAME, REFRAME_SITE, SWEEP
from commands import HARNESS, elapsed_s, file_calls, run
from common import Row, arguments, finish, paired_ratio
from peers import jube, reframe

#: what is felt as at once
AIM_S, MOST_S = 0.1, 0.15
JUBE = """\
name: small
outpath: bench_run
parameterset:
  - name: axes
    parameter:
      - {name: cpu_cores, type: int, _: "1,2"}
step:
  - name: make
    use: [axes]
"""

Commands = dict[str, list[str]]


def ours(root: Path) -> Commands:
    """The verbs that a login node sees most, on a campaign of four points."""
    axes = "  cpu_cores: [1, 2]\n  prefetch: [1, 2]"
    (root / "sweep.yml").write_text(SWEEP.format(axes=axes, seeds="0"))
    (root / "cluster.yml").write_text(CLUSTER)
    render = [HARNESS, "render", "sweep.yml", "--cluster", "cluster.yml"]
    run([*render, "-o", "campaign"], root)
    verbs = {
        "--help": ["--help"],
        "table --help": ["table", "--help"],
        "submit --help": ["submit", "--help"],
        "plan": ["plan", "sweep.yml", "--cluster", "cluster.yml"],
        "status": ["status", "campaign"],
    }
    return {f"harness {name}": [HARNESS, *words] for name, words in verbs.items()}


def theirs(root: Path) -> Commands:
    """As near as the peers have it: their help, and listing what would run."""
    (root / "small.yml").write_text(JUBE)
    (root / "check.py").write_text(
        REFRAME.format(axes="    cpu_cores = parameter([1, 2])\n    prefetch = 1", seeds="0")
    )
    (root / "site.py").write_text(REFRAME_SITE)
    found: Commands = {}
    if command := jube().command:
        run([command, "run", "--hide-animation", "small.yml"], root)
        found |= {"jube --help": [command, "--help"], "jube status": [command, "status", "bench_run", "--id", "0"]}
    if command := reframe().command:
        found |= {
            "reframe --version": [command, "--version"],
            "reframe --list": [command, "-C", "site.py", "-c", "check.py", "--list"],
        }
    return found


#: our command → theirs that it is compared with
PAIRS = {
    "harness --help": ("jube --help", "reframe --version"),
    "harness plan": ("reframe --list",),
    "harness status": ("jube status",),
}


def rows_of(name: str, taken: dict[str, list[float]], calls: dict[str, int | None]) -> list[Row]:
    others = [other for other in PAIRS.get(name, ()) if other in taken] or [""]
    rows = []
    for other in others:
        middle = median(taken[name])
        ratio = paired_ratio(taken[other], taken[name]) if other else None
        note = f"{calls[name]} file calls" if calls[name] else ""
        if other and calls[other]:
            note += f" against {calls[other]}"
        their = median(taken[other]) if other else None
        met = middle <= MOST_S
        rows.append(
            Row(
                name,
                middle,
                "s",
                other,
                their,
                "theirs / ours" if other else "",
                ratio,
                f"about {AIM_S} s, at most {MOST_S}",
                met,
                note,
            )
        )
    return rows


def count(argv: Sequence[str], root: Path) -> int | None:
    counts = file_calls(argv, root)
    return sum(counts.values()) if counts else None


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    options = parser.parse_args()
    rounds = 2 if options.quick else options.rounds
    with tempfile.TemporaryDirectory(prefix="bench-startup-") as directory:
        root = Path(directory)
        commands = ours(root) | theirs(root)
        for argv in commands.values():
            run(argv, root)  # writes what is compiled at the first call
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, argv in commands.items():
                taken[name].append(elapsed_s(argv, root))
        calls = {name: count(argv, root) for name, argv in commands.items()}
    rows = [row for name in commands if name.startswith("harness ") for row in rows_of(name, taken, calls)]
    finish(rows, options)


if __name__ == "__main__":
    main()
