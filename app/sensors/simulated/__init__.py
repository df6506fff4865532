"""Simulated boards, from files of known physics."""
