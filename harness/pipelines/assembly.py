"""From single images to full batches: cropped, augmented, echoed; what each loader worker does, in any framework.

Worker ``w`` of ``n`` takes the batches w, w+n, … of the rank's :class:`~harness.pipelines.order.Order`. Where every
sample gives one image, these are the batches that come out, the same whatever the number of workers. Where some give
several (boxes, echo) or none (skipped ones), the worker fills its batches with what comes next to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from harness.pipelines.corrupt import Lost
from harness.pipelines.decoding import Decoder, Pixels, Undecodable
from harness.pipelines.encoded import Encoded, Library, Unreadable, as_labels
from harness.pipelines.interface import BatchForm, batch_form, option
from harness.pipelines.order import Order
from harness.runtime.interfaces import RunContext

#: turns an image ``(h, w, c)`` left to right
Mirror = Callable[[Pixels], Pixels]
#: makes the memory that a batch's images are put into, by shape
Allocate = Callable[[tuple[int, ...]], Pixels]


class Made(NamedTuple):
    """A batch ready to be handed over: ``fresh`` of its images are no copies; ``lost``: what could not be had."""

    images: Pixels
    labels: NDArray[Any]
    fresh: int
    lost: list[Lost]


class Sample(NamedTuple):
    """One sample's images, each uint8 ``(h, w, c)`` before augmentation, and the random numbers that belong to it."""

    images: list[Pixels]
    label: Any
    random: np.random.Generator


class Part(NamedTuple):
    """Worker ``worker`` of ``workers``, from batch ``begin`` of the rank to before ``end``; None: without end."""

    worker: int = 0
    workers: int = 1
    begin: int = 0
    end: int | None = None

    def numbers(self) -> Iterator[int]:
        """The rank's batches whose samples are this worker's."""
        first = self.begin + self.worker
        return itertools.count(first, self.workers) if self.end is None else iter(range(first, self.end, self.workers))


#: what a worker goes through: samples, and those that were lost
Samples = Iterable[Sample | Lost]


class Supply(Protocol):
    """Where samples come from."""

    def samples(self, part: Part) -> Samples:
        """Those of one worker, in order."""


@dataclass(frozen=True)
class Finish:
    """What is done with every sample's images: the point's form, augmentation and example echoing."""

    form: BatchForm
    augment: bool = False
    echo: int = 1
    echo_anew: bool = True
    mirror: Mirror = np.fliplr

    @classmethod
    def of(cls, context: RunContext, mirror: Mirror = np.fliplr) -> Finish:
        axes = context.axes
        anew = option(axes, "echo_at") == "before_augment"
        return cls(batch_form(axes), option(axes, "augment"), axes.echo, anew, mirror)

    @property
    def stored(self) -> tuple[int, int]:
        """Height and width of images before augmentation: a crop of the form's size is 7/8 of their sides."""
        height, width = self.form.height, self.form.width
        return (round(height * 8 / 7), round(width * 8 / 7)) if self.augment else (height, width)

    def views(self, image: Pixels, random: np.random.Generator) -> Iterator[Pixels]:
        """``echo`` images of the form's size; the first is fresh."""
        if self.echo_anew:
            for _ in range(self.echo):
                yield self._view(image, random)
        else:
            yield from itertools.repeat(self._view(image, random), self.echo)

    def _view(self, image: Pixels, random: np.random.Generator) -> Pixels:
        if not self.augment:
            return image
        top = random.integers(image.shape[0] - self.form.height + 1)
        left = random.integers(image.shape[1] - self.form.width + 1)
        view = image[top : top + self.form.height, left : left + self.form.width]
        return self.mirror(view) if random.random() < 0.5 else view


@dataclass(frozen=True)
class EncodedSupply:
    """Images of a library, decoded: read, decode, crop and resize in the worker."""

    library: Library
    decoder: Decoder
    order: Order
    finish: Finish

    def samples(self, part: Part) -> Iterator[Sample | Lost]:
        for number in part.numbers():
            random = self.order.random(number)
            for index in self.order.indices(number):
                yield self._sample(int(index), random)

    def _sample(self, index: int, random: np.random.Generator) -> Sample | Lost:
        try:
            found = self.library[index]
        except Unreadable as error:
            return error.lost
        return decoded(found, self.decoder, self.finish, random)


def decoded(found: Encoded, decoder: Decoder, finish: Finish, random: np.random.Generator) -> Sample | Lost:
    """The sample of an encoded image, in the size that augmentation starts from."""
    try:
        images = decoder.crops(found.content, found.boxes, *finish.stored, finish.form.channels)
    except Undecodable as error:
        return Lost(found.name, str(error))
    return Sample(images, found.label, random)


@dataclass
class Assembler:
    """Fills batches of ``batch_size`` from a supply.

    With nothing but losses for ``patience`` samples it hands over what is lost in a batch without images.
    """

    supply: Supply
    finish: Finish
    batch_size: int
    patience: int
    allocate: Allocate = field(default=lambda shape: np.empty(shape, np.uint8))

    def batches(self, part: Part) -> Iterator[Made]:
        """The batches of one worker; images that do not fill one before the part's end are left out.

        What is lost is then told in a batch without images, too.
        """
        form = self.finish.form
        shape = (self.batch_size, form.height, form.width, form.channels)
        images, fresh = self.allocate(shape), 0
        labels: list[Any] = []
        lost: list[Lost] = []
        for item in self.supply.samples(part):
            if isinstance(item, Lost):
                lost.append(item)
                if len(lost) >= self.patience:
                    yield Made(images[:0], np.empty(0), 0, lost)
                    lost = []
                continue
            for image, is_fresh in self._images(item):
                images[len(labels)] = image
                labels.append(item.label)
                fresh += is_fresh
                if len(labels) == self.batch_size:
                    yield Made(images, as_labels(np.array(labels), form.multi_label), fresh, lost)
                    images, labels, fresh, lost = self.allocate(shape), [], 0, []
        if lost:
            yield Made(images[:0], np.empty(0), 0, lost)

    def _images(self, sample: Sample) -> Iterator[tuple[Pixels, bool]]:
        for image in sample.images:
            for copy, view in enumerate(self.finish.views(image, sample.random)):
                yield view, copy == 0


def order_of(context: RunContext, samples: int) -> Order:
    """The order in which the rank takes its part of a set of ``samples``."""
    axes, ranks = context.axes, context.ranks
    return Order(samples, axes.batch_size, rank=ranks.rank, world=ranks.world, seed=context.spec.seed)


def encoded_assembler(context: RunContext, library: Library, decoder: Decoder, finish: Finish) -> Assembler:
    """The assembler of a point's encoded images."""
    supply = EncodedSupply(library, decoder, order_of(context, len(library)), finish)
    return Assembler(supply, finish, context.axes.batch_size, patience=patience(context, len(library)))


def patience(context: RunContext, samples: int) -> int:
    """Images lost in a row that show that none can be had: an epoch's of this rank and some."""
    if option(context.axes, "corrupt") == "fail":
        return 1
    return -(-samples // context.ranks.world) + 16
