"""What decoding and resizing a photograph costs by several ways, and what loaders of workers make of it.

    harness data make imagenet --origin synthetic        (or any tree of photographs)
    python benchmarks/bench_decode.py DIRECTORY [--sides 64,224] [--images 60] [--repeats 3]
    python benchmarks/bench_decode.py DIRECTORY --loaders 1,2,4,7 [--side 224]

The first prints CPU milliseconds of one core per image and images/s per core, the best of the repeats; other load on
the machine hardly enters CPU time. The second prints, for the pipelines torch_files (processes) and torch_fast
(threads) and each number of workers, images/s by the clock, which wants an idle machine, and the CPU milliseconds of
all threads and processes per image, from start to end; up to two batches that a worker has left over count in them.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import simplejpeg
import torch
from PIL import Image

from harness import catalog
from harness.model.axes import Axes
from harness.model.job import Placement, RunSpec
from harness.pipelines.decoding import FastDecoder, PillowDecoder
from harness.pipelines.torch_fast import resize
from harness.runtime.interfaces import Ranks, RunContext

Way = Callable[[bytes, int], Any]


def by_pillow(pixels: Any, side: int) -> Any:
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BILINEAR))


def by_torch(pixels: Any, side: int) -> Any:
    return resize(pixels, side, side)


def pillow(content: bytes) -> Any:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


def pillow_scaled(content: bytes, side: int) -> Any:
    image = Image.open(io.BytesIO(content))
    image.draft("RGB", (side, side))
    return by_pillow(np.asarray(image.convert("RGB")), side)


def turbo(content: bytes, side: int = 0, factor: float = 1) -> Any:
    return simplejpeg.decode_jpeg(content, min_height=side, min_width=side, min_factor=factor)


PILLOW, FAST = PillowDecoder(), FastDecoder(resize)
WAYS: dict[str, Way] = {
    "Pillow, whole, no resize": lambda content, side: pillow(content),
    "simplejpeg, whole, no resize": lambda content, side: turbo(content),
    "simplejpeg, an eighth of the sides, no resize": lambda content, side: turbo(content, 1, 8),
    "Pillow, whole; Pillow resize (torch_files)": lambda content, side: PILLOW.crops(content, (), side, side, 3),
    "Pillow, scaled (draft); Pillow resize": pillow_scaled,
    "Pillow, whole; torch resize": lambda content, side: by_torch(pillow(content).copy(), side),
    "simplejpeg, whole; Pillow resize": lambda content, side: by_pillow(turbo(content), side),
    "simplejpeg, whole; torch resize": lambda content, side: by_torch(turbo(content), side),
    "simplejpeg, scaled in eighths; torch resize": lambda content, side: by_torch(turbo(content, side), side),
    "simplejpeg, half or less; torch resize (torch_fast)": lambda content, side: FAST.crops(content, (), side, side, 3),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--sides", default="64,128,224,256", help="resized to, pixels")
    parser.add_argument("--images", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--loaders", help="numbers of workers; measures loaders instead of single calls")
    parser.add_argument("--side", type=int, default=224, help="of the loaders' images, pixels")
    parser.add_argument("--format", default="imagenet", choices=("imagenet", "caltech256"), help="for the loaders")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.loaders:
        compare_loaders(options)
    else:
        compare_ways(options)


def compare_ways(options: argparse.Namespace) -> None:
    contents = photographs(options.directory, options.images)
    sizes = np.array([Image.open(io.BytesIO(content)).size for content in contents])
    (width, height), size = sizes.mean(0), np.mean([len(content) for content in contents])
    print(f"{len(contents)} JPEGs, on average {width:.0f} × {height:.0f} pixels, {size:.0f} bytes")
    for side in map(int, options.sides.split(",")):
        print(f"\nto {side} × {side}{'':40} ms/image   images/s per core")
        for name, way in WAYS.items():
            cost_s = min(cpu_seconds(way, contents, side) for _ in range(options.repeats)) / len(contents)
            print(f"  {name:52} {1e3 * cost_s:8.2f} {1 / cost_s:12.0f}", flush=True)


def photographs(directory: Path, count: int) -> list[bytes]:
    """The contents of RGB JPEGs in the tree, evenly chosen."""
    files = sorted(file for file in directory.rglob("*") if file.suffix.lower() in (".jpg", ".jpeg"))
    found = []
    for file in files[:: max(1, len(files) // count)]:
        content = file.read_bytes()
        if content.startswith(b"\xff\xd8") and Image.open(io.BytesIO(content)).mode == "RGB":
            found.append(content)
    if not found:
        raise SystemExit(f"{directory}: no JPEGs there; make some with: harness data make imagenet --origin synthetic")
    return found[:count]


def cpu_seconds(way: Way, contents: list[bytes], side: int) -> float:
    begin = time.process_time()
    for content in contents:
        way(content, side)
    return time.process_time() - begin


def compare_loaders(options: argparse.Namespace) -> None:
    print(f"to {options.side} × {options.side}, batches of 32")
    print(f"{'pipeline':12} {'workers':>8} {'images/s':>10} {'CPU ms/image':>13}")
    for workers, name in itertools.product(map(int, options.loaders.split(",")), ("torch_files", "torch_fast")):
        rates, costs = zip(*(run_loader(name, workers, options) for _ in range(options.repeats)), strict=True)
        print(f"{name:12} {workers:8} {max(rates):10.0f} {1e3 * min(costs):13.2f}", flush=True)


def run_loader(name: str, workers: int, options: argparse.Namespace) -> tuple[float, float]:
    """Images/s over as many batches as hold ``images``, once the buffer has been emptied; CPU seconds per image."""
    cpu_s = cpu_of_all_seconds()
    pipeline = catalog.load(catalog.PIPELINES[name].frameworks["torch"])(context(name, workers, options))
    batches = pipeline.batches()
    drained = sum(batch.samples for batch in itertools.islice(batches, 2 * workers + 1))
    begin_s, images = time.perf_counter(), 0
    while images < options.images:
        images += next(batches).samples
    elapsed_s = time.perf_counter() - begin_s
    pipeline.close()
    return images / elapsed_s, (cpu_of_all_seconds() - cpu_s) / (drained + images)


def cpu_of_all_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def context(name: str, workers: int, options: argparse.Namespace) -> RunContext:
    axes = Axes(
        workload="resnet_imagenet",
        framework="torch",
        dataset=f"synthetic:{options.format}",
        pipeline=name,
        batch_size=32,
        workers=workers,
        prefetch=1,
        options={"image_size": options.side, "corrupt": "skip"},
    )
    place = Placement(
        cluster="here", nodes=1, ranks_per_node=1, cores_per_node=1, walltime_s=60, data_path=str(options.directory)
    )
    spec = RunSpec(
        campaign="bench", point_id="0" * 16, repeat=0, attempt=1, axes=axes, placement=place, harness_version="0"
    )
    clock = SimpleNamespace(now=time.monotonic, sleep=time.sleep)
    exchange: Any = None
    ranks = Ranks(0, 1, 0, 1, "here")
    return RunContext(spec, ranks, (), 1, exchange, clock, "cpu", options.directory, lambda kind, **fields: None)


if __name__ == "__main__":
    main()
