"""The published ways to tune for energy, clock sweeps and steering."""
