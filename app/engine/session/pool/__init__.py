"""Beside the boards of a pool: the process that has a board, and the pools that Wattridge starts itself."""
