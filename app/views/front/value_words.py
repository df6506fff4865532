"""Parameters' values and whole configurations as text."""

from __future__ import annotations

from ...engine.measurement import Measurement, Value
from ..plots.quantities import format_number


def value_text(value: Value) -> str:
    """A parameter's value as shown: text and whole numbers as they are, other numbers to four digits."""
    return format_number(value) if isinstance(value, float) and not value.is_integer() else str(value)


def configuration_text(measurement: Measurement) -> str:
    """A configuration in one line: 'block_size_x=32, tile=4'."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in measurement.configuration.items())
