"""What a specification says, and the checks of it."""
