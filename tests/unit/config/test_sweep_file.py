"""Sweep files: what they mean, and one clear message for each way to get them wrong."""

from __future__ import annotations

import pytest

from harness.config.sweep_file import parse_sweep
from harness.errors import ConfigError
from harness.model.sweep import Condition, Conditional, Expression, Grid

BASE = "name: x\nbase: {workload: replay}\n"


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_sweep(text, "s.yml")
    assert caught.value.exit_code == 2
    return [str(problem) for problem in caught.value.problems]


def test_a_whole_sweep() -> None:
    sweep = parse_sweep(
        """\
name: alcf threads
description: rate against threads
cluster: local
base:
  workload: replay
  storage: off
  prefetch: null
  options: {produce_s: 1e-3}
matrix:
  parallel_threads: [1, 4]
  options.consume_s: [1, 0.5]
zip:
  - {nodes: [1, 2], batch_size: [32, 64]}
include:
  - {parallel_threads: 1, echo: 2}
exclude:
  - {parallel_threads: 4, nodes: 2}
  - where: "parallel_threads == 1 and prefetch"
when:
  - where: {nodes: 2}
    set: {multiprocessing: true}
derive:
  cpu_cores: "min(parallel_threads, 20)"
repeats: 3
order_seed: 7
steps: {warmup: auto, timed: 200}
walltime: "00:30:00"
memory: 8gb
"""
    )
    assert (sweep.name, sweep.description, sweep.cluster) == ("alcf threads", "rate against threads", "local")
    assert (sweep.repeats, sweep.order_seed, sweep.walltime_s, sweep.memory_bytes) == (3, 7, 1800, 8 * 1024**3)
    assert sweep.grids == (
        Grid(
            base={
                "steps_warmup": None,
                "steps_timed": 200,
                "workload": "replay",
                "storage": "off",
                "prefetch": None,
                "options.produce_s": 0.001,
            },
            matrix={"parallel_threads": (1, 4), "options.consume_s": (1.0, 0.5)},
            zip=({"nodes": (1, 2), "batch_size": (32, 64)},),
            include=({"parallel_threads": 1, "echo": 2},),
            exclude=(
                Condition(match={"parallel_threads": 4, "nodes": 2}, line=17),
                Condition(where=Expression(text="parallel_threads == 1 and prefetch", line=18), line=18),
            ),
            when=(Conditional(condition=Condition(match={"nodes": 2}, line=20), values={"multiprocessing": True}),),
            derive={"cpu_cores": Expression(text="min(parallel_threads, 20)", line=23)},
        ),
    )


def test_parts_share_what_stands_outside_them() -> None:
    sweep = parse_sweep(
        """\
name: x
base: {workload: replay, workers: 1}
steps: {timed: 10}
exclude: [{prefetch: 8}]
parts:
  - matrix: {prefetch: [1, 2]}
  - base: {workers: 4}
    steps: {timed: 20}
    exclude: [{prefetch: 16}]
"""
    )
    first, second = sweep.grids
    assert first.base == {"workload": "replay", "workers": 1, "steps_timed": 10}
    assert first.matrix == {"prefetch": (1, 2)}
    assert second.base == {"workload": "replay", "workers": 4, "steps_timed": 20}
    assert [c.match for c in second.exclude] == [{"prefetch": 8}, {"prefetch": 16}]


def test_anchors_share_values() -> None:
    sweep = parse_sweep("name: x\nbase: &b {workload: replay, echo: 2}\ninclude:\n  - {<<: *b, echo: 3}\n")
    assert sweep.grids[0].include == ({"workload": "replay", "echo": 3},)


