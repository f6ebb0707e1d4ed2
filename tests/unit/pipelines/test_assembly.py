"""Batches assembled of single images: which worker makes which, echo, several or no images from a sample."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.pipelines.assembly import Assembler, EncodedSupply, Finish, Part, Sample
from harness.pipelines.corrupt import Lost
from harness.pipelines.decoding import Undecodable
from harness.pipelines.encoded import Encoded, Unreadable
from harness.pipelines.interface import BatchForm
from harness.pipelines.order import Order

FORM = BatchForm(height=1, width=1, channels=1, classes=200)


class Numbers:
    """Image ``i`` is one pixel of value ``i``; those in ``bad`` cannot be decoded, those in ``gone`` not read."""

    def __init__(self, count, bad=(), gone=(), images=lambda index: 1):
        self.count, self.bad, self.gone, self.images = count, bad, gone, images

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index in self.gone:
            raise Unreadable(f"image {index}", "cannot be read: no such file")
        return Encoded(f"image {index}", bytes([index]), np.int64(index))

    def crops(self, content, boxes, height, width, channels):
        if content[0] in self.bad:
            raise Undecodable("cannot be decoded: it is bad")
        return [np.full((1, 1, 1), content[0], np.uint8)] * self.images(content[0])


def assembled(numbers, batch_size, *, rank=0, world=1, echo=1, patience=1000):
    finish = Finish(FORM, echo=echo)
    order = Order(len(numbers), batch_size, rank=rank, world=world, seed=3)
    return Assembler(EncodedSupply(numbers, numbers, order, finish), finish, batch_size, patience)


def in_turn(assembler, workers, count):
    """Batches as a loader takes them from its workers."""
    sources = [assembler.batches(Part(worker, workers)) for worker in range(workers)]
    return list(itertools.islice((next(source) for source in itertools.cycle(sources)), count))


@settings(max_examples=80, deadline=None)
@given(
    samples=st.integers(1, 40),
    batch_size=st.integers(1, 9),
    world=st.integers(1, 4),
    workers=st.integers(1, 5),
    epochs=st.integers(1, 3),
)
def test_each_image_once_an_epoch_whatever_the_sizes(samples, batch_size, world, workers, epochs):
    count = -(-samples * epochs // (batch_size * world))
    ranks = [assembled(Numbers(samples), batch_size, rank=rank, world=world) for rank in range(world)]
    parts = [np.concatenate([made.labels for made in in_turn(a, workers, count)]) for a in ranks]
    laid = np.stack(parts, axis=1).reshape(-1)[: samples * epochs]
    for epoch in range(epochs):
        assert sorted(laid[epoch * samples : (epoch + 1) * samples]) == list(range(samples))


@settings(max_examples=40, deadline=None)
@given(workers=st.integers(1, 4), echo=st.integers(1, 7), batch_size=st.integers(1, 6))
def test_echo_counts_the_first_of_each_copies_as_fresh(workers, echo, batch_size):
    count = 6 * workers
    batches = in_turn(assembled(Numbers(30), batch_size, echo=echo), workers, count)
    for worker in range(workers):
        own = batches[worker::workers]
        labels = np.concatenate([made.labels for made in own])
        runs = [len(list(same)) for _, same in itertools.groupby(labels)]
        assert all(run % echo == 0 for run in runs[:-1])
        assert sum(made.fresh for made in own) == -(-len(labels) // echo)


def test_a_sample_may_give_several_images_each_with_its_label():
    """Image ``i`` gives ``i % 3 + 1``: over three epochs of 10 all of them, in full batches."""
    numbers = Numbers(10, images=lambda index: index % 3 + 1)
    per_epoch = sum(index % 3 + 1 for index in range(10))
    batches = in_turn(assembled(numbers, 4), 1, -(-3 * per_epoch // 4))
    labels = np.concatenate([made.labels for made in batches])[: 3 * per_epoch]
    assert Counter(labels.tolist()) == {index: 3 * (index % 3 + 1) for index in range(10)}
    assert all((made.images.ravel() == made.labels).all() and made.fresh == 4 for made in batches)


def test_lost_images_are_told_with_the_batch_and_replaced_by_what_comes_next():
    batches = in_turn(assembled(Numbers(10, bad={2}, gone={7}), 4), 1, 6)
    labels = np.concatenate([made.labels for made in batches])
    assert Counter(labels.tolist()) == dict.fromkeys(set(range(10)) - {2, 7}, 3)
    lost = {lost for made in batches for lost in made.lost}
    assert lost == {
        Lost("image 2", "cannot be decoded: it is bad"),
        Lost("image 7", "cannot be read: no such file"),
    }


def test_after_too_many_losses_a_batch_without_images_says_so():
    [made] = in_turn(assembled(Numbers(5, bad=set(range(5))), 4, patience=7), 1, 1)
    assert (len(made.images), made.fresh, len(made.lost)) == (0, 0, 7)


def test_batches_are_not_written_to_again():
    """A batch handed over stays as it was while the next ones are made."""
    first, *_ = batches = in_turn(assembled(Numbers(12), 4), 1, 3)
    assert (first.images.ravel() == first.labels).all()
    assert len({made.images.ctypes.data for made in batches}) == 3


def test_augmentation_begins_with_sides_an_eighth_longer():
    finish = Finish(BatchForm(224, 112, 3, 10), augment=True)
    assert finish.stored == (256, 128)
    assert Finish(BatchForm(224, 112, 3, 10)).stored == (224, 112)


def test_views_are_windows_of_the_image_and_mirrored_ones():
    image = np.arange(64, dtype=np.uint8).reshape(8, 8, 1)
    finish = Finish(BatchForm(7, 7, 1, 10), augment=True, echo=200)
    random = np.random.default_rng(0)
    seen = {view.tobytes() for sample in [Sample([image], 0, random)] for view in finish.views(image, sample.random)}
    windows = [image[top : top + 7, left : left + 7] for top in (0, 1) for left in (0, 1)]
    assert seen == {view.tobytes() for window in windows for view in (window, window[:, ::-1])}
