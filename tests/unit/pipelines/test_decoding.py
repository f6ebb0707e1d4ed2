"""Decoders: which pixels they give, how little of an image the fast one decodes, and what it leaves to Pillow."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from harness.datasets.imagenet import Box
from harness.pipelines.decoding import FastDecoder, PillowDecoder, Undecodable, part_of

simplejpeg = pytest.importorskip("simplejpeg")


def gradient(height=120, width=160, mode="RGB", form="JPEG"):
    """An encoded image, brighter to the right (red) and downwards (green)."""
    across, down = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    picture = np.stack([across, down, np.full_like(down, 99)], -1).astype(np.uint8)
    stream = io.BytesIO()
    image = Image.fromarray(picture).convert(mode)
    image.save(stream, form, **({"quality": 95, "subsampling": 0} if form == "JPEG" else {}))
    return stream.getvalue()


class Seen:
    """A resize that remembers what it was given."""

    def __init__(self):
        self.shapes = []

    def __call__(self, pixels, height, width):
        self.shapes.append(pixels.shape)
        flat = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
        return np.asarray(Image.fromarray(flat).resize((width, height))).reshape(height, width, pixels.shape[-1])


@pytest.fixture(params=["pillow", "fast"])
def decoder(request):
    return PillowDecoder() if request.param == "pillow" else FastDecoder(Seen())


@pytest.mark.parametrize(
    ("mode", "form"), [("RGB", "JPEG"), ("L", "JPEG"), ("CMYK", "JPEG"), ("RGB", "PNG"), ("L", "PNG")]
)
def test_images_of_any_kind_become_rgb(decoder, mode, form):
    [image] = decoder.crops(gradient(mode=mode, form=form), (), 60, 80, 3)
    assert (image.shape, image.dtype) == ((60, 80, 3), np.uint8)
    expected = np.asarray(Image.open(io.BytesIO(gradient(mode=mode, form=form))).convert("RGB").resize((80, 60)))
    assert np.abs(image.astype(int) - expected).mean() < 2


def test_one_channel_where_one_is_asked_for(decoder):
    [image] = decoder.crops(gradient(mode="L"), (), 30, 40, 1)
    assert image.shape == (30, 40, 1)
    assert image[:, -1].mean() > image[:, 0].mean() + 50


def test_a_crop_for_each_box(decoder):
    left, right = decoder.crops(gradient(), (Box(0, 0, 0.5, 1), Box(0.5, 0, 1, 1)), 20, 20, 3)
    assert left[..., 0].mean() == pytest.approx(64, abs=3)
    assert right[..., 0].mean() == pytest.approx(191, abs=3)


@pytest.mark.parametrize("box", [Box(0.5, 0.5, 0.5, 0.5), Box(1, 1, 1, 1), Box(0, 0, 0, 1), Box(0.2, 0.999, 0.9, 1)])
def test_a_box_without_extent_gives_the_pixels_it_touches(decoder, box):
    [image] = decoder.crops(gradient(), (box,), 8, 8, 3)
    assert image.shape == (8, 8, 3)
    assert image[..., 2].mean() == pytest.approx(99, abs=4)


@pytest.mark.parametrize(
    ("box", "decoded"),
    [
        (Box(0, 0, 1, 1), (30, 40, 3)),
        (Box(0, 0, 0.5, 0.5), (30, 40, 3)),
        (Box(0.25, 0.25, 0.5, 0.5), (30, 40, 3)),
    ],
    ids=["quarter", "half", "whole"],
)
def test_no_more_is_decoded_than_the_crop_needs(box, decoded):
    """120 by 160 for a crop of 30 by 40: a quarter, half or all of the sides are decoded, and the box cut out."""
    seen = Seen()
    FastDecoder(seen).crops(gradient(), (box,), 30, 40, 3)
    assert seen.shapes == [decoded]


def test_the_smallest_box_decides_how_much_is_decoded():
    seen = Seen()
    FastDecoder(seen).crops(gradient(), (Box(0, 0, 1, 1), Box(0, 0, 0.25, 0.25)), 30, 40, 3)
    assert seen.shapes == [(120, 160, 3), (30, 40, 3)]


def test_between_a_half_and_all_nothing_is_saved():
    """For 60 by 80 of 120 by 160 a half is decoded; for 61, all."""
    seen = Seen()
    decoder = FastDecoder(seen)
    decoder.crops(gradient(), (), 60, 80, 3)
    decoder.crops(gradient(), (), 61, 80, 3)
    assert seen.shapes == [(60, 80, 3), (120, 160, 3)]


@pytest.mark.parametrize(
    "content", [b"", b"no image", gradient()[:200], gradient(form="PNG")[:200], b"\xff\xd8\xff\xe0"]
)
def test_what_is_no_image_is_undecodable(decoder, content):
    with pytest.raises(Undecodable, match="cannot be decoded: .+"):
        decoder.crops(content, (), 8, 8, 3)


def test_a_cut_off_jpeg_is_undecodable_even_where_most_of_it_is_there(decoder):
    whole = gradient()
    with pytest.raises(Undecodable):
        decoder.crops(whole[: len(whole) * 3 // 4], (), 8, 8, 3)


def test_part_of_takes_every_pixel_a_box_touches():
    pixels = np.arange(100, dtype=np.uint8).reshape(10, 10, 1)
    np.testing.assert_array_equal(part_of(pixels, Box(0.11, 0.29, 0.31, 0.5)), pixels[2:5, 1:4])
