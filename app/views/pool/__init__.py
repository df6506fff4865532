"""The boards that share a session: which, and what each of them does."""
