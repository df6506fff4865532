"""Sessions and measurements in SQLite."""
