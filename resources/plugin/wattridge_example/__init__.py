"""A plug-in of Wattridge: a module for each thing that it brings."""
