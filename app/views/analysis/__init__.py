"""What the measurements of a session tell, one figure at a time; the report."""
