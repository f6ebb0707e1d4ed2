"""Logs of lines of text for bench_collect.py; the same call makes the same bytes.

``columns``: what an event file holds of each step, as ``name=value``. ``alcf``: as the ALCF training series prints.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

STEP_S, IMAGES = 0.1, 64


def make_logs(directory: Path, count: int, steps: int, kind: str) -> Path:
    """``directory`` with ``count`` files ``0.log``, ``1.log`` …"""
    directory.mkdir(parents=True)
    lines = {"columns": _columns, "alcf": _alcf}[kind]
    for number in range(count):
        (directory / f"{number}.log").write_text("".join(f"{line}\n" for line in lines(random.Random(number), steps)))
    return directory


def _columns(noise: random.Random, steps: int) -> Iterator[str]:
    now_s = 2.1
    for step in range(steps):
        end_s = now_s + STEP_S * noise.lognormvariate(0.0, 0.05)
        wait_s, copy_s = 0.02 * (end_s - now_s), 0.001 * (end_s - now_s)
        compute_s = end_s - now_s - wait_s - copy_s
        yield (
            f"step={step} begin_s={now_s:.9f} end_s={end_s:.9f} wait_s={wait_s:.9f} copy_s={copy_s:.9f} "
            f"compute_s={compute_s:.9f} exchange_s=0.0 fresh={IMAGES} consumed={IMAGES} occupancy={noise.randint(1, 3)}"
        )
        now_s = end_s


def _alcf(noise: random.Random, steps: int) -> Iterator[str]:
    yield "threading set: 4 4"
    for number in range(8):
        yield f"2026-01-01 00:00:0{number}: I tensorflow/core/platform: a line of no interest, as frameworks print"
    rates = []
    for step in range(steps):
        rates.append(IMAGES / (STEP_S * noise.lognormvariate(0.0, 0.05) * (12 if step == 0 else 1)))
        facts = f"loss= {7 / (1 + 0.01 * step):.3f}, acc= {0.001 * step:.3f} ({rates[-1]:.3f} img/s)"
        yield f"Finished step {step} of {steps} in epoch 0,{facts}"
    yield f"mean image/s =   {sum(rates) / steps:8.3f} standard deviation:  {10.0:8.3f}"
