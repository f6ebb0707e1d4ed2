"""What a rank imports with its framework."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.framework

#: used by the analysis and the makers of data sets, and installed beside the frameworks
NOT_NEEDED = ("IPython", "matplotlib", "pandas", "sklearn")
IMPORT = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
loaded = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted(loaded.intersection(sys.argv[2:]))))
importlib.import_module("pandas")  # whoever needs it has it
"""


@pytest.mark.parametrize(("framework", "module"), [("tensorflow", "engine_tf"), ("torch", "engine_torch")])
def test_a_rank_loads_no_library_for_notebooks_and_tables(framework: str, module: str) -> None:
    for name in (framework, "pandas"):
        pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, "-c", IMPORT, f"harness.runtime.{module}", *NOT_NEEDED],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []
