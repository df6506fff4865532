"""Models of energy: the frequency model, rooflines, power caps, and the published ways to tune with them."""
