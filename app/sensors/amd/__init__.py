"""Boards through AMD SMI."""
