"""How the search came to its best: every evaluation, and the best so far."""
