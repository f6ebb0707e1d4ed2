from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from runtime_support import events, of_kind, step_column

from harness.errors import UserError
from harness.files import read_json_lines
from harness.model.event import STEP_COLUMNS
from harness.runtime.clock import VirtualClock
from harness.runtime.events import FLUSH_STEPS, EventWriter


@pytest.fixture
def clock() -> VirtualClock:
    clock = VirtualClock()
    clock.sleep(5.0)
    return clock


@pytest.fixture
def writer(tmp_path: Path, clock: VirtualClock) -> EventWriter:
    return EventWriter(tmp_path / "events.r0.jsonl", clock)


def row(begin_s: float, end_s: float) -> tuple[float | int | None, ...]:
    return (begin_s, end_s, 0.0, 0.0, end_s - begin_s, 0.0, 4, 4, None)


def test_times_count_from_the_writers_start(tmp_path: Path, writer: EventWriter, clock: VirtualClock) -> None:
    writer.note("run_start", rank=0)
    clock.sleep(1.5)
    writer.note("model", name="x")
    assert [(event["event"], event["t_s"]) for event in events(tmp_path)] == [("run_start", 0.0), ("model", 1.5)]


def test_steps_are_written_after_the_first_then_once_a_second(
    tmp_path: Path, writer: EventWriter, clock: VirtualClock
) -> None:
    for number in range(25):
        clock.sleep(0.1)
        writer.step(number, row(number * 0.1, number * 0.1 + 0.1), 1.0)
    # after steps 0, 10, 20, when at least a second has passed since the last time
    assert [event["step"] for event in of_kind(events(tmp_path), "steps")] == [
        [0],
        list(range(1, 11)),
        list(range(11, 21)),
    ]
    writer.end(ok=True)
    records = events(tmp_path)
    assert step_column(records, "step") == list(range(25))
    assert set(of_kind(records, "steps")[0]) == {"event", "t_s", "step", *STEP_COLUMNS}
    assert [(event["step"], event["value"]) for event in of_kind(records, "loss")] == [
        (n, 1.0) for n in (0, 10, 20, 24)
    ]


def test_very_short_steps_are_written_by_number(tmp_path: Path, writer: EventWriter) -> None:
    for number in range(FLUSH_STEPS + 5):
        writer.step(number, row(0.0, 1e-6), 0.0)
    assert [len(event["step"]) for event in of_kind(events(tmp_path), "steps")] == [1, FLUSH_STEPS]


@pytest.mark.parametrize(("step_s", "steps"), [(0.005, 100_000), (0.9, 10_000)])
def test_evidence_of_many_steps_stays_small(tmp_path: Path, writer: EventWriter, step_s: float, steps: int) -> None:
    """At most 100 bytes for a step and 350 for each second, in which the steps are written once."""
    generator, now_s = random.Random(1), 0.0
    for number in range(steps):
        end_s = now_s + step_s * (1 + 0.1 * generator.random())
        wait_s, copy_s = 0.1 * generator.random() * step_s, 0.01 * generator.random() * step_s
        writer.step(number, (now_s, end_s, wait_s, copy_s, end_s - now_s - wait_s - copy_s, 0.0, 256, 256, 7), 2.3)
        now_s = end_s
    writer.end(ok=True)
    assert (tmp_path / "events.r0.jsonl").stat().st_size < 100 * steps + 350 * now_s


def test_nothing_follows_the_end(tmp_path: Path, writer: EventWriter) -> None:
    writer.end(ok=True)
    writer.note("model", name="late")
    writer.end(ok=False)
    assert [(event["event"], event.get("ok")) for event in events(tmp_path)] == [("run_end", True)]


def test_numbers_that_json_lacks_become_null(tmp_path: Path, writer: EventWriter) -> None:
    writer.note("model", a=float("nan"), b=[float("inf"), 1.0], c={"d": float("-inf")})
    [event] = events(tmp_path)
    assert (event["a"], event["b"], event["c"]) == (None, [None, 1.0], {"d": None})


