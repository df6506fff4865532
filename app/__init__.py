"""Wattridge: what a GPU draws while it works, and where it does the most work per joule."""

__version__ = "0.1.0"
