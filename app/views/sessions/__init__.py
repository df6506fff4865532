"""Stored sessions: found, named, opened, exported."""
