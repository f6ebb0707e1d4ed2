"""Logs of other programs: pattern files say how to read them; rates are computed anew where the log allows."""
