"""Foreign logs as programs really wrote them (tests/transcripts/foreign), and forms that users posted."""

from __future__ import annotations

import re
import statistics
from pathlib import Path

import pytest

from harness.analysis.foreign import patterns, table
from harness.analysis.foreign.rates import rates
from harness.analysis.foreign.segments import Segment, segments

LOGS = Path(__file__).resolve().parents[2] / "transcripts" / "foreign"


def only(text: str, name: str, **given: float) -> Segment:
    (segment,) = segments(text, patterns.load(name), given)
    return segment


def test_horovod_under_mpirun_counts_both_ranks_and_overstates_uneven_iterations() -> None:
    log = LOGS / "horovod_torch_two_ranks.log"
    (row,) = table.collect_logs([log], patterns.load("horovod_synthetic"), {}).frame().to_dict("records")
    printed = [float(rate) for rate in re.findall(r"Iter #\d+: ([.\d]+)", log.read_text())]
    assert (row["model"], row["batch_size"], row["ranks"], row["steps"]) == ("shufflenet_v2_x0_5", 8, 2, 16)
    assert row["published_images_per_s"] == 5.6
    assert row["mean_of_step_rates"] == pytest.approx(2 * statistics.mean(printed[row["warmup_steps"] :]))
    assert row["elapsed_images_per_s"] == pytest.approx(2 * statistics.harmonic_mean(printed[row["warmup_steps"] :]))
    assert row["overstated"] > 1.1 and "times what" in row["remark"] and "printed to ±2% only" in row["remark"]


def test_horovod_of_tensorflow() -> None:
    found = rates(
        only((LOGS / "horovod_tensorflow_two_ranks.log").read_text(), "horovod_synthetic"),
        patterns.load("horovod_synthetic"),
    )
    printed = [12.0, 7.0, 7.7, 11.2, 9.2, 11.5, 8.3, 10.0, 4.9, 5.1, 7.1, 2.5]
    assert (found.published, found.steps) == (16.1, 12)
    assert found.elapsed == pytest.approx(2 * statistics.harmonic_mean(printed[found.warmup :]))
    assert found.published / found.elapsed > 1.15


