"""Results as plain data: measurements, objectives, fronts, settings, descriptions and charts."""
