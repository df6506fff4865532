"""The analysis of a session's measurements, one figure at a time."""
