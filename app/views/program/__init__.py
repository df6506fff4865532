"""Where the joules of a program go: its timeline, an icicle chart of joules, the table, and two profiles compared."""