@pytest.mark.parametrize(
    ("verbose", "milliseconds"),
    [
        (1, {32: [31, 18, 8, 10, 8, 20, 10], 128: [117, 44, 34, 48, 27, 31, 37]}),
        (2, {32: [82, 15, 11, 26, 20, 15, 10], 128: [176, 114, 78, 78, 30, 47, 89]}),
    ],
)
def test_keras_fits_are_told_apart_and_evaluation_is_no_epoch(verbose: int, milliseconds: dict[int, list[int]]) -> None:
    text = (LOGS / f"keras_fit_verbose{verbose}.log").read_text()
    found = segments(text, patterns.load("keras"))
    assert [segment.configuration for segment in found] == [
        {"batch_size": batch, "epochs": 7.0} for batch in milliseconds
    ]
    for segment, (batch, printed) in zip(found, milliseconds.items(), strict=True):
        assert segment.steps.columns["step_s"] == pytest.approx([ms / 1000 for ms in printed])
        assert set(segment.steps.columns["steps"]) == {896 // batch}
        assert rates(segment, patterns.load("keras")).validated
    found = table.collect_logs([LOGS / f"keras_fit_verbose{verbose}.log"], patterns.load("keras"), {})
    assert all("step times hold the validation" in row["remark"] for row in found.rows)


def test_an_epochs_last_step_written_twice_is_one_epoch() -> None:
    # slow steps: the bar reaches the end before the validation, and is written anew after it
    lines = "10/10 [==========] - ETA: 0s - loss: 2.0\r10/10 ━━━━ 0s 97ms/step - loss: 2.0\r"
    lines += "10/10 ━━━━ 3s 140ms/step - loss: 2.0 - val_loss: 2.1\n"
    segment = only("".join(f"Epoch {n}/6\n{lines}" for n in range(1, 7)), "keras", batch_size=4.0)
    assert segment.steps.columns["step_s"] == pytest.approx([0.097] * 6)
    assert not rates(segment, patterns.load("keras")).validated


def test_older_keras_with_verbose_2() -> None:
    line = "782/782 - 12s - loss: 1.2345 - accuracy: 0.5 - 12s/epoch - 15ms/step\n"
    segment = only("".join(f"Epoch {n}/6\n{line}" for n in range(1, 7)), "keras", batch_size=64.0)
    assert segment.steps.row(5) == pytest.approx({"steps": 782, "step_s": 0.015})


def tf_cnn(workers: int, per_device: int, gpus: int, total: bool = True) -> str:
    """A log of tf_cnn_benchmarks in which each worker writes every line; step 1 to 10 take 0.1 s, later ones 0.2 s."""
    devices = ", ".join(f"'horovod/gpu:{n}'" for n in range(workers * gpus))
    head = "TensorFlow:  1.10\nModel:       resnet101\nDataset:     imagenet (synthetic)\nMode:        training\n"
    head += f"Batch size:  {workers * gpus * per_device} global\n             {float(per_device)} per device\n"
    head += f"Num batches: 100\nDevices:     [{devices}]\nData format: NCHW\nVariables:   horovod\n==========\n"
    text = head * workers + "Step\tImg/sec\ttotal_loss\n" * workers
    batch = per_device * gpus
    for step in (1, *range(10, 101, 10)):
        elapsed_s = 0.1 * min(step, 10) + 0.2 * max(step - 10, 0)
        line = f"{step}\timages/sec: {batch * step / elapsed_s:.4f} +/- 0.4 (jitter = 1.8)\t8.734\n"
        text += line * (workers if step < 100 or workers == 1 else workers - 1)
        last = line if workers > 1 else ""
    # the last line of one worker comes after another's total, as it may
    rule = "-" * 64 + "\n"
    end = f"{rule}total images/sec: {workers * batch * 100 / 19.0:.2f}\n{rule}"
    return text + end + last + end * (workers - 1) if total else text + last


@pytest.mark.parametrize(("workers", "gpus"), [(1, 1), (8, 1), (1, 2), (2, 4)])
def test_workers_of_tf_cnn_benchmarks_are_counted(workers: int, gpus: int) -> None:
    found = rates(only(tf_cnn(workers, 64, gpus), "tf_cnn_benchmarks"), patterns.load("tf_cnn_benchmarks"))
    assert found.steps == 11
    assert found.published == pytest.approx(64 * gpus * workers * 100 / 19.0, rel=1e-4)
    assert found.steady.value == pytest.approx(64 * gpus * workers / 0.2, rel=1e-3)


def test_workers_that_no_total_tells_are_asked_for() -> None:
    pattern, text = patterns.load("tf_cnn_benchmarks"), tf_cnn(8, 64, 1, total=False)
    found = rates(only(text, "tf_cnn_benchmarks"), pattern)
    assert "ranks=N" in found.reason and not found.honest > 0
    assert rates(only(text, "tf_cnn_benchmarks", ranks=8.0), pattern).steady.value == pytest.approx(8 * 320, rel=1e-3)


def test_dllogger_of_torch_as_text() -> None:
    stamp = "DLL 2020-09-15 14:29:13.473765 - "
    text = f"{stamp}PARAMETER data : /data  arch : resnet50  workers : 8  batch_size : 128  "
    text += "amp : False  world_size : 16 \n"
    ips = [267.44, 4294.91] + [10000.0] * 10
    text += "".join(
        f"{stamp}Epoch: 0 Iteration: {n}  train.loss : 7.09304  train.total_ips : {rate} img/s\n"
        for n, rate in enumerate(ips, 1)
    )
    text += f"{stamp}Epoch: 0  train.loss : 6.9  train.total_ips : 9012.3 img/s\n"
    text += f"{stamp}Summary: train.loss : 6.9  train.total_ips : 9012.3 img/s\n"
    segment = only(text, "dllogger")
    assert segment.configuration == {"model": "resnet50", "batch_size": 128, "ranks": 16, "workers": 8}
    found = rates(segment, patterns.load("dllogger"))
    assert (found.published, found.steps, found.steady.value) == (9012.3, 12, pytest.approx(10000))


def test_dllogger_of_tensorflow_overstates_by_its_arithmetic_mean() -> None:
    # NVIDIA/DeepLearningExamples issue 1264: train_throughput is the mean of the steps' rates
    ips = [3000.0, 1000.0] * 20
    text = "".join(
        f"DLL 2021-03-23 11:48:38.824370 - (0, {n}) total_ips : {rate} \n" for n, rate in enumerate(ips, 120)
    )
    text += "DLL 2021-03-23 11:48:48.824370 - () train_throughput : 2000.0 \n"
    found = rates(only(text, "dllogger"), patterns.load("dllogger"))
    assert found.published == 2000
    assert found.elapsed == pytest.approx(1500)
    assert found.overstated == pytest.approx(2000 / 1500, rel=0.02) and found.parts


def test_the_exercises_of_alcf_write_steps_without_their_epoch() -> None:
    text = "threading set:  4 4\n" + '{\n    "prefetch_buffer_size": 2,\n    "batch_size": 256\n}\n'
    text += "".join(f"Finished step {n}, loss=7.012, acc=0.001 (120.000 img/s).\n" for n in range(8))
    text += "#####\nThreads = 4, Prefetch = 2\nmean image/s =   120.00   standard deviation:     0.00\n#####\n"
    found = rates(only(text, "alcf"), patterns.load("alcf"))
    assert (found.published, found.steps, found.steady.value) == (120.0, 8, pytest.approx(120))


@pytest.mark.parametrize("mark", ["[1,0]<stdout>:", "[prterun-n1-217@1,0]<stdout>: ", "[0]<stdout>:"])
def test_marks_of_mpirun_and_horovodrun_are_no_part_of_a_line(mark: str) -> None:
    text = "".join(mark + line + "\n" for line in tf_cnn(1, 64, 1).splitlines())
    found = rates(only(text, "tf_cnn_benchmarks"), patterns.load("tf_cnn_benchmarks"))
    assert found.steady.value == pytest.approx(320, rel=1e-3)


def test_lines_that_were_cut_off_or_mixed_up_are_no_steps() -> None:
    text = "Model: a\nBatch size: 8\nNumber of CPUs: 2\nIter #0: 4.0 img/sec per CPU\n"
    text += "Iter #1: . img/sec per CPU\nIter #2: 4.0 img/s\nIter #3: 4.0 imgIter #3: 4.1 img/sec per CPU\n\x00\x00\n"
    segment = only(text, "horovod_synthetic")
    assert segment.steps.columns["images_per_s"] == [4.0, 4.1]
    assert rates(segment, patterns.load("horovod_synthetic")).elapsed == pytest.approx(2 * 2 / (1 / 4.0 + 1 / 4.1))


def test_a_result_without_its_steps_is_told_and_leaves_the_ranks_unknown() -> None:
    # as a log whose step lines were written over: the devices are named, and there is nothing to count workers by
    text = "Batch size:  128 global\n             64 per device\ntotal images/sec: 620.00\n"
    found = rates(only(text, "tf_cnn_benchmarks"), patterns.load("tf_cnn_benchmarks"))
    assert (found.published, found.steps) == (620.0, 0)
    assert found.reason == "the log has no line for each step"


def test_line_numbers_count_what_launchers_marked_and_left_empty() -> None:
    run = "Model: a\nBatch size: 8\nNumber of CPUs: 1\nIter #0: 4.0 img/sec per CPU\n"
    marked = "".join(f"[prterun-n1-7@1,0]<stdout>:{line}\n" for line in ["", *run.splitlines(), "", *run.splitlines()])
    # mpirun's own line begins as a mark does, and ends nowhere
    assert [segment.line for segment in segments("[\n" + marked, patterns.load("horovod_synthetic"))] == [1, 8]


def test_versions_of_a_line_that_was_written_over_share_its_number() -> None:
    run = (
        "Epoch 1/2\n1/2 [=>] - 0s 9ms/step\r2/2 [==] - 1s 15ms/step - loss: 1\r\nEpoch 2/2\n2/2 [==] - 1s 15ms/step\r\n"
    )
    found = segments(run * 3, patterns.load("keras"))
    assert [(segment.line, len(segment.steps)) for segment in found] == [(1, 2), (5, 2), (9, 2)]


def test_numbers_of_some_lines_only() -> None:
    text = "5/5 [==] - 1s 15ms/step\nEpoch 2/3\n5/5 [==] - 1s 16us/step - loss: 2.0 - val_loss: 2.1\n"
    text += "Epoch 3/3\n5/5 [==] - 1s 1s/step - loss: 2.0 - val_loss: e\n"
    segment = only(text, "keras", batch_size=2.0)
    assert segment.steps.columns["val_loss"] == [None, 2.1, None]
    assert segment.steps.columns["step_s"] == pytest.approx([0.015, 16e-6, 1.0])
    assert segment.steps.row(2) == pytest.approx({"steps": 5, "step_s": 1.0})
    assert rates(segment, patterns.load("keras")).validated


def test_steps_that_tell_a_time_beside_steps_that_tell_a_rate(tmp_path: Path) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(
        "name: mine\ndescription: two forms of one line\n"
        "steps:\n"
        "- 'step (?P<step>\\d+): (?P<step_s>[.\\d]+) ?(?P<step_s_unit>ms)?'\n"
        "- '(?P<images_per_s>[.,\\d]+) img/s'\n"
    )
    text = "step 1: 500 ms 9 img/s\n1,000.0 img/s\nstep 2: .5.\nstep 3: 2\n"
    segment = only(text, str(path), batch_size=4.0)
    assert segment.steps.columns["images_per_s"] == [None, 1000.0, None]
    assert segment.steps.columns["step_s"] == [0.5, None, 2.0]
    assert rates(segment, patterns.load(str(path))).elapsed == pytest.approx(3 * 4 / (0.5 + 0.004 + 2))
