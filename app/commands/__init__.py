"""What `wattridge COMMAND` does without a window. One function per command; `cli` reads the arguments."""
