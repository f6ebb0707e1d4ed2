"""WebDataset shards: tar files of ``KEY.jpg`` (or ``.png``), ``KEY.cls`` and ``KEY.json`` side by side.

``.cls`` is one class number as text, and only there where an image has one; ``.json`` holds the file's name, all
labels, and boxes where it has them. Format: the WebDataset library's documentation.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator

from harness.datasets.convert.samples import Sample, extension
from harness.datasets.convert.shard import Shard, produced, whole_file
from harness.datasets.parts import Produced

SUFFIX = ".tar"


def write(shard: Shard) -> list[Produced]:
    """A shard of encoded images; nothing in it depends on when or by whom it was made."""
    file, count = shard.stem + SUFFIX, 0
    with (
        whole_file(shard.root, file) as temporary,
        tarfile.open(temporary, "w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for sample, content in shard.encoded():
            for suffix, part in _parts(sample, content):
                member = tarfile.TarInfo(f"{shard.split}-{shard.stem.split('-')[1]}-{count:06d}.{suffix}")
                member.size = len(part)
                tar.addfile(member, io.BytesIO(part))
            count += 1
    return [produced(shard.root, file, count)]


def _parts(sample: Sample, content: bytes) -> Iterator[tuple[str, bytes]]:
    yield extension(content), content
    if len(sample.labels) == 1:
        yield "cls", str(sample.labels[0]).encode()
    facts: dict[str, object] = {"filename": sample.name, "labels": list(sample.labels)}
    if boxes := sample.boxes():
        facts["boxes"] = [list(box) for box in boxes]
    yield "json", json.dumps(facts).encode()