def test_all_problems_of_a_file_at_once_in_the_order_of_lines() -> None:
    found = problems("name: x\nmatrx: {}\nrepeats: x\nbase: {workload: replai, cpu_cores: -1}\nwalltime: 12:00:00\n")
    assert [line.split(": ", 1)[0] for line in found] == ["s.yml:2", "s.yml:3", "s.yml:4", "s.yml:4", "s.yml:5"]
    assert "unknown key 'matrx' in a sweep; did you mean 'matrix'? valid: base, cluster, data, derive," in found[0]
    assert found[1] == "s.yml:3: repeats: 'x' is no whole number; write it in decimal digits"
    assert "'replai' is not known; did you mean 'replay'?" in found[2]
    assert found[3] == "s.yml:4: cpu_cores: -1 is not allowed; it must be greater than or equal to 1"
    assert found[4].endswith('write "12:00:00" in quotes')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base: {workload: replay}\n", "s.yml:1: a sweep lacks the key 'name'"),
        ("name: x\nrepeats: 2\n", "s.yml:1: no workload is given; write it in base or matrix: dcgan_mnist"),
        ("name: a/b\nbase: {workload: replay}\n", "s.yml:1: name: 'a/b' cannot name a directory"),
        ("name: ..\nbase: {workload: replay}\n", "s.yml:1: name: '..' cannot name a directory"),
        ("name: ''\nbase: {workload: replay}\n", "s.yml:1: name: a name must not be empty"),
        ("name: " + "é" * 101 + "\nbase: {workload: replay}\n", "longer than 200 bytes"),
        (BASE + "matrix: {cpu_core: [1]}\n", "s.yml:3: unknown axis 'cpu_core' in matrix; did you mean 'cpu_cores'?"),
        (BASE + "matrix: {}\n", "s.yml:3: the matrix is empty"),
        (BASE + "matrix:\n  workers: []\n", "s.yml:4: workers in matrix is an empty list"),
        (BASE + "matrix: {workers: 4}\n", "s.yml:3: workers in matrix takes a list of values"),
        (BASE + "matrix: [workers]\n", "s.yml:3: matrix takes `key: value` lines, not a list"),
        (BASE + "matrix: {workers: [1, two]}\n", "s.yml:3: workers: 'two' is no whole number"),
        (BASE + "matrix: {precision: [fp31]}\n", "s.yml:3: precision: 'fp31' is not known; did you mean 'fp32'?"),
        (
            BASE + "matrix: {options.optimizer: [adam, sdg]}\n",
            "s.yml:3: options.optimizer: 'sdg' is not known; did you mean 'sgd'? valid: adam, sgd",
        ),
        (BASE + "matrix: {encoding: [jpge]}\n", "s.yml:3: encoding: 'jpge' is not known; did you mean 'jpeg'? valid: "),
        (BASE + "matrix: {model: [resnet-34]}\n", "s.yml:3: model: 'resnet-34' is not known; did you mean 'resnet34'?"),
        (BASE + "matrix: {multiprocessing: [yes]}\n", "s.yml:3: multiprocessing: 'yes' is neither true nor false"),
        (BASE + "matrix: {dataset: [synthetic:mnst]}\n", "did you mean 'synthetic:mnist'?"),
        (BASE + "matrix: {options.produce: [1]}\n", "unknown axis 'options.produce' in matrix; did you mean"),
        (BASE + "repeats: 0\n", "s.yml:3: repeats: 0 is not allowed; it must be greater than or equal to 1"),
        (BASE + "repeats: '2'\n", "s.yml:3: repeats: '2' is text in quotes; write 2 without quotes"),
        (BASE + "walltime: 12:00:00\n", "s.yml:3: walltime: 12:00:00 without quotes is a number in base 60"),
        (BASE + "walltime: 90\n", "s.yml:3: walltime: '90' is no duration"),
        (BASE + "walltime_s: 90\n", "s.yml:3: unknown key 'walltime_s' in a sweep; did you mean 'walltime'?"),
        (BASE + "memory: 12\n", "s.yml:3: memory: '12' is no size"),
        (BASE + "file: x\n", "s.yml:3: unknown key 'file' in a sweep"),
        (BASE + "grids: []\n", "s.yml:3: unknown key 'grids' in a sweep"),
        (BASE + "steps: {time: 3}\n", "s.yml:3: unknown key 'time' in steps; did you mean 'timed'?"),
        (BASE + "steps: {timed: some}\n", "s.yml:3: steps_timed: 'some' is no whole number"),
        (BASE + "steps: {timed: 0}\n", "s.yml:3: steps_timed: 0 is not allowed"),
        ("name: x\nbase: {workload: replay, steps_timed: 3}\nsteps: {timed: 5}\n", "s.yml:2: base gives steps_timed"),
        (BASE + "zip:\n  - {workers: [1, 2], prefetch: [1]}\n", "s.yml:4: axes of a zip group have different numbers"),
        (BASE + "matrix: {workers: [1]}\nzip: {workers: [1]}\n", "s.yml:4: workers is varied twice"),
        (BASE + "exclude: [{}]\n", "s.yml:3: an item of exclude is empty and would match every combination"),
        (BASE + "exclude: [{where: 'True', workers: 1}]\n", "s.yml:3: where stands alone in an item of exclude"),
        (BASE + "exclude:\n  - where: 'worker > 1'\n", "s.yml:4: where of exclude: an expression has no name 'worker'"),
        (BASE + "exclude:\n  - where: 'workers >'\n", "s.yml:4: where of exclude: 'workers >' is no expression"),
        (BASE + "when: [{set: {workers: 1}}]\n", "s.yml:3: an item of when needs both `where` and `set`"),
        (
            BASE + "matrix: {workers: [1]}\nwhen:\n  - where: workers\n    set: {workers: 2}\n",
            "s.yml:5: when sets workers, which the matrix varies",
        ),
        (BASE + "derive: {cpu_cors: '1'}\n", "s.yml:3: unknown axis 'cpu_cors' in derive; did you mean 'cpu_cores'?"),
        (
            BASE + "derive: {cpu_cores: workers, workers: cpu_cores}\n",
            "s.yml:3: derived values need each other in a circle: cpu_cores → workers → cpu_cores",
        ),
        (BASE + "parts: [{matrx: {}}]\n", "s.yml:3: unknown key 'matrx' in a part; did you mean 'matrix'?"),
        ("name: x\nbase: {workload: }\n", "s.yml:2: workload: nothing is no text"),
        ("name: x\nbase: {workload: [a]}\n", "s.yml:2: workload takes text, not a list"),
    ],
)
def test_one_clear_message(text: str, message: str) -> None:
    found = problems(text)
    assert len(found) == 1, found
    assert message in found[0]


def test_a_derived_value_may_start_from_the_axis_itself() -> None:
    sweep = parse_sweep(BASE + "derive: {cpu_cores: 'min(cpu_cores, 4)'}\n")
    assert sweep.grids[0].derive["cpu_cores"].text == "min(cpu_cores, 4)"
