"""The vocabulary, shared by login, compute and analysis side; frozen values only, no behaviour with side effects."""
