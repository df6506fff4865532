"""What a board draws without work."""
