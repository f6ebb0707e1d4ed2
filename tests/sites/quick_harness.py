"""``harness`` with a short breath, as a program: what it does at a site over minutes it does here within seconds.

Only intervals and patience are changed; a scheduler command is given up after the seconds of HARNESS_TEST_TIMEOUT_S.
"""

from __future__ import annotations

import os

from harness.cli import main
from harness.jobs import drive, session, waiting
from harness.jobs.site import Site
from harness.jobs.watch import Pace

session.SHARED_PACE = Pace(tick_s=0.1, ask_first_s=0.2, ask_most_s=0.5, grace_s=1.0)
drive.BUSY_WAIT_S = 0.5
waiting.TURN_S = 1.0
Site.timeout_s = float(os.environ.get("HARNESS_TEST_TIMEOUT_S", "60"))

if __name__ == "__main__":
    main.main()
