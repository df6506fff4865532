"""Search spaces, and the small language of their restrictions and ranges."""
