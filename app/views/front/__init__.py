"""The Pareto laboratory: speed against energy, and ways to choose."""
