"""What each step from a file to a batch costs, in CPU time of one core per image; other load hardly enters that.

    python benchmarks/bench_pipelines.py --steps

Each figure is the least of several passes over the same photographs. Steps are measured one by one, on what the step
before them made; TensorFlow's as single operations. Then come ways to decode and resize, and what the harness's own
layers in a tf.data pipeline cost.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import simplejpeg
import tensorflow as tf
import torch
from PIL import Image
from pipelines_child import BATCH, SIDE, Contender, context, prepare
from pipelines_usual import MEAN, STD

from harness.pipelines.decoding import FastDecoder, PillowDecoder
from harness.pipelines.encoded import open_library
from harness.pipelines.interface import batch_form
from harness.pipelines.tf_images import WHOLE, crops, decode, random_view
from harness.pipelines.tf_sieve import Sieve
from harness.pipelines.torch_fast import resize
from harness.pipelines.torch_loader import finish_of
from harness.pipelines.torchvision_compat import torchvision
from harness.workloads.resnet_imagenet.settings import PIXELS

IMAGES = 96
PASSES = 7
STORED = round(SIDE * 8 / 7)
STEPS = ("read", "decode", "resize", "crop and mirror", "to tensor", "batch", "copy")
NOTES = {
    "crop and mirror": f"only with augmentation: {STORED} → {SIDE} pixels",
    "to tensor": "float32, scaled and normalised; in ours part of the training step, on the device",
    "copy": "worker to training process; in ours the layout for a step on the CPU",
}

Step = Callable[[Any], Any]


def microseconds(step: Step, inputs: Sequence[Any], passes: int = PASSES) -> float:
    """CPU time of one call, the least of the passes' means."""
    found = []
    for _ in range(passes):
        begin = time.process_time()
        for given in inputs:
            step(given)
        found.append((time.process_time() - begin) / len(inputs))
    return 1e6 * min(found)


