"""Home, the stored sessions, and files of the user."""
