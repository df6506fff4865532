"""Work beside Qt's thread, and the bridge between it and the engine."""
