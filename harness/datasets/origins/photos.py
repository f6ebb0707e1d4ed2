"""32×32 crops of the photographs that come with scikit-image and scikit-learn; a class is a photograph.

Only files inside the installed packages are read, nothing is downloaded. Their sources and licences (mostly public
domain or CC0; china and flower CC BY) are listed in skimage/data/README.txt and sklearn/datasets/images/README.txt.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

from harness.datasets.dataset import Images, Split
from harness.errors import UserError

#: class name → (package, file in it)
SOURCES = {
    "astronaut": ("skimage", "data/astronaut.png"),
    "cat": ("skimage", "data/chelsea.png"),
    "coffee": ("skimage", "data/coffee.png"),
    "galaxies": ("skimage", "data/hubble_deep_field.jpg"),
    "tissue": ("skimage", "data/ihc.png"),
    "motorcycle": ("skimage", "data/motorcycle_left.png"),
    "retina": ("skimage", "data/retina.jpg"),
    "rocket": ("skimage", "data/rocket.jpg"),
    "temple": ("sklearn", "datasets/images/china.jpg"),
    "flower": ("sklearn", "datasets/images/flower.jpg"),
}
LABEL_NAMES = tuple(SOURCES)
_SIDE = 32
_TILES = 6  # along each edge of a photograph
_TEST_PART = 6  # one tile of six, as one of CIFAR-10's images of six is a test image
_FLAT = 4.0  # grey levels of deviation below which a tile shows nothing (the black around the retina)


def source_path(package: str, file: str) -> Path:
    """Where an installed package keeps ``file``.

    Raises:
        UserError: the package is not installed or has no such file.
    """
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if (path := Path(folder) / file).is_file():
            return path
    raise UserError(
        f"{file} of package {package} is not installed; install it: pip install -e '.[data]', "
        "or use --origin synthetic, which needs numpy alone"
    )


def make(seed: int, train: int, test: int) -> tuple[Split, Split]:
    """Training and test splits of that many crops; no pixel of a photograph is in both.

    A photograph is cut into 6×6 tiles, each for training or for testing, and every crop lies inside one tile.
    """
    tiles = [_tiles(Image.open(source_path(*source)).convert("RGB"), seed) for source in SOURCES.values()]
    return (
        _draw([t for t, _ in tiles], train, np.random.default_rng([seed, 0])),
        _draw([t for _, t in tiles], test, np.random.default_rng([seed, 1])),
    )


def _tiles(photo: Image.Image, seed: int) -> tuple[list[Image.Image], list[Image.Image]]:
    """Training and test tiles of one photograph, those that show nothing left out."""
    width, height = photo.width // _TILES, photo.height // _TILES
    corners = [(x * width, y * height) for y in range(_TILES) for x in range(_TILES)]
    tiles = [photo.crop((x, y, x + width, y + height)) for x, y in corners]
    tiles = [tile for tile in tiles if float(np.asarray(tile).std()) > _FLAT]
    order = np.random.default_rng([seed, 2]).permutation(len(tiles))
    tests = len(tiles) // _TEST_PART
    return [tiles[i] for i in order[tests:]], [tiles[i] for i in order[:tests]]


def _draw(tiles: list[list[Image.Image]], count: int, rng: np.random.Generator) -> Split:
    labels = rng.permutation(np.arange(count) % len(tiles)).astype(np.uint8)
    images = np.empty((count, _SIDE, _SIDE, 3), np.uint8)
    for i, label in enumerate(labels):
        images[i] = _crop(tiles[label][rng.integers(len(tiles[label]))], rng)
    return Split(_relight(images, rng), labels)


def _crop(tile: Image.Image, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    side = int(rng.integers(_SIDE, min(tile.size) + 1))
    x, y = (int(rng.integers(edge - side + 1)) for edge in tile.size)
    crop = tile.resize((_SIDE, _SIDE), Image.Resampling.BICUBIC, box=(x, y, x + side, y + side))
    pixels = np.asarray(crop)
    return pixels[:, ::-1] if rng.random() < 0.5 else pixels


def _relight(images: Images, rng: np.random.Generator) -> Images:
    """Each image darker or brighter by up to 15 %."""
    gain = rng.uniform(0.85, 1.15, len(images))
    for i in range(len(images)):
        images[i] = np.clip(images[i] * gain[i], 0, 255).astype(np.uint8)
    return images
