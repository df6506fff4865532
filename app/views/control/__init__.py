"""Clocks and power limit by hand, and the switch that allows it."""
