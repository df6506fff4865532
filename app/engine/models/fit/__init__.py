"""The frequency model: its curve, its fit, its posterior, and the clock that follows from them."""
