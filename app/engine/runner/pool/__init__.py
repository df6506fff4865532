"""Measuring on many boards at once: what goes to their workers and what comes back, and the runner that hands out rows.

`pool.py` has the boards and the seam; `runner.py` hands rows out and never sees how they travel, as the lines of
`messages.py`. Dask carries them (`dask_pool.py`), which is imported nowhere else, nor is it needed for anything else.
"""
