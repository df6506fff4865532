"""Measuring on many boards at once: what goes to their workers and what comes back, and the runner that hands out rows.

`pool.py` is the seam; `runner.py` hands rows out and never sees how they travel. Dask carries them (`dask_pool.py`,
`scheduler.py`), which is imported nowhere else, nor is it needed for anything else.
"""
