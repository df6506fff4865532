"""Checks that several sections share: names that expressions can use, places in commands, patterns of figures."""

from __future__ import annotations

import re
from typing import Final

from ...errors import InputError
from ..expressions.expression import unknown_name
from .toml_section import Section

MOST_PATTERN: Final = 500  # characters of a regular expression
PLACE: Final = re.compile(r"\{(\w+)\}")


def as_name(key: str, section: Section) -> str:
    """A key that expressions can use as a name. Raises InputError."""
    if not key.isidentifier() or not key.isascii() or len(key) > 100:
        raise InputError(f"'{key}' is not a name", section.where, "use letters, digits and _, not a digit first")
    return key


def check_places(text: str, where: str, scope: tuple[str, ...]) -> None:
    """Every `{name}` of a command is a name of the scope. Raises InputError."""
    for used in PLACE.findall(text):
        if used not in scope:
            raise unknown_name(used, text, where, scope, "name a parameter, constant or device setting")


def has_one_group(pattern: str) -> bool:
    """Whether a pattern can find a figure: a regular expression with one group, of at most 500 characters."""
    return groups_of(pattern) == 1


def groups_of(pattern: str) -> int | None:
    """How many groups a regular expression has; None for what is none, or is too long."""
    try:
        return re.compile(pattern).groups if len(pattern) <= MOST_PATTERN else None
    except (re.error, RecursionError, OverflowError):
        return None
