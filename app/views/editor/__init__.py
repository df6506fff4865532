"""The specification editor: a form and the TOML itself, two views of one text; and the wizard for a new one."""
