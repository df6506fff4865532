"""Readings over time: the ring that holds them, the thread that takes them, and the files they are written to."""
