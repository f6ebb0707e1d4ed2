"""ResNet50 and ResNet34 on a GPU, our session and the plain torchvision loop; started by ``bench_workloads.py``.

Synthetic: one batch that lies on the device. From files: ``torch_fast`` under our step clock, and the usual DataLoader,
with page-locked memory; for ours also the share of time in which the step waits for a batch or its copy. Loaders fill
their buffers while the other side has its turn, so as many steps as they can hold are not counted in each block.
``--rehearse`` goes through the same cases on the CPU, with tiny images and batches, to show that they run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from bench_pipelines import DATA, make_photographs
from pipelines_usual import usual_torch
from workloads_pairs import EVENTS, Readings, Side, answer, context, in_turn, session_of, timed, under_the_step_clock

from harness import catalog
from harness.model.event import STEP_COLUMNS
from harness.pipelines.torchvision_compat import torchvision
from harness.runtime.feeds import fed

REHEARSAL = "--rehearse" in sys.argv
#: precision, channels last, compiled
Case = tuple[str, bool, bool]
MODELS = ("resnet50", "resnet34")
CASES: list[Case] = [("fp32", False, False), ("tf32", False, False), ("bf16", False, False), ("bf16", True, False)]
CASES += [("bf16", True, True)]
SIDE, BATCH = (64, 2) if REHEARSAL else (224, 64)
ROUNDS, STEPS, STEPS_FROM_FILES = 6, 20, 60
#: batches of a loader's worker: those that are ready, and the one that it makes
HELD_BY_WORKER = 3

Supply = Iterator[tuple[Any, Any]]


def case(model: str, precision: str, channels_last: bool, compiled: bool, **axes: Any) -> Any:
    """The context of one case; imagenet's images at this benchmark's size."""
    options = {"image_size": SIDE}
    gpus = 0 if REHEARSAL else 1
    axes = {"model": model, "precision": precision, "channels_last": channels_last, "compile": compiled} | axes
    return context("resnet_imagenet", "torch", batch_size=BATCH, gpus_per_rank=gpus, options=options, **axes)


def layout_of(made: Any) -> torch.memory_format:
    return torch.channels_last if made.axes.channels_last else torch.contiguous_format


def held_on_device(made: Any) -> Supply:
    """One batch on the device, in the layout of the model, for ever."""
    images = torch.rand(BATCH, 3, SIDE, SIDE).to(made.device, memory_format=layout_of(made))
    return itertools.repeat((images, torch.zeros(BATCH, dtype=torch.long, device=made.device)))


def plain(made: Any, supply: Supply) -> Callable[[int], None]:
    """The loop of the tutorials: nothing waits for the device before the end of the block."""
    axes, device, layout = made.axes, torch.device(made.device), layout_of(made)
    model = getattr(torchvision.models, axes.model)().to(device=device, memory_format=layout)
    if axes.compile:
        model.compile()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    criterion = torch.nn.CrossEntropyLoss()

    def loop(steps: int) -> None:
        loss = torch.zeros(())
        for images, labels in itertools.islice(supply, steps):
            images = images.to(device, non_blocking=True, memory_format=layout)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.bfloat16, enabled=axes.precision == "bf16"):
                loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
        loss.item()

    return loop


def pipeline_of(made: Any) -> Any:
    return catalog.load(catalog.PIPELINES[made.axes.pipeline].frameworks["torch"])(made)


def ours(made: Any, pipeline: Any, directory: Path) -> Side:
    pipeline, session = fed(made.axes.feed, pipeline, session_of(made))
    return under_the_step_clock(session, pipeline, directory)


def synthetic(kind: Case, model: str, sized: dict[str, int], directory: Path) -> Readings:
    """Both sides with a batch on the device; what they hold there is free again when this returns."""
    made = case(model, *kind, pipeline="synthetic", feed="device")

    sides = {
        "ours": lambda: ours(made, pipeline_of(made), directory),
        "plain torchvision loop": lambda: timed(plain(made, held_on_device(made))),
    }
    return in_turn(sides, **sized)


def from_files(sized: dict[str, int], directory: Path) -> Readings:
    """Both sides with a loader worker for each core."""
    workers = len(os.sched_getaffinity(0))
    make_photographs(DATA, workers)
    made = case("resnet50", "bf16", True, False, pipeline="torch_fast", workers=workers, prefetch=2)
    made = replace(made, data_path=DATA / "imagenet")
    with closing(pipeline_of(made)) as pipeline:
        usual = usual_torch(DATA / "imagenet", workers, BATCH, SIDE, pin_memory=not REHEARSAL)
        sides = {"ours": lambda: ours(made, pipeline, directory), "usual DataLoader": lambda: timed(plain(made, usual))}
        return in_turn(sides, **sized, lead=HELD_BY_WORKER * workers)


def waiting(directory: Path, steps: int) -> float:
    """Percent of the last ``steps`` steps' time that was spent on getting a batch and on its copy."""
    (events,) = directory.glob(f"*/{EVENTS}")
    records = [json.loads(line) for line in events.read_text().splitlines()]
    columns = [[record[name] for name in STEP_COLUMNS[:4]] for record in records if record["event"] == "steps"]
    rows = [row for block in columns for row in zip(*block, strict=True)][-steps:]
    return 100 * sum(wait_s + copy_s for *_, wait_s, copy_s in rows) / (rows[-1][1] - rows[0][0])


def measure(options: argparse.Namespace, directory: Path) -> Iterator[tuple[str, Any]]:
    if not (torch.cuda.is_available() or REHEARSAL):
        yield "skipped", "torch sees no GPU here"
        return
    trial = options.quick or REHEARSAL
    sized = {"sittings": 1, "rounds": 2 if trial else options.rounds or ROUNDS}
    cases = [kind for kind in CASES if not (REHEARSAL and kind[0] == "tf32")]
    for model, kind in itertools.product(MODELS, cases[: 2 if options.quick else None]):
        words = [kind[0], *(["channels_last"] if kind[1] else []), *(["compiled"] if kind[2] else [])]
        name = f"{model}, synthetic, {', '.join(words)}"
        yield name, synthetic(kind, model, sized | {"steps": 2 if trial else STEPS}, directory)
    sized["steps"] = 4 if trial else STEPS_FROM_FILES
    files = directory / "files"
    files.mkdir()
    yield "resnet50, bf16, channels_last, from files", from_files(sized, files)
    yield "share of time that resnet50 waits, from files", waiting(files, sized["steps"])


if __name__ == "__main__":
    answer(measure)
