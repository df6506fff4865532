"""Boards that repeat a recording."""
