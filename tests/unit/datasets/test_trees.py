"""Made trees: formats, statistics, oddities, and interruption."""

from __future__ import annotations

import csv
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from harness.datasets import caltech256, chestxray14, imagenet
from harness.datasets.make import is_made, make
from harness.datasets.manifest import PARTIAL, Request, read_listing
from harness.datasets.parts import JOURNAL
from harness.datasets.trees import caltech256 as caltech256_maker
from harness.datasets.trees import imagenet as imagenet_maker
from harness.datasets.trees import spread
from harness.datasets.trees.chestxray14 import findings_of
from harness.datasets.verify import OK, verify
from harness.errors import UserError
from harness.files import read_json_lines

IMAGENET = Request(format="imagenet", origin="synthetic", counts={"train": 200, "test": 24}, options={"classes": 12})
CALTECH = Request(format="caltech256", origin="synthetic", counts={"train": 300})
CHEST = Request(format="chestxray14", origin="synthetic", counts={"train": 14, "test": 14})


@pytest.fixture(scope="module")
def imagenet_tree(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("imagenet") / "tree"
    make(path, IMAGENET)
    return path


@pytest.fixture(scope="module")
def caltech_tree(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("caltech") / "tree"
    make(path, CALTECH)
    return path


def test_imagenet_reads_back_with_sorted_labels_and_validation_classes(imagenet_tree):
    dataset = imagenet.read(imagenet_tree)
    assert (dataset.name, dataset.origin, len(dataset.classes)) == ("synthetic:imagenet", "synthetic", 12)
    assert (len(dataset.train), len(dataset.test)) == (200, 24)
    assert dataset.classes == tuple(sorted(dataset.classes))
    for file, label in zip(dataset.train.files, dataset.train.labels, strict=True):
        assert Path(file).parent.name == dataset.classes[label]
        assert (imagenet_tree / file).is_file()
    assert np.bincount(dataset.test.labels).tolist() == [2] * 12
    assert dataset.skipped == ()


def test_validation_labels_come_from_annotations_where_there_is_no_table(imagenet_tree):
    with_table = imagenet.read(imagenet_tree).test.labels
    table = imagenet_tree / "LOC_val_solution.csv"
    table.rename(table.with_suffix(".away"))
    try:
        np.testing.assert_array_equal(imagenet.read(imagenet_tree).test.labels, with_table)
    finally:
        table.with_suffix(".away").rename(table)


def test_imagenet_bytes_pixels_and_quality_are_like_the_real_ones(imagenet_tree):
    dataset = imagenet.read(imagenet_tree)
    densities, subsampled = [], []
    for file in dataset.train.files:
        with Image.open(imagenet_tree / file) as image:
            densities.append((imagenet_tree / file).stat().st_size / (image.width * image.height))
            if image.format == "JPEG" and image.mode == "RGB":
                subsampled.append(image.layer[0][1:3] != (1, 1))
    assert not any(subsampled)
    assert np.mean(densities) == pytest.approx(0.63, abs=0.05)
    assert np.std(densities) > 0.1


def test_imagenet_sizes_have_the_real_mean_and_a_heavy_tail():
    sizes = np.array([imagenet_maker.image_size(np.random.default_rng([1, i])) for i in range(20_000)])
    assert sizes.mean(0) == pytest.approx([469, 387], rel=0.03)
    assert (sizes.max(1) == 500).mean() > 0.5
    assert (sizes.max(1) > 1000).mean() > 0.01


def test_caltech_sizes_have_the_real_mean():
    sizes = np.array([caltech256_maker.image_size(np.random.default_rng([1, i])) for i in range(20_000)])
    assert sizes.mean(0) == pytest.approx([371, 326], rel=0.03)


def test_annotations_are_as_frequent_and_hold_as_many_boxes_as_the_real_ones(imagenet_tree):
    files = imagenet.read(imagenet_tree).train.files
    boxes = [imagenet.boxes_of(imagenet_tree, f) for f in files if (imagenet_tree / imagenet.annotation_of(f)).exists()]
    assert 0.32 < len(boxes) / len(files) < 0.53
    assert 1.0 <= np.mean([len(b) for b in boxes]) < 1.3
    for box in (box for found in boxes for box in found):
        assert 0 <= box.xmin < box.xmax <= 1
        assert 0 <= box.ymin < box.ymax <= 1


def test_an_image_without_annotation_counts_as_one_whole_box(tmp_path):
    assert imagenet.boxes_of(tmp_path, f"{imagenet.DATA}/train/n1/n1_1.JPEG") == [imagenet.WHOLE_IMAGE]


ANNOTATION = """<annotation><size><width>101</width><height>51</height><depth>3</depth></size>
<object><name>n1</name><bndbox><xmin>10</xmin><ymin>5</ymin><xmax>{xmax}</xmax><ymax>25</ymax></bndbox></object>
</annotation>"""


def test_boxes_are_divided_by_size_less_one_and_kept_inside(tmp_path):
    file = f"{imagenet.DATA}/train/n1/n1_1.JPEG"
    annotation = tmp_path / imagenet.ANNOTATIONS / "train/n1/n1_1.xml"
    annotation.parent.mkdir(parents=True)
    for xmax, expected in ((60, 0.6), (500, 1.0)):
        annotation.write_text(ANNOTATION.format(xmax=xmax))
        assert imagenet.boxes_of(tmp_path, file) == [imagenet.Box(0.1, 0.1, expected, 0.5)]
    for broken in ("<annotation>", ANNOTATION.format(xmax="wide"), "<annotation></annotation>"):
        annotation.write_text(broken)
        with pytest.raises(UserError, match=r"n1_1\.xml"):
            imagenet.boxes_of(tmp_path, file)


def test_the_oddities_of_imagenet_are_there(imagenet_tree):
    found = {"PNG": 0, "CMYK": 0, "L": 0}
    for file in imagenet.read(imagenet_tree).train.files:
        assert file.endswith(".JPEG")
        with Image.open(imagenet_tree / file) as image:
            found["PNG"] += image.format == "PNG"
            found["CMYK"] += image.mode == "CMYK"
            found["L"] += image.mode == "L"
            assert np.asarray(image.convert("RGB")).shape == (image.height, image.width, 3)
    assert found["PNG"] == 1
    assert found["CMYK"] == 1
    assert 1 <= found["L"] <= 12


def test_strays_among_caltech_images_are_skipped_and_named(caltech_tree):
    dataset = caltech256.read(caltech_tree)
    assert len(dataset.train) == 300
    assert len(dataset.classes) == 257
    assert dataset.skipped == (
        "256_ObjectCategories/056.pattern/greg",
        "256_ObjectCategories/198.pattern/RENAME2",
    )
    assert len(dataset.test) == 0


def test_chest_x_rays_carry_their_findings(tmp_path):
    make(tmp_path / "chest", CHEST)
    dataset = chestxray14.read(tmp_path / "chest")
    assert dataset.train.labels.shape == dataset.test.labels.shape == (14, 14)
    with Image.open(tmp_path / "chest" / dataset.train.files[0]) as image:
        assert (image.size, image.mode, image.format) == ((1024, 1024), "L", "PNG")
    with (tmp_path / "chest" / chestxray14.ENTRIES).open(newline="") as stream:
        rows = {row["Image Index"]: row["Finding Labels"] for row in csv.DictReader(stream)}
    for file, flags in zip(dataset.train.files, dataset.train.labels, strict=True):
        words = [name for name, flag in zip(chestxray14.FINDINGS, flags, strict=True) if flag]
        assert "|".join(words) == rows[Path(file).name].replace("No Finding", "")
    patients = [{Path(f).name.split("_")[0] for f in split.files} for split in (dataset.train, dataset.test)]
    assert len(patients[0] | patients[1]) == 7


def test_findings_are_as_frequent_as_the_real_ones():
    drawn = [findings_of(0, index) for index in range(8000)]
    assert np.mean([not found for found in drawn]) == pytest.approx(0.538, abs=0.02)
    for name in ("Infiltration", "Effusion", "Nodule"):
        share = np.mean([name in found for found in drawn])
        assert share == pytest.approx(chestxray14.FINDINGS[name] / 112_120, rel=0.15)


def test_an_unknown_finding_is_named_with_its_line(tmp_path):
    (tmp_path / "images").mkdir()
    (tmp_path / chestxray14.ENTRIES).write_text("Image Index,Finding Labels\na.png,No Finding\nb.png,Effusoin\n")
    with pytest.raises(UserError, match=r"Data_Entry_2017\.csv:3: unknown finding 'Effusoin'"):
        chestxray14.read(tmp_path)


@pytest.mark.parametrize("module", [imagenet, caltech256, chestxray14])
def test_an_empty_place_is_a_clear_error(module, tmp_path):
    with pytest.raises(UserError, match="harness data describe"):
        module.read(tmp_path)


def test_the_files_do_not_depend_on_the_number_of_workers(imagenet_tree, tmp_path):
    make(tmp_path / "two", IMAGENET, workers=2)
    assert list(read_listing(tmp_path / "two")) == list(read_listing(imagenet_tree))


def test_verification_reads_every_file_of_a_tree(caltech_tree, tmp_path):
    name, checks = verify(caltech_tree)
    assert name == "synthetic:caltech256"
    assert {check.verdict for check in checks} == {OK}
    victim = caltech_tree / caltech256.read(caltech_tree).train.files[7]
    content = victim.read_bytes()
    try:
        victim.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        wrong = [check for check in verify(caltech_tree)[1] if check.verdict != OK]
        assert [(c.file, c.detail) for c in wrong] == [(str(victim.relative_to(caltech_tree)), "checksum differs")]
    finally:
        victim.write_bytes(content)


KILLED = """
import os, signal, sys
from pathlib import Path
from harness.datasets.make import make
from harness.datasets.manifest import Request
if __name__ == "__main__":
    request = Request.model_validate_json(sys.argv[2])
    make(Path(sys.argv[1]), request, workers=2, progress=lambda done, total: done and os.killpg(0, signal.SIGKILL))
"""


def test_a_killed_run_is_completed_without_redoing_finished_parts(imagenet_tree, tmp_path):
    path = tmp_path / "killed"
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    command = [sys.executable, str(script), str(path), IMAGENET.model_dump_json()]
    assert subprocess.run(command, start_new_session=True).returncode == -signal.SIGKILL  # with its workers
    assert (path / PARTIAL).exists()
    assert is_made(path, IMAGENET) is None
    kept = [path / name for record in read_json_lines(path / JOURNAL) for name, *_ in record["files"]]
    before = [file.stat().st_mtime_ns for file in kept]
    steps = []
    make(path, IMAGENET, progress=lambda done, total: steps.append((done, total)))
    assert steps[0] == (steps[-1][0] - (len(steps) - 1), 5)
    assert steps[0][0] >= 1
    assert [file.stat().st_mtime_ns for file in kept] == before
    assert list(read_listing(path)) == list(read_listing(imagenet_tree))
    assert not (path / JOURNAL).exists()
    assert not list(path.rglob(".*.part"))


def test_an_unfinished_set_of_another_request_needs_force(tmp_path):
    path = tmp_path / "set"
    path.mkdir()
    (path / PARTIAL).write_text(CALTECH.model_dump_json())
    with pytest.raises(UserError, match="unfinished set of another request"):
        make(path, IMAGENET.model_copy(update={"counts": {"train": 12, "test": 12}}))
    make(path, IMAGENET.model_copy(update={"counts": {"train": 12, "test": 12}}), force=True)
    assert len(imagenet.read(path).train) == 12


def test_a_set_larger_than_the_disk_is_refused_at_once(tmp_path):
    huge = IMAGENET.model_copy(update={"counts": {"train": 10**9, "test": 50_000}})
    with pytest.raises(UserError, match="needs about .* TiB"):
        make(tmp_path / "huge", huge)


@pytest.mark.parametrize(("total", "weights"), [(10, [1, 1, 1]), (1000, [5.0, 1.0, 2.5]), (4, [100.0, 1.0, 1.0, 1.0])])
def test_spread_gives_every_class_one_and_adds_up(total, weights):
    counts = spread(total, weights)
    assert sum(counts) == total
    assert min(counts) >= 1
