"""The #defines that stand before a kernel's source: a specification's constants and one configuration's parameters."""

from __future__ import annotations

from ..measurement import Configuration, Value
from ..specification.model import Specification


def define_lines(spec: Specification, configuration: Configuration) -> list[str]:
    """One line for each constant, then for each parameter; device settings are no part of the text."""
    settings = spec.device_settings
    defined = {**spec.constants, **{n: v for n, v in configuration.items() if n not in settings}}
    return [f"#define {name} {_define(value)}" for name, value in defined.items()]


def _define(value: Value) -> str:
    """A value as C++ has it; text stands as it is."""
    return str(int(value)) if isinstance(value, bool) else str(value)
