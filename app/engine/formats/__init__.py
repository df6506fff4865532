"""Files of measurements and specifications, of this program and of others."""
