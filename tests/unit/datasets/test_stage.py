"""Staging: whole, checked copies."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple

import pytest
from click.testing import CliRunner
from datasets_support import request_of

from harness.cli.data import data
from harness.datasets.make import make
from harness.datasets.manifest import MANIFEST, PARTIAL, Request
from harness.datasets.stage import stage
from harness.datasets.verify import OK, verify
from harness.errors import UserError

CALTECH = Request(format="caltech256", origin="synthetic", counts={"train": 257})


@pytest.mark.parametrize("request_", [request_of("synthetic:mnist"), CALTECH], ids=["small", "tree"])
def test_a_staged_set_is_the_same_set(tmp_path, request_):
    source, target = tmp_path / "shared $(x)", tmp_path / "node" / "ünd"
    manifest = make(source, request_)
    staged = stage(source, target)
    assert staged.verified
    assert staged.files == manifest.total_files + (1 if request_ is CALTECH else 0)
    assert {check.verdict for check in verify(target)[1]} == {OK}
    ours, theirs = ({str(path.relative_to(root)) for path in root.rglob("*")} for root in (source, target))
    assert ours == theirs


def test_a_damaged_source_is_refused_and_the_copy_stays_unfinished(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    make(source, request_of("synthetic:mnist"))
    victim = source / "t10k-images-idx3-ubyte.gz"
    content = bytearray(victim.read_bytes())
    content[40] ^= 1
    victim.write_bytes(content)
    with pytest.raises(UserError, match="t10k-images-idx3-ubyte.gz: differs from its checksum"):
        stage(source, target)
    assert not (target / MANIFEST).exists()
    assert not (target / victim.name).exists()


def test_files_without_a_manifest_are_copied_but_not_called_verified(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/x").write_bytes(b"123")
    staged = stage(tmp_path / "a", tmp_path / "c")
    assert (staged.verified, staged.files, staged.bytes) == (False, 1, 3)
    assert (tmp_path / "c/b/x").read_bytes() == b"123"


def test_what_cannot_be_staged_is_refused_at_once(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="no directory to stage from"):
        stage(tmp_path / "none", tmp_path / "b")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / PARTIAL).write_text("{}")
    with pytest.raises(UserError, match="half made"):
        stage(tmp_path / "half", tmp_path / "b")
    make(tmp_path / "a", request_of("synthetic:mnist"))
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10, 0, 10))
    with pytest.raises(UserError, match="10 B free"):
        stage(tmp_path / "a", tmp_path / "b")


def test_the_verb_tells_what_it_copied(tmp_path):
    make(tmp_path / "a", request_of("synthetic:mnist"))
    result = CliRunner().invoke(data, ["stage", str(tmp_path / "a"), str(tmp_path / "b"), "--json"])
    facts = json.loads(result.stdout)
    assert (facts["files"], facts["verified"], facts["to_path"]) == (4, True, str(tmp_path / "b"))