def test_a_phase_is_closed_by_an_error_too(tmp_path: Path, writer: EventWriter, clock: VirtualClock) -> None:
    with pytest.raises(ValueError), writer.span("build"):
        clock.sleep(0.25)
        raise ValueError
    assert [(e["name"], e["begin_s"], e["end_s"]) for e in events(tmp_path)] == [("build", 0.0, 0.25)]


def test_an_error_keeps_its_traceback_and_the_steps_before_it(tmp_path: Path, writer: EventWriter) -> None:
    writer.step(0, row(0, 0.1), 1.0)
    writer.step(1, row(0.1, 0.2), 1.0)
    try:
        raise RuntimeError("disk «full»\n$(boom)")
    except RuntimeError as error:
        writer.error(error)
    records = events(tmp_path)
    assert step_column(records, "step") == [0, 1]
    [error_event] = of_kind(records, "error")
    assert (error_event["type"], error_event["message"]) == ("RuntimeError", "disk «full»\n$(boom)")
    assert "test_events.py" in error_event["traceback"]


def test_an_attempt_is_never_written_twice(tmp_path: Path, writer: EventWriter, clock: VirtualClock) -> None:
    writer.note("run_start")
    before = (tmp_path / "events.r0.jsonl").read_bytes()
    with pytest.raises(UserError, match="this attempt has run already"):
        EventWriter(tmp_path / "events.r0.jsonl", clock)
    assert (tmp_path / "events.r0.jsonl").read_bytes() == before


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path, clock: VirtualClock) -> None:
    with pytest.raises(UserError, match="cannot write .*gone.*No such file"):
        EventWriter(tmp_path / "gone" / "events.r0.jsonl", clock)


def test_a_torn_tail_costs_only_itself(tmp_path: Path, writer: EventWriter) -> None:
    writer.note("run_start")
    writer.note("model", name="x")
    path = tmp_path / "events.r0.jsonl"
    path.write_bytes(path.read_bytes()[:-7])
    torn: list[int] = []
    assert [record["event"] for record in read_json_lines(path, torn)] == ["run_start"]
    assert torn == [2]


def test_threads_do_not_mix_their_lines(tmp_path: Path, writer: EventWriter) -> None:
    def write(name: str) -> None:
        for _ in range(200):
            writer.note("finding", code=name * 50)

    threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(events(tmp_path)) == 800


def test_what_was_done_is_counted_with_the_steps(tmp_path: Path, writer: EventWriter) -> None:
    for number, (fresh, consumed) in enumerate([(4, 8), (0, 8), (4, 8)]):
        writer.step(number, (0.0, 0.1, 0.0, 0.0, 0.1, 0.0, fresh, consumed, 2), 0.5)
    writer.end(ok=False)
    assert events(tmp_path)[-1] == {
        "event": "run_end",
        "t_s": 0.0,
        "ok": False,
        "steps": 3,
        "fresh_images": 8,
        "consumed_images": 24,
    }


def test_a_signal_waits_for_the_record_to_be_whole(tmp_path: Path, clock: VirtualClock) -> None:
    """The signal comes while the clock is read, in the middle of a record."""

    class Interrupting(VirtualClock):
        def now(self) -> float:
            if self.armed:
                self.armed = False
                writer.deferral.throw(KeyboardInterrupt())
            return super().now()

        armed = False

    interrupting = Interrupting()
    writer = EventWriter(tmp_path / "events.r0.jsonl", interrupting)
    interrupting.armed = True
    with pytest.raises(KeyboardInterrupt):
        writer.step(0, row(0.0, 0.1), 1.0)
    assert step_column(events(tmp_path), "step") == [0]
    writer.note("model", name="later")  # thrown once only
    with pytest.raises(KeyboardInterrupt):
        writer.deferral.throw(KeyboardInterrupt())  # outside a record: at once
