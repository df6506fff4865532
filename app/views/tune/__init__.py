"""The page Tune: a session is set up, edited, queued and run, here or on a pool."""
