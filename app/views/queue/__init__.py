"""The queue of runs: what waits, what became of the others, and how runs are added."""
