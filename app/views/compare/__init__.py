"""Several sessions and boards over one another."""
