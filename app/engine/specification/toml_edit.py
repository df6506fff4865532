"""TOML as it is written: values, whole documents, the line of a value, and source files named from another folder.

A place is a path of keys and indices, such as `("parameters", "block_size_x")` or `("restrictions", 2)`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, String

from ...base.errors import InputError
from ...base.files import check_toml_keys
from .document import relative

Place = tuple[str | int, ...]
_WIDE: Final = 100  # characters of a list that stays on one line
_MARK: Final = "wattridge-this-is-the-place"
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def toml_of(value: Any) -> str:
    """A value as TOML writes it. Long lists get a line for each item."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        literal = ("\\" in value or '"' in value) and "'" not in value and value.isprintable()
        return f"'{value}'" if literal else tomlkit.string(value).as_string()
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key_text(key)} = {toml_of(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        items = [toml_of(item) for item in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= _WIDE else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    return repr(value)


def text_of(document: Mapping[str, Any]) -> str:
    """A document as a file in TOML: what is no table first, then a section for each table that is not empty."""

    def lines_of(entries: Mapping[str, Any]) -> list[str]:
        return [f"{key_text(key)} = {toml_of(value)}" for key, value in entries.items()]

    tables = {key: value for key, value in document.items() if isinstance(value, Mapping)}
    lines = lines_of({key: value for key, value in document.items() if key not in tables})
    for name, table in tables.items():
        lines += ["", f"[{key_text(name)}]", *lines_of(table)] if table else []
    return "\n".join(lines).lstrip("\n") + "\n"


def key_text(key: str) -> str:
    """A key as TOML writes it."""
    return key if _BARE.fullmatch(key) else tomlkit.string(key).as_string()


def line_of(text: str, place: Place) -> int | None:
    """The line, from 1, in which the value of a place begins; that of what is around it if there is none."""
    while place:
        header = _header_line(text, place)
        if header is not None:
            return header
        try:
            return text.count("\n", 0, _span(text, place)[0]) + 1
        except (InputError, LookupError, ValueError, TOMLKitError):
            place = place[:-1]
    return None


def rebased(text: str, old: Path, new: Path) -> str:
    """The same for another folder: the source files that a kernel names relative to the old one are still found.

    Comments, order and formatting stay. Raises InputError if the text is not TOML.
    """
    kernel = _parsed(text).unwrap().get("kernel")
    if not isinstance(kernel, dict) or old.resolve() == new.resolve():
        return text
    for key in ("source", "include"):
        given = kernel.get(key)
        for index, name in enumerate(given if isinstance(given, list) else [given]):
            if isinstance(name, str):
                place: Place = ("kernel", key, index) if isinstance(given, list) else ("kernel", key)
                start, end = _span(text, place)
                text = text[:start] + toml_of(relative((old / name).resolve(), new)) + text[end:]
    return text


# --- inside -----------------------------------------------------------------------------------------------------------


def _parsed(text: str) -> tomlkit.TOMLDocument:
    check_toml_keys(text, "text")
    try:
        return tomlkit.parse(text)
    except (TOMLKitError, ValueError) as error:
        raise InputError(f"not TOML: {error}", "text", "correct that place") from None
    except RecursionError:
        raise InputError("lists or tables are nested too deeply", "text", "nest them less") from None


def _span(text: str, place: Place) -> tuple[int, int]:
    """Where the value of a place begins, and ends where it is text. Raises LookupError if there is none."""
    document: Any = _parsed(text)
    parent = document
    for key in place[:-1]:
        parent = parent[key]
        if not isinstance(parent, dict | list):
            raise LookupError(key)
    value = parent[place[-1]]
    if isinstance(parent, AoT):
        return _span(text, (*place, next(iter(value), "")))
    length = len(value.as_string()) if isinstance(value, String) else 0
    parent[place[-1]] = _MARK
    start = tomlkit.dumps(document).index(_MARK) - 1
    return start, start + length


def _header_line(text: str, place: Place) -> int | None:
    """The line of `[a.b]`."""
    if not all(isinstance(key, str) for key in place):
        return None
    name = r"\s*\.\s*".join(re.escape(key_text(str(key))) for key in place)
    match = re.search(rf"^[ \t]*\[[ \t]*{name}[ \t]*\]", text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else None