class Photographs:
    """Some of the set's images in every state that a step begins with."""

    def __init__(self, data: Path):
        wanted = Contender("torch", "torch_fast", options={"image_size": SIDE, "augment": True})
        self.context = context(wanted, data, prepare("tensorflow"))
        self.library = open_library(self.context)
        stride = max(1, len(self.library) // IMAGES)
        numbers = range(0, len(self.library), stride)
        jpegs = [n for n in numbers if self.library[n].content.startswith(b"\xff\xd8")]
        self.numbers = [n for n in jpegs if Image.open(io.BytesIO(self.library[n].content)).mode == "RGB"]
        self.files = [self.library[n].name for n in self.numbers]
        self.contents = [self.library[n].content for n in self.numbers]
        self.pixels = [simplejpeg.decode_jpeg(content) for content in self.contents]
        self.scaled = [whole(content, SIDE) for content in self.contents]
        self.stored = [resize(pixels, STORED, STORED) for pixels in self.pixels]
        self.done = [resize(pixels, SIDE, SIDE) for pixels in self.pixels]
        self.batches = [np.stack(self.done[:BATCH])] * 4


def torch_fast(p: Photographs) -> dict[str, float]:
    finish, random = finish_of(p.context), np.random.default_rng(1)
    decoder = FastDecoder(lambda pixels, height, width: pixels)
    batch = np.empty((BATCH, SIDE, SIDE, 3), np.uint8)
    scale, offset = (torch.tensor(v).view(1, -1, 1, 1) for v in (PIXELS.scale, PIXELS.offset))
    tensors = [torch.from_numpy(b).permute(0, 3, 1, 2) for b in p.batches]
    return {
        "read": microseconds(lambda n: p.library[n], p.numbers),
        "decode": microseconds(lambda c: decoder.crops(c, (), SIDE, SIDE, 3), p.contents),
        "resize": microseconds(lambda x: resize(x, SIDE, SIDE), p.scaled),
        "crop and mirror": microseconds(lambda x: next(finish.views(x, random)), p.stored),
        "to tensor": microseconds(lambda x: torch.addcmul(offset, x.float(), scale), tensors) / BATCH,
        "batch": microseconds(lambda x: np.copyto(batch[0], x), p.done),
        "copy": microseconds(lambda x: x.contiguous(), tensors) / BATCH,
    }


def torch_files(p: Photographs) -> dict[str, float]:
    def share(images: Any) -> Any:
        made = torch.empty(images.shape, dtype=torch.uint8).share_memory_().numpy()
        made[:] = images

    fast = torch_fast(p)
    opened = [Image.fromarray(x) for x in p.pixels]
    return fast | {
        "decode": microseconds(pillow, p.contents),
        "resize": microseconds(lambda x: x.resize((SIDE, SIDE), Image.Resampling.BILINEAR), opened),
        "batch": microseconds(share, p.batches) / BATCH,
    }


def usual_torch(p: Photographs) -> dict[str, float]:
    t = torchvision.transforms
    to_tensor = t.Compose([t.ToTensor(), t.Normalize(MEAN, STD)])
    cut = t.Compose([t.RandomCrop(SIDE), t.RandomHorizontalFlip()])
    done = [Image.fromarray(x) for x in p.done]
    tensors = [[to_tensor(image) for image in done[:BATCH]]] * 4
    batches = [torch.utils.data.default_collate(each) for each in tensors]
    return {
        "read": microseconds(lambda file: Path(file).read_bytes(), p.files),
        "decode": microseconds(pillow, p.contents),
        "resize": microseconds(t.Resize((SIDE, SIDE)), [Image.fromarray(x) for x in p.pixels]),
        "crop and mirror": microseconds(cut, [Image.fromarray(x) for x in p.stored]),
        "to tensor": microseconds(to_tensor, done),
        "batch": microseconds(torch.utils.data.default_collate, tensors) / BATCH,
        "copy": microseconds(lambda x: x.clone().share_memory_(), batches) / BATCH,
    }


def usual_tensorflow(p: Photographs) -> dict[str, float]:
    images = [tf.constant(x) for x in p.pixels]
    done = [tf.cast(tf.constant(x), tf.float32) for x in p.done]
    stored = [tf.constant(x) for x in p.stored]

    def cut(image: Any) -> Any:
        return tf.image.random_flip_left_right(tf.image.random_crop(image, (SIDE, SIDE, 3)))

    return {
        "read": microseconds(tf.io.read_file, p.files),
        "decode": microseconds(lambda c: tf.io.decode_jpeg(c, channels=3), [tf.constant(c) for c in p.contents]),
        "resize": microseconds(lambda x: tf.image.resize(x, (SIDE, SIDE)), images),
        "crop and mirror": microseconds(cut, stored),
        "to tensor": microseconds(lambda x: x / 255.0, done),
        "batch": microseconds(tf.stack, [done[:BATCH]] * 4) / BATCH,
    }


def tf_files(p: Photographs) -> dict[str, float]:
    images = [tf.constant(x) for x in p.pixels]
    boxes = tf.constant(WHOLE)
    done = [tf.constant(x) for x in p.done]
    batches = [tf.stack(done[:BATCH])] * 4
    form = batch_form(p.context.axes)
    scale, offset = tf.constant(PIXELS.scale), tf.constant(PIXELS.offset)
    return {
        "read": microseconds(tf.io.read_file, p.files),
        "decode": microseconds(lambda c: decode(c, 3), [tf.constant(c) for c in p.contents]),
        "resize": microseconds(lambda x: crops(x, boxes, form), images),
        "crop and mirror": microseconds(lambda x: random_view(x[None]), done),
        "to tensor": microseconds(lambda x: tf.cast(x, tf.float32) * scale + offset, batches) / BATCH,
        "batch": microseconds(tf.stack, [done[:BATCH]] * 4) / BATCH,
        "copy": microseconds(tf.identity, batches) / BATCH,
    }


COLUMNS = {
    "torch_fast": torch_fast,
    "torch_files": torch_files,
    "DataLoader as usual": usual_torch,
    "tf_files": tf_files,
    "tf.data as usual": usual_tensorflow,
}


def pillow(content: bytes) -> Image.Image:
    return Image.open(io.BytesIO(content)).convert("RGB")


def whole(content: bytes, side: int = 0, factor: float = 2) -> Any:
    return simplejpeg.decode_jpeg(content, min_height=side, min_width=side, min_factor=factor)


def by_pillow(pixels: Any, side: int) -> Any:
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BILINEAR))


