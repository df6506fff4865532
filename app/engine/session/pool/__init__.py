"""Beside the boards of a pool: the worker that has one (`worker.py`), and how a pool is got hold of (`opening.py`)."""
