"""Batch-job benchmark harness for deep-learning training and its input pipelines."""

__version__ = "0.1.0"