def pillow_scaled(content: bytes, side: int) -> Any:
    image = Image.open(io.BytesIO(content))
    image.draft("RGB", (side, side))
    return by_pillow(np.asarray(image.convert("RGB")), side)


PILLOW, FAST = PillowDecoder(), FastDecoder(resize)
WAYS: dict[str, Callable[[bytes, int], Any]] = {
    "Pillow, whole image; Pillow's resize (`torch_files`)": lambda c, side: PILLOW.crops(c, (), side, side, 3),
    "Pillow, scaled while decoding (`draft`); Pillow's resize": pillow_scaled,
    "Pillow, whole image; torch's resize": lambda c, side: resize(np.array(pillow(c)), side, side),
    "simplejpeg, whole image; Pillow's resize": lambda c, side: by_pillow(whole(c), side),
    "simplejpeg, whole image; torch's resize": lambda c, side: resize(whole(c), side, side),
    "simplejpeg, scaled in eighths; torch's resize": lambda c, side: resize(whole(c, side, 1), side, side),
    "simplejpeg, half the sides or less; torch's resize (`torch_fast`)": lambda c, side: FAST.crops(
        c, (), side, side, 3
    ),
    "*decoding alone:* Pillow, whole image": lambda c, side: np.asarray(pillow(c)),
    "*decoding alone:* simplejpeg, whole image": lambda c, side: whole(c),
    "*decoding alone:* simplejpeg, an eighth of the sides": lambda c, side: whole(c, 1, 8),
}


def layers() -> dict[str, float]:
    """Microseconds more for an element of a tf.data pipeline with a sieve, and those of a bare one."""
    count, group = 3000, 100

    def mapped() -> tf.data.Dataset:
        return tf.data.Dataset.range(1 << 40).map(lambda n: n + 1, num_parallel_calls=2)

    def cost(dataset: tf.data.Dataset) -> float:
        options = tf.data.Options()
        options.threading.private_threadpool_size = 1
        options.experimental_optimization.inject_prefetch = False
        iterator = iter(dataset.batch(group).with_options(options))
        next(iterator)
        return microseconds(lambda _: next(iterator), range(count // group)) / group

    sieve = Sieve(count).map(tf.data.Dataset.range(1 << 40), tf.strings.as_string, lambda n: n + 1, 2)
    bare = cost(mapped())
    return {
        "a parallel map alone": bare,
        "the sieve (`corrupt: skip`), once a sample": cost(sieve) - bare,
    }


def print_steps(photographs: Photographs) -> None:
    # twice, since how malloc gives memory back depends on what was allocated before
    columns = {name: (column(photographs), column(photographs)) for name, column in COLUMNS.items()}
    found = {name: {step: min(one[step], two[step]) for step in one} for name, (one, two) in columns.items()}
    print("| step | " + " | ".join(found) + " |\n|---|" + "--:|" * len(found))
    for step in STEPS:
        cells = [f"{column[step]:.0f}" if step in column else "–" for column in found.values()]
        print(f"| {step} | " + " | ".join(cells) + " |")
    for step, note in NOTES.items():
        print(f"{step}: {note}.")


def main() -> None:
    torch.set_num_threads(1)
    photographs = Photographs(Path(sys.argv[1]))
    height, width = np.mean([x.shape[:2] for x in photographs.pixels], 0)
    size = np.mean([len(content) for content in photographs.contents]) / 1000
    shape = f"{width:.0f} × {height:.0f} pixels, {size:.0f} KB"
    print(f"{len(photographs.files)} JPEGs, on average {shape}; CPU µs per image\n")
    print_steps(photographs)
    print(f"\n| way, CPU µs per image | → {SIDE} | → 64 |\n|---|--:|--:|")
    for name, way in WAYS.items():
        costs = [microseconds(lambda c: way(c, side), photographs.contents, 3) for side in (SIDE, 64)]  # noqa: B023
        print(f"| {name} | {costs[0]:.0f} | {costs[1]:.0f} |", flush=True)
    print("\n| layer in tf.data, CPU µs each time | |\n|---|--:|")
    for name, cost in layers().items():
        print(f"| {name} | {cost:.2f} |")


if __name__ == "__main__":
    main()
