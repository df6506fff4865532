"""The energy roofline: its equations and its fit."""
