"""The page Control: clocks and power limit by hand, and the switch that allows it."""
