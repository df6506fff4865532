"""Editing a TOML text value by value: what is not changed keeps its comments, its order and its formatting.

A place is a path of keys and indices, such as `("parameters", "block_size_x")` or `("restrictions", 2)`. Every function
takes a text and returns another one; each raises InputError where the text is not TOML. tomlkit keeps the formatting.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT, Array, InlineTable

from ...errors import InputError
from ...files import check_toml_keys
from .document import relative

_P = ParamSpec("_P")
Place = tuple[str | int, ...]
_BEYOND: Final = "the way in which this is written cannot be changed value by value"
_WIDE: Final = 100  # characters of a list that stays on one line
_MARK: Final = "wattridge-this-is-the-place"
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def _in_one_line(edit: Callable[_P, str]) -> Callable[_P, str]:
    """What tomlkit refuses is an InputError."""

    @wraps(edit)
    def edited(*args: _P.args, **kwargs: _P.kwargs) -> str:
        try:
            return edit(*args, **kwargs)
        except TOMLKitError:
            raise InputError(_BEYOND, "text", "change it in the text") from None

    return edited


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


@_in_one_line
def with_value(text: str, place: Place, value: Any) -> str:
    """The value of that place is this one; tables that are missing are made. A list's next index appends to it."""
    text = _ended(text)
    document: Any = _parsed(text)
    *above, last = place
    parent: Any
    try:
        parent = _parent(document, place)
    except LookupError:
        listed = [*_single(document, tuple(above)), value]
        return with_value(text, tuple(above), listed[-1 - last :] if isinstance(last, int) else {last: value})
    item = _item(value, lines=len(place) == 1 and isinstance(value, list))
    is_list, is_inline = isinstance(parent, Array), isinstance(parent, InlineTable)
    if isinstance(parent, AoT) and last == len(parent) and isinstance(value, Mapping):
        parent.append(_table(value))
        return _written(document)
    if isinstance(parent, AoT):
        items: Any = parent.unwrap()
        items[last] = value
        return with_value(without(text, tuple(above)), tuple(above), items)
    if is_list and last == len(parent):
        parent.append(item)
    elif len(place) == 1 and isinstance(value, Mapping):
        document[last] = _table(value)
    elif is_inline and last not in parent:
        item.trivia.trail = " "  # before the brace
        parent[last] = item
    else:
        if is_list or last in parent:
            _keep_comment(parent[last], item)
        parent[last] = item
    return _written(document)


@_in_one_line
def without(text: str, place: Place) -> str:
    """The same without the value of that place; where there is none, the text itself."""
    document = _parsed(text)
    try:
        parent = _parent(document, place)
        if isinstance(parent, InlineTable) and place[-1] in parent:
            kept = {key: value for key, value in parent.unwrap().items() if key != place[-1]}
            return with_value(text, place[:-1], kept) if kept else without(text, place[:-1])
        del parent[place[-1]]
    except LookupError:
        return without(text, place[:-1]) if place[-1] == 0 and _single(document, place[:-1]) else text
    return _written(document)


@_in_one_line
def moved(text: str, place: Place, to: Place) -> str:
    """An entry of a table, or an item of a list, changes places with its neighbour `to`; a line keeps its comments."""
    document = _parsed(text)
    parent: Any = _parent(document, place)
    here, there = place[-1], to[-1]
    is_list = isinstance(parent, Array)
    if isinstance(parent, AoT):
        items: Any = parent.unwrap()
        items[here], items[there] = items[there], items[here]
        return with_value(without(text, place[:-1]), place[:-1], items)
    if is_list:
        parent[here], parent[there] = parent[there], parent[here]
        return _written(document)
    first, second = sorted((_lines_of(text, place), _lines_of(text, to)))
    if first == second:  # an inline table: its keys share a line
        order = list(parent)
        one, other = order.index(here), order.index(there)
        order[one], order[other] = order[other], order[one]
        return with_value(text, place[:-1], {key: parent[key].unwrap() for key in order})
    lines = _ended(text).splitlines(keepends=True)
    between = lines[first[1] : second[0]]
    swapped = lines[slice(*second)] + between + lines[slice(*first)]
    return "".join(lines[: first[0]] + swapped + lines[second[1] :])


