"""Foreign logs: each shipped pattern reads its program's lines, and the honest rate is the harmonic one."""

from __future__ import annotations

import gzip
import json
import math
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from click.testing import CliRunner, Result

from harness.analysis.foreign import patterns, table
from harness.analysis.foreign.rates import rates
from harness.analysis.foreign.segments import Segment, segments
from harness.cli.main import cli
from harness.errors import UserError

# 256 images a step: one that compiles, 8 that drain the buffer at 1280 img/s, 16 at the loader's 64 img/s
ALCF_RATES = [12.8] + [1280.0] * 8 + [64.0] * 16


def alcf(rates: list[float], threads: int, published: float) -> str:
    lines = [f"threading set:  {threads} {threads}", "{", f'    "parallel_threads": {threads},']
    lines += ['    "prefetch_buffer_size": 8,', '    "batch_size": 256', "}"]
    lines += [
        f"Finished step {n} of {len(rates)} in epoch 0,loss=7.{n:03d}, acc=0.001 ({rate:.3f} img/s)."
        for n, rate in enumerate(rates, 1)
    ]
    lines.append(f"mean image/s = {published:8.2f}   standard deviation: {1.5:8.2f}")
    return "\n".join(lines) + "\n"


def one(text: str, name: str, **given: float) -> Segment:
    (segment,) = segments(text, patterns.load(name), given)
    return segment


def test_a_draining_buffer_parts_published_from_honest(tmp_path: Path) -> None:
    log = tmp_path / "a.out"
    log.write_text(alcf(ALCF_RATES, 1, 469.3))
    (row,) = table.collect_logs([log], patterns.load("alcf"), {}).frame().to_dict("records")
    assert (row["parallel_threads"], row["prefetch_buffer_size"], row["steps"]) == (1, 8, 25)
    assert (row["warmup_steps"], row["left_out_steps"]) == (1, 9)
    assert row["published_images_per_s"] == 469.3
    assert row["mean_of_step_rates"] == pytest.approx((8 * 1280 + 16 * 64) / 24)
    assert row["elapsed_images_per_s"] == pytest.approx(24 / (8 / 1280 + 16 / 64))
    assert row["images_per_s"] == pytest.approx(64)
    assert row["overstated"] == pytest.approx(469.3 / 64)
    assert row["remark"] == "published 7.33 times what is sustained"


def test_equal_rates_do_not_part() -> None:
    found = rates(one(alcf([100.0] * 20, 4, 100.0), "alcf"), patterns.load("alcf"))
    assert (found.elapsed, found.steady.value, found.parts, found.reason) == (
        pytest.approx(100),
        pytest.approx(100),
        False,
        "",
    )


def test_configurations_in_one_file_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "grid.out.gz"
    log.write_bytes(gzip.compress((alcf([80.0] * 10, 1, 80.0) + alcf([160.0] * 10, 16, 160.0)).encode()))
    found = table.collect_logs([log], patterns.load("alcf"), {}).frame()
    assert list(found["parallel_threads"]) == [1, 16]
    assert list(found["images_per_s"].round(6)) == [80, 160]
    assert list(found["line"]) == [1, 18]


def test_too_few_steps_give_no_steady_rate() -> None:
    found = rates(one(alcf([100.0] * 3, 4, 100.0), "alcf"), patterns.load("alcf"))
    assert "3 steps" in found.reason
    assert found.elapsed == pytest.approx(100)
    assert not found.steady.known


@pytest.mark.parametrize(
    "line",
    [
        "782/782 [==============================] - 12s 15ms/step - loss: 1.2345 - accuracy: 0.5",
        "\x1b[1m782/782\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m12s\x1b[0m 15ms/step - acc: 0.5 - loss: 1.2345",
        # as Keras 3.15 wrote it into a file
        "\x1b[1m  1/782\x1b[0m \x1b[37m━━\x1b[0m \x1b[1m8s\x1b[0m 97ms/step - loss: 2.3\x08\x08\x08\x08\x08"
        "\x1b[1m782/782\x1b[0m \x1b[32m━━\x1b[0m\x1b[37m\x1b[0m \x1b[1m1s\x1b[0m 15ms/step - loss: 1.2345",
        "  1/782 [....] - ETA: 2:10 - loss: 2.3\x08\x08\x08\r782/782 [====] - 12s 15ms/step - loss: 1.2345",
    ],
    ids=["keras2", "keras3", "keras3 in a file", "keras2 overwritten"],
)
def test_keras(line: str) -> None:
    segment = one("".join(f"Epoch {n}/6\n{line}\n" for n in range(1, 7)), "keras", batch_size=64.0)
    assert len(segment.steps) == 6
    assert segment.steps.row(0) == pytest.approx({"steps": 782, "step_s": 0.015})
    assert rates(segment, patterns.load("keras")).steady.value == pytest.approx(64 / 0.015)


