"""The command line: one file per verb, imported only when that verb runs."""
