"""What `wattridge COMMAND` does without a window. One function per command; `app.cli` reads the arguments."""
