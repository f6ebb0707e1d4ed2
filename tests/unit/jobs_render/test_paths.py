"""A storage path means the same to the job script, which stages, and to the ranks, which read."""

from __future__ import annotations

import os
import subprocess
from unittest import mock

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.jobs.render import expanded

VARIABLES = {"USER_X": "me 'x", "DISK": "/scratch/$(touch evil)", "_1": 'q"\\'}
PIECES = st.one_of(
    st.sampled_from(
        ["$USER_X", "${DISK}", "$_1", "$", "${", "$$", "${}", "$(touch evil)", "`id`", "~", "*", "\n", "\\", "%"]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, max_size=6).map("".join))
@example("/scratch/$USER_X/data")
@example("")
@example("${DISK}x$_1")
def test_the_shell_expands_a_path_as_the_ranks_do(path: str) -> None:
    environment = {**VARIABLES, "PATH": os.environ["PATH"]}
    shell = ["bash", "-c", f"printf %s {expanded(path)}"]
    shown = subprocess.run(shell, env=environment, capture_output=True)
    if shown.returncode:
        assert "is not set in the job" in shown.stderr.decode()
        return
    with mock.patch.dict(os.environ, environment, clear=True):
        assert shown.stdout.decode() == os.path.expandvars(path)
