"""Home: what can be done first, and what was done last."""
