"""Boards of one model for tests."""

from __future__ import annotations

from dataclasses import replace

from app.sensors.simulated.figures import Twin
from app.sensors.simulated.twin import with_gain


def twin_with_gain(twin: Twin, gain: float, number: int) -> Twin:
    """A board of that model that differs in nothing but what its power sensor reports."""
    return replace(with_gain(twin, gain), key=f"{twin.key}#{number}")
