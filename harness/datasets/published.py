"""The published data sets: file names, checksums and sizes.

Sources: the MNIST and CIFAR-10 pages of their authors, as repeated by torchvision (``MNIST.resources``,
``CIFAR10.train_list``) and Keras (``mnist.npz``).
"""

from __future__ import annotations

from pathlib import Path

MNIST_TRAIN_IMAGES = "train-images-idx3-ubyte.gz"
MNIST_TRAIN_LABELS = "train-labels-idx1-ubyte.gz"
MNIST_TEST_IMAGES = "t10k-images-idx3-ubyte.gz"
MNIST_TEST_LABELS = "t10k-labels-idx1-ubyte.gz"
MNIST_FILES = (MNIST_TRAIN_IMAGES, MNIST_TRAIN_LABELS, MNIST_TEST_IMAGES, MNIST_TEST_LABELS)
MNIST_NPZ = "mnist.npz"

CIFAR_PYTHON = "cifar-10-batches-py"
CIFAR_BINARY = "cifar-10-batches-bin"
CIFAR_TRAIN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
CIFAR_TEST_BATCH = "test_batch"
CIFAR_LABELS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")

#: file name → MD5. The binary CIFAR-10 files have none published, only their archive has.
MD5 = {
    MNIST_TRAIN_IMAGES: "f68b3c2dcbeaaa9fbdd348bbdeb94873",
    MNIST_TRAIN_LABELS: "d53e105ee54ea40749a09fcbcd1e9432",
    MNIST_TEST_IMAGES: "9fb629c4189551a2d022fa330f9573f3",
    MNIST_TEST_LABELS: "ec29112dd5afa0611ce80d1b7f02629c",
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    CIFAR_TEST_BATCH: "40351d587109b95175f43aff81a1287e",
}
SHA256 = {MNIST_NPZ: "731c5ac602752760c8e48fbffcf8c3b850d9dc2a2aedcf2cc48468fc17b673d1"}

#: format → its files or directories, one tuple for each layout that the readers know, the preferred one first.
LAYOUTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "mnist": (
        MNIST_FILES,
        tuple(name.removesuffix(".gz") for name in MNIST_FILES),
        tuple(f"MNIST/raw/{name}" for name in MNIST_FILES),
        (MNIST_NPZ,),
    ),
    "cifar10": (
        tuple(f"{CIFAR_PYTHON}/{name}" for name in (*CIFAR_TRAIN_BATCHES, CIFAR_TEST_BATCH)),
        tuple(f"{CIFAR_BINARY}/{name}.bin" for name in (*CIFAR_TRAIN_BATCHES, CIFAR_TEST_BATCH)),
        (*CIFAR_TRAIN_BATCHES, CIFAR_TEST_BATCH),
        tuple(f"{name}.bin" for name in (*CIFAR_TRAIN_BATCHES, CIFAR_TEST_BATCH)),
    ),
    "imagenet": (("ILSVRC/Data/CLS-LOC/train", "ILSVRC/Data/CLS-LOC/val"),),
    "caltech256": (("256_ObjectCategories",),),
    "chestxray14": (("Data_Entry_2017.csv", "images"),),
}

#: format → samples of the published set by split; Caltech-256 has no split, ImageNet's test part is its validation set.
COUNTS = {
    "mnist": {"train": 60_000, "test": 10_000},
    "cifar10": {"train": 50_000, "test": 10_000},
    "imagenet": {"train": 1_281_167, "test": 50_000},
    "caltech256": {"train": 30_607},
    "chestxray14": {"train": 86_524, "test": 25_596},
}

#: format → how to get the published set
HOW_TO_GET = {
    "mnist": "harness data fetch mnist",
    "cifar10": "harness data fetch cifar10",
    "caltech256": "harness data fetch caltech256",
    "imagenet": (
        "needs an account and the acceptance of its terms: get ILSVRC2012 CLS-LOC from image-net.org, or the archive "
        "of Kaggle's 'ImageNet Object Localization Challenge', and unpack it so that ILSVRC/ and LOC_val_solution.csv "
        "stand in the directory"
    ),
    "chestxray14": (
        "get images_001.tar.gz to images_012.tar.gz, Data_Entry_2017.csv, train_val_list.txt and test_list.txt from "
        "the NIH Clinical Center (nihcc.app.box.com, folder ChestXray-NIHCC), and unpack them so that images/ and the "
        "tables stand in the directory"
    ),
}


def find_layout(path: Path, form: str) -> tuple[str, ...] | None:
    """The files or directories (relative to ``path``) of the first layout that is wholly there, or None."""
    for names in LAYOUTS[form]:
        if all((path / name).exists() for name in names):
            return names
    return None