def test_keras_without_its_batch_size_says_what_to_give() -> None:
    found = rates(one("10/10 [===] - 1s 15ms/step - loss: 1\n", "keras"), patterns.load("keras"))
    assert found.reason == "the batch size is not in the log: give --fact batch_size=N"


def test_tf_cnn_benchmarks_means_are_taken_apart() -> None:
    # 64 images a step; steps 1 to 10 take 0.1 s each, 11 to 20 take 0.2 s each
    text = "Model:       resnet50\nBatch size:  64 global\n             64 per device\nStep\tImg/sec\ttotal_loss\n"
    for step in range(1, 21):
        elapsed_s = 0.1 * min(step, 10) + 0.2 * max(step - 10, 0)
        text += f"{step}\timages/sec: {64 * step / elapsed_s:.6f} +/- 0.0 (jitter = 0.0)\t7.5\n"
    segment = one(text + "total images/sec: 426.67\n", "tf_cnn_benchmarks")
    assert (segment.configuration["model"], segment.configuration["batch_size"]) == ("resnet50", 64)
    found = rates(segment, patterns.load("tf_cnn_benchmarks"))
    assert found.published == 426.67
    assert found.elapsed == pytest.approx(64 * 20 / 3)
    assert found.steady.value == pytest.approx(320, rel=1e-4)


def test_horovod_counts_all_ranks() -> None:
    text = "Model: ResNet50\nBatch size: 32\nNumber of GPUs: 4\nRunning warmup...\n"
    text += "".join(f"Iter #{n}: 150.0 img/sec per GPU\n" for n in range(10))
    text += "Img/sec per GPU: 150.0 +-0.0\nTotal img/sec on 4 GPU(s): 600.0 +-0.1\n"
    found = rates(one(text, "horovod_synthetic"), patterns.load("horovod_synthetic"))
    assert (found.published, found.steps, found.steady.value) == (600.0, 10, pytest.approx(600))


def test_dllogger() -> None:
    head = 'DLLL {"timestamp": "1", "elapsedtime": "1", "datetime": "x", "type": "LOG", '
    text = head + '"step": "PARAMETER", "data": {"arch": "resnet50", "batch_size": 256}}\n'
    text += "".join(
        head + f'"step": [0, {n}], "data": {{"train.loss": 7.0, "train.total_ips": 940.5}}}}\n' for n in range(8)
    )
    text += head + '"step": [], "data": {"train.loss": 6.9, "train.total_ips": 938.0}}\n'
    segment = one(text, "dllogger")
    assert segment.configuration == {"model": "resnet50", "batch_size": 256}
    found = rates(segment, patterns.load("dllogger"))
    assert (found.published, found.steps, found.steady.value) == (938.0, 8, pytest.approx(940.5))


def test_aws_epochs_need_their_images() -> None:
    text = "## loss ##: 4.2\n## secs_time_per_epoch ##: 96.0\nEpoch [1/8], 1.0, 0.1, 96.0\n" * 8
    assert "images=N" in rates(one(text, "aws"), patterns.load("aws")).reason
    found = rates(one(text, "aws", images=30607.0), patterns.load("aws"))
    assert found.steady.value == pytest.approx(30607 / 96)


def test_every_shipped_pattern_is_sound() -> None:
    assert patterns.shipped() == ["alcf", "aws", "dllogger", "horovod_synthetic", "keras", "tf_cnn_benchmarks"]
    assert all(patterns.load(name).name == name for name in patterns.shipped())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "name: x\ndescription: y\nsteps:\n- '(?P<step_s>.)'\n- '('\n",
            "mine.yml:5: steps: '(' is not a regular expression",
        ),
        ("name: x\ndescription: y\nsteps: ['rate (?P<rate>.)']\n", "no group images_per_s"),
        ("name: x\ndescription: y\nsteps: ['(?P<images_per_s>.) (?P<losss>.)']\n", "loss"),
        ("name: x\ndescription: y\nunits: {step_s: fortnight}\n", "fortnight"),
        ("name: x\nstep: []\n", "mine.yml: has no description"),
        ("name: x\ndescription: y\nstep: []\n", "mine.yml:3: unknown field 'step'; did you mean 'steps'?"),
        ("name: x\ndescription: 3\n", "mine.yml:2: description: 3 is no text"),
        ("name: x\ndescription: y\nper_rank: often\n", "mine.yml:3: per_rank: 'often' is neither true nor false"),
        ("name: x\ndescription: y\nsteps: 'rate'\n", "mine.yml:3: steps: must be a list"),
        ("name: x\ndescription: y\nsteps: [7]\n", "mine.yml:3: steps: 7 is no text"),
        ("name: x\ndescription: y\nonce_after: '*'\n", "mine.yml:3: once_after: '*' is not a regular expression"),
        ("name: x\ndescription: y\nunits: ms\n", "mine.yml:3: units: must hold"),
        ("name: x\ndescription: y\nunits: {step_s: [s]}\n", "unknown unit ['s']"),
        ("name: x\ndescription: y\n7: z\n", "mine.yml:3: unknown field '7'"),
        pytest.param(f"name: {'[' * 5000}{']' * 5000}\n", "nested too deeply", id="nested"),
        ("- steps\n", "fields are name, description"),
        ("", "fields are name, description"),
        ("- a\n- [", "YAML"),
    ],
)
def test_a_bad_pattern_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(text)
    with pytest.raises(UserError, match="mine.yml") as caught:
        patterns.load(str(path))
    assert told in str(caught.value)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments), standalone_mode=False)


