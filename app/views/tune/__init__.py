"""Setting up, running and exporting a tuning session; the table of its results."""
