"""The frequency model, fitted and drawn; the ways to tune as bars."""
