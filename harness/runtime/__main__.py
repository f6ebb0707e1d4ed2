"""``python -m harness.runtime POINT.JSON``: one rank of a run."""

import sys

from harness.runtime.main import main

sys.exit(main(sys.argv[1:]))
