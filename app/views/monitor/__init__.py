"""The traces: lanes painted over one time axis, their read-out, the readings of every channel."""
