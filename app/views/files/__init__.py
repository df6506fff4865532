"""Windows on files of other tools."""
