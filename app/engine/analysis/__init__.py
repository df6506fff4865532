"""What the measurements of a session say."""
