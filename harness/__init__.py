"""Batch-job benchmark harness for deep-learning training and its input pipelines."""

import os

__version__ = "0.1.0"

# pydantic would read the metadata of every installed package in search of plugins: hundreds of small files, in a job
# by each rank
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
