"""The traces: lanes painted over one time axis, their read-out, what every channel tells."""
