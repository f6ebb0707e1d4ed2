"""Prepared images that do not fit in memory are refused before they are read."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from runtime_support import spec_of

from harness.comm.none import NoExchange
from harness.datasets import lifecycle
from harness.datasets.convert.run import Settings, convert
from harness.datasets.make import make
from harness.datasets.manifest import LISTING, Request, read_listing, read_manifest
from harness.errors import UserError
from harness.pipelines.held import held_part
from harness.runtime.clock import VirtualClock
from harness.runtime.interfaces import Ranks, RunContext

SIDE = 256


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sets") / "tree"
    make(path, Request(format="caltech256", origin="synthetic", counts={"train": 4}, options={"classes": 2}))
    convert(path, path.with_name("npy"), Settings("npy", side=SIDE))
    return path.with_name("npy")


def context(path: Path, rank: int = 0, world: int = 1) -> RunContext:
    axes = {"dataset": "synthetic:caltech256", "encoding": "npy", "pipeline": "torch_memory", "batch_size": 2}
    spec = spec_of(workload="resnet_imagenet", framework="torch", **axes)
    ranks = Ranks(rank, world, 0, 1, f"n{rank}")
    return RunContext(spec, ranks, (0,), 1, NoExchange(), VirtualClock(), "cpu", path, lambda kind, **fields: None)


def grow(path: Path, images: int) -> None:
    """So many images in the shard, whose bytes nobody wrote: the file has a hole of that size."""
    [shard] = path.glob("train-*.images.npy")
    with shard.open("r+b") as stream:
        stream.truncate(0)
        header = {"descr": "|u1", "fortran_order": False, "shape": (images, SIDE, SIDE, 3)}
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + images * SIDE * SIDE * 3)
    files = [f._replace(bytes=(path / f.file).stat().st_size) for f in read_listing(path)]
    manifest = read_manifest(path)
    (path / LISTING).write_text("".join(f"{f.md5}\t{f.bytes}\t{f.file}\n" for f in files))
    lifecycle.write_manifest(path, manifest)


def test_what_fits_is_shared_by_ranks(prepared: Path) -> None:
    parts = [held_part(context(prepared, rank, 2))[0] for rank in range(2)]
    assert [len(part) for part in parts] == [2, 2]


def test_more_than_the_memory_is_refused_at_once(prepared: Path) -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    grow(prepared, 2 * machine // (SIDE * SIDE * 3))
    with pytest.raises(UserError, match=r"npy: the prepared images .* take .* of memory, and the job may have .*: ask"):
        held_part(context(prepared))
