"""XLA and torch.compile: the compiled step trains as the plain one does, and the facts say that it was compiled."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.errors import UserError

pytest.importorskip("tensorflow")
pytest.importorskip("torch")

pytestmark = pytest.mark.framework
needs_compiler = pytest.mark.skipif(
    shutil.which(os.environ.get("CXX", "g++")) is None, reason="torch.compile needs a C++ compiler on CPUs"
)


@pytest.mark.parametrize("framework", ["tensorflow", pytest.param("torch", marks=needs_compiler)])
def test_a_compiled_step_trains_as_the_plain_one(maker: Any, feed: Any, framework: str) -> None:
    losses = {}
    for compiled in (False, True):
        context = maker.context("lenet_mnist", framework, batch_size=16, compile=compiled)
        session = maker.session(context)
        assert session.facts().details["compiled"] is compiled
        batch = feed(context)
        losses[compiled] = [session.step(session.to_device(batch(i))).loss for i in range(3)]
    assert losses[True][2] != losses[True][0]
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-3)


def test_a_missing_compiler_is_said_before_the_first_step(maker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(UserError, match="there is no no-such-compiler here; load a module .* or set compile: false"):
        maker.session(maker.context("lenet_mnist", "torch", batch_size=16, compile=True))


def test_kernels_for_a_gpu_need_a_c_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Triton takes CC, else gcc or clang, to build what starts them, and fails in the first step without."""
    from harness.workloads.training_torch import need_compiler

    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="needs a C compiler, and there is no gcc or clang here; .* name it in CC"):
        need_compiler("cuda")
    (tmp_path / "clang").touch(mode=0o755)
    need_compiler("cuda")
    monkeypatch.setenv("CC", "icx")
    with pytest.raises(UserError, match="there is no icx here"):
        need_compiler("cuda")
