"""Whether a tool's arguments fit its schema: the few words of JSON Schema that tools use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value),
}


def why_not_valid(arguments: Any, schema: Mapping[str, Any]) -> str:
    """Why arguments do not fit; empty if they do."""
    if not isinstance(arguments, dict):
        return "arguments is no object"
    properties = schema["properties"]
    for name in schema.get("required", ()):
        if name not in arguments:
            return f"{name} is missing"
    for name, value in arguments.items():
        if name not in properties:
            return f"there is no argument {name!r}"
        if why := _why_not(value, properties[name]):
            return f"{name}: {why}"
    return ""


def _why_not(value: Any, rule: Mapping[str, Any]) -> str:
    kind = rule["type"]
    if not _TYPES[kind](value):
        return f"not of type {kind}"
    if "enum" in rule and value not in rule["enum"]:
        return f"not one of {', '.join(rule['enum'])}"
    if kind == "string" and not rule.get("minLength", 1) <= len(value) <= rule["maxLength"]:
        return f"not of 1 to {rule['maxLength']} characters"
    if kind in ("integer", "number") and not rule["minimum"] <= value <= rule["maximum"]:
        return f"not from {rule['minimum']} to {rule['maximum']}"
    return ""


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
