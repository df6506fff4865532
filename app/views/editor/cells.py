"""Values as a user reads and types them in a field: lists separated by commas, text without quotes where it can be."""

from __future__ import annotations

import tomllib
from typing import Any

from PySide6.QtWidgets import QTableWidget

from ...engine.specification.toml_edit import toml_of


def shown_value(value: Any) -> str:
    """A single value."""
    if isinstance(value, str):
        return value if typed_value(value) == value else toml_of(value)
    return "" if value is None else toml_of(value)


def typed_value(text: str) -> Any:
    """The value that was typed: a number, true or false, quoted text; else it is text as it stands."""
    try:
        found = tomllib.loads(f"v = {text.strip()}\n")
    except (ValueError, RecursionError):
        return text.strip()
    return found["v"] if len(found) == 1 and isinstance(found["v"], bool | int | float | str) else text.strip()


def shown_values(value: Any) -> str:
    """The values of a parameter: a list with commas, or an expression."""
    if isinstance(value, list):
        return ", ".join(toml_of(each) for each in value)
    return value if isinstance(value, str) else shown_value(value)


def typed_values(text: str) -> Any:
    """A list where it reads as one (numbers, true, false, quoted words), else an expression."""
    try:
        found = tomllib.loads(f"v = [{text}\n]\n")
    except (ValueError, RecursionError):
        return text.strip()
    return found["v"] if len(found) == 1 else text.strip()


def shown_expressions(value: Any) -> str:
    """Expressions with commas between them."""
    items = value if isinstance(value, list) else [value]
    return ", ".join(str(each) for each in items if each is not None)


def typed_expressions(text: str) -> list[Any]:
    """The expressions between the commas that are in no brackets; whole numbers as such."""
    parts, depth, last = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            parts.append(text[last:at].strip())
            last = at + 1
    parts.append(text[last:].strip())
    return [int(part) if part.isdecimal() and len(part) < 19 else part for part in parts if part]


def cell_text(table: QTableWidget, row: int, column: int) -> str:
    """What stands in a cell; '' where it has no item."""
    item = table.item(row, column)
    return "" if item is None else item.text()


def edit_cell(table: QTableWidget, row: int, column: int) -> None:
    """Begin to type in a cell."""
    item = table.item(row, column)
    table.setCurrentCell(row, column)
    if item is not None:
        table.editItem(item)
