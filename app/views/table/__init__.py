"""The measurements of the current result as a table at full width."""
