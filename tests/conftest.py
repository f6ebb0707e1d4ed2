"""Tests send SIGINT to what they start; a process that ignores it (a background job of a shell) would pass that on."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
