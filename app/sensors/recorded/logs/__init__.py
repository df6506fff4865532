"""Power logs of other tools."""
