"""The selected configuration: its trace, figures, messages and source."""
