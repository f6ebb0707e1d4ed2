"""ResNet50 and ResNet34 on a GPU, our session and the plain torchvision loop; started by ``bench_workloads.py``.

Synthetic: one batch that lies on the device. From files: ``torch_fast`` under our step clock, and the usual DataLoader;
for ours also the share of time in which the step waits for a batch or its copy. ``--rehearse`` goes through the same
cases on the CPU, with tiny images and batches, to show that they run.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pipelines_usual import usual_torch
from workloads_pairs import answer, by_the_clock, context, in_turn, session_of, under_the_step_clock

from harness import catalog
from harness.model.event import STEP_COLUMNS
from harness.pipelines.torchvision_compat import torchvision
from harness.runtime.feeds import fed

REHEARSAL = "--rehearse" in sys.argv
MODELS = ("resnet50", "resnet34")
#: precision, channels last, compiled
CASES = [("fp32", False, False), ("tf32", False, False), ("bf16", False, False), ("bf16", True, False)]
CASES += [("bf16", True, True)]
SIDE, BATCH = (64, 2) if REHEARSAL else (224, 64)
DATA = Path(__file__).parents[1] / "results/data/bench/imagenet"


def case(model: str, precision: str, channels_last: bool, compiled: bool, **axes: Any) -> Any:
    """The context of one case; imagenet's images at this benchmark's size."""
    options = {"image_size": SIDE}
    gpus = 0 if REHEARSAL else 1
    axes = {"model": model, "precision": precision, "channels_last": channels_last, "compile": compiled} | axes
    return context("resnet_imagenet", "torch", batch_size=BATCH, gpus_per_rank=gpus, options=options, **axes)


def plain(made: Any, supply: Iterator[tuple[Any, Any]]) -> Callable[[int], None]:
    """The loop of the tutorials: nothing waits for the device before the end of the block."""
    axes, device = made.axes, torch.device(made.device)
    layout = torch.channels_last if axes.channels_last else torch.contiguous_format
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


def ours(made: Any, directory: Path) -> Callable[[int], float]:
    build = catalog.load(catalog.PIPELINES[made.axes.pipeline].frameworks["torch"])
    pipeline, session = fed(made.axes.feed, build(made), session_of(made))
    return under_the_step_clock(session, pipeline, directory)


def waiting(directory: Path) -> float:
    """Percent of the steps' time, in the last steps that were recorded, spent on getting a batch and on its copy."""
    newest = max(directory.glob("events.*.jsonl"), key=lambda path: path.stat().st_mtime)
    records = [json.loads(line) for line in newest.read_text().splitlines()]
    last = [record for record in records if record["event"] == "steps"][-1]
    columns = [last[name] for name in STEP_COLUMNS[:4]]
    elapsed_s = columns[1][-1] - columns[0][0]
    return 100 * (sum(columns[2]) + sum(columns[3])) / elapsed_s


def measure(quick: bool, directory: Path) -> Iterator[tuple[str, Any]]:
    if not (torch.cuda.is_available() or REHEARSAL):
        yield "skipped", "torch sees no GPU here"
        return
    blocks, steps = (2, 2) if quick or REHEARSAL else (6, 30)
    cases = [kind for kind in CASES if not (REHEARSAL and kind[0] == "tf32")]
    for model, kind in itertools.product(MODELS, cases[: 2 if quick else None]):
        made = case(model, *kind, pipeline="synthetic", feed="device")
        held = (
            torch.rand(BATCH, 3, SIDE, SIDE, device=made.device),
            torch.zeros(BATCH, dtype=torch.long).to(made.device),
        )
        sides = {
            "ours": ours(made, directory),
            "plain torchvision loop": by_the_clock(plain(made, itertools.repeat(held))),
        }
        words = [kind[0], *(["channels_last"] if kind[1] else []), *(["compiled"] if kind[2] else [])]
        yield f"{model}, synthetic, {', '.join(words)}", in_turn(sides, blocks, steps)
    workers = len(made.cpus)
    made = replace(case("resnet50", "bf16", True, False, pipeline="torch_fast", workers=workers), data_path=DATA)
    usual = by_the_clock(plain(made, usual_torch(DATA, workers)))
    yield (
        "resnet50, bf16, from files",
        in_turn({"ours": ours(made, directory), "usual DataLoader": usual}, blocks, steps),
    )
    yield "share of time that resnet50 waits, from files", waiting(directory)


if __name__ == "__main__":
    answer(measure)
