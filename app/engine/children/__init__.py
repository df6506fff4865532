"""Processes that Wattridge starts: how its own are found and started, and how all of them end with it."""
