"""Power meters beside a board: what is wired into its supply, or counts for its node."""