def test_the_verb_prints_writes_and_refuses(tmp_path: Path) -> None:
    for threads, rate in ((1, 80.0), (16, 160.0)):
        (tmp_path / f"t{threads}.out").write_text(alcf([rate] * 20, threads, rate * 1.5))
    glob = str(tmp_path / "*.out")
    shown = call("collect", "--logs", glob, "--pattern", "alcf").output
    assert "2 configurations" in shown and "1.5 times" in shown
    records = json.loads(call("collect", "--logs", glob, "--pattern", "alcf", "--json").output)
    assert [record["parallel_threads"] for record in records] == [1, 16]
    out = tmp_path / "t.parquet"
    call("collect", "--logs", glob, "--pattern", "alcf", "-o", str(out))
    assert list(pd.read_parquet(out)["images_per_s"].round(3)) == [80, 160]
    assert isinstance(call("collect", "--logs", glob, "--pattern", "alfc").exception, UserError)
    assert "alcf" in str(call("collect", "--logs", glob, "--pattern", "alfc").exception)
    assert "no file matches" in str(call("collect", "--logs", str(tmp_path / "*.log"), "--pattern", "alcf").exception)
    assert "shipped patterns" in str(call("collect", "--logs", glob, "--pattern", "keras").exception)


def test_libraries_that_take_as_long_as_the_logs_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "a.out").write_text(alcf([80.0] * 20, 1, 120.0))
    program = (
        "import sys; from harness.cli.main import cli; cli(sys.argv[1:], standalone_mode=False); "
        "print(sorted({'pandas', 'pyarrow', 'pydantic', 'rich', 'matplotlib'} & set(sys.modules)))"
    )
    arguments = ["collect", "--logs", "a.out", "--pattern", "alcf", "-o", "t.csv"]
    told = subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == ["1 configurations in 1 logs → t.csv", "[]"]
    assert (tmp_path / "t.csv").read_text().count("published 1.5 times what is sustained") == 1


def test_logs_read_together_are_read_as_each_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = []
    for number, count in enumerate((3, 9, 25, 30, 200)):
        logs.append(tmp_path / f"{number}.out")
        rates = [12.8] + [64.0 + (7 * step) % 13 for step in range(count)]
        logs[-1].write_text(alcf(rates, number + 1, 70.0) + alcf(rates[1:], 2, 65.0))
    together = table.collect_logs(logs, patterns.load("alcf"), {})
    monkeypatch.setattr(table, "TOGETHER", 1)
    assert together.csv() == table.collect_logs(logs, patterns.load("alcf"), {}).csv()
    assert together.csv() == "".join(
        line
        for number, log in enumerate(logs)
        for line in table.collect_logs([log], patterns.load("alcf"), {}).csv().splitlines(keepends=True)[number > 0 :]
    )


def test_the_csv_is_that_of_pandas() -> None:
    rows = [
        {
            "log": 'a "b", c',
            "steps": 3,
            "images_per_s": 0.1,
            "ranks": 4,
            "model": "größer",
            "mixed": 1,
            "none": math.nan,
        },
        {"log": "d\n", "steps": 10**12, "images_per_s": math.nan, "model": "", "mixed": "x", "none": math.nan},
        {"log": "e", "steps": -1, "images_per_s": 1e-7, "ranks": 2.5, "mixed": 1.5e17, "none": math.nan},
    ]
    found = table.LogTable(list(rows[0]), rows)
    assert found.csv() == found.frame().to_csv(index=False, lineterminator="\n")
