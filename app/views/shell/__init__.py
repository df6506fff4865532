"""The window: docks, actions, palette, settings, help."""