@_in_one_line
def renamed(text: str, place: Place, name: str) -> str:
    """The entry of that place has another key, where it stands."""
    document = _parsed(text)
    parent = _parent(document, place)
    if name in parent:
        raise InputError(f"'{name}' is there already", str(place[0]), "choose another name")
    start = _start(text, place)
    line = text.rfind("\n", 0, start) + 1
    head = re.fullmatch(r"(\s*)([^=\n]*?)(\s*=\s*)", text[line:start])
    if head is None:  # an inline table
        entries = {name if key == place[-1] else key: value.unwrap() for key, value in parent.items()}
        return with_value(text, place[:-1], entries)
    return text[:line] + head[1] + key_text(name) + head[3] + text[start:]


def line_of(text: str, place: Place) -> int | None:
    """The line, from 1, in which the value of a place begins; that of what is around it where there is none."""
    while place:
        header = _header_line(text, place)
        if header is not None:
            return header
        try:
            return text.count("\n", 0, _start(text, place)) + 1
        except (InputError, LookupError, ValueError, TOMLKitError):
            place = place[:-1]
    return None


def rebased(text: str, old: Path, new: Path) -> str:
    """The same for another folder: the source files that a kernel names relative to the old one are still found."""
    kernel = _parsed(text).unwrap().get("kernel")
    if not isinstance(kernel, dict) or old.resolve() == new.resolve():
        return text
    for key in ("source", "include"):
        given = kernel.get(key)
        for at, name in enumerate(given if isinstance(given, list) else [given]):
            if isinstance(name, str):
                place: Place = ("kernel", key, at) if isinstance(given, list) else ("kernel", key)
                text = with_value(text, place, relative((old / name).resolve(), new))
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


def _written(document: tomlkit.TOMLDocument) -> str:
    text = tomlkit.dumps(document)
    try:
        tomllib.loads(text)
    except ValueError:
        raise InputError(_BEYOND, "text", "change it in the text") from None
    return text


def _item(value: Any, *, lines: bool = False) -> Any:
    """A value with the formatting of `toml_of`; `lines` gives each item of a list its own."""
    written = "[\n" + "".join(f"    {toml_of(each)},\n" for each in value) + "]" if lines else toml_of(value)
    return tomlkit.parse(f"v = {written}\n")["v"]


def _table(entries: Mapping[str, Any]) -> Any:
    table = tomlkit.table()
    for key, value in entries.items():
        table.add(key, _item(value))
    return table


def _keep_comment(old: Any, new: Any) -> None:
    new.trivia.comment_ws, new.trivia.comment = old.trivia.comment_ws, old.trivia.comment


def _parent(document: Any, place: Place) -> Any:
    """What holds the value of a place. Raises LookupError where it is not there."""
    inner = document
    for key in place[:-1]:
        inner = inner[key]
        if not isinstance(inner, dict | list):
            raise LookupError(key)
    return inner


def _single(document: Any, place: Place) -> list[Any]:
    """The plain value of a place as a list of one, for which it stands; [] where there is none."""
    try:
        found = _parent(document, place)[place[-1]]
    except LookupError:
        return []
    return [] if isinstance(found, dict | list) else [found.unwrap()]


def _start(text: str, place: Place) -> int:
    """Where the value of a place begins. Raises LookupError where there is none."""
    document = _parsed(text)
    parent = _parent(document, place)
    inner = parent[place[-1]]
    if isinstance(parent, AoT):
        return _start(text, (*place, next(iter(inner), "")))
    parent[place[-1]] = _MARK
    return _written(document).index(_MARK) - 1


def _lines_of(text: str, place: Place) -> tuple[int, int]:
    """The lines of an entry, the comments right above it included: the first, and the one after the last; from 0."""
    document = _parsed(text)
    value = _parent(document, place)[place[-1]].as_string()
    start = _start(text, place)
    first = text.count("\n", 0, start)
    end = first + value.count("\n") + 1
    lines = text.splitlines()
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return first, end


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"


def _header_line(text: str, place: Place) -> int | None:
    """The line of `[a.b]`."""
    if not all(isinstance(key, str) for key in place):
        return None
    name = r"\s*\.\s*".join(re.escape(key_text(str(key))) for key in place)
    found = re.search(rf"^[ \t]*\[[ \t]*{name}[ \t]*\]", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else None
