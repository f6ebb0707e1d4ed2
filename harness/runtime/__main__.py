"""``python -m harness.runtime POINT.JSON``: one rank of a run."""

import sys

from harness.runtime import early

early.hold()

from harness.runtime.main import main  # noqa: E402  what it imports takes its time

sys.exit(main(sys.argv[1:]))
