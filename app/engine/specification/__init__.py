"""What a specification holds, and its checks."""
