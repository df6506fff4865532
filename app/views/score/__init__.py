"""How good search strategies are on recorded spaces."""
