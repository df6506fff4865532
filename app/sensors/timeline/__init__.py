"""Recordings and logs as traces of any length: opened at once, or converted first."""
