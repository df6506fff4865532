"""Reader of TOML tables, key by key: an unknown key or a wrong value raises one clear line that names the place."""

from __future__ import annotations

import difflib
import math
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base.errors import InputError
from ...base.files import check_toml_keys, read_text
from ...base.text import shortened
from ..results.measurement import Value
from ..space.expression import unknown_name
from ..space.values import is_value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MAX_BYTES = 1024 * 1024
MAX_LIST = 65536


def read_toml(path: Path) -> dict[str, Any]:
    """The document of a TOML file of at most MAX_BYTES. Raises InputError naming the line."""
    return parse_toml(read_text(path, MAX_BYTES), path)


def parse_toml(text: str, path: Path) -> dict[str, Any]:
    """The document of a TOML text that is, or will be, at `path`. Raises InputError naming the line."""
    check_toml_keys(text, str(path))
    try:
        return tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number too long to be read
        raise InputError(f"not TOML: {error}", str(path), "correct that place") from None
    except RecursionError:
        raise InputError("lists or tables are nested too deeply", str(path), "nest them less") from None


class UnknownKey(InputError):
    """A key that the table named in `where` does not take."""

    def __init__(self, key: str, where: str, remedy: str) -> None:
        super().__init__(f"unknown key '{key}'", where, remedy)
        self.key = key


class Section:
    """One table of the document. `where` is the file and the table's name, as errors show it."""

    def __init__(self, table: Mapping[str, Any], where: str, known: Sequence[str] | None = None) -> None:
        self._table = table
        self.where = where
        for key in table:
            if known is not None and key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                remedy = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
                raise UnknownKey(key, where, remedy)

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def as_mapping(self) -> Mapping[str, Any]:
        """The table, unchecked."""
        return self._table

    def place(self, key: str) -> str:
        """The place of a key, as errors show it."""
        return f"{self.where}.{key}" if self.where.count(": ") else f"{self.where}: {key}"

    def wrong(self, key: str, wanted: str) -> InputError:
        """The error for a key whose value is not what is wanted."""
        value = self._table.get(key)
        what = "is missing" if key not in self._table else f"is {shortened(repr(value), 60)}"
        return InputError(f"'{key}' {what}", self.place(key), f"{wanted} is needed")

    def raw(self, key: str) -> Any:
        """The value of a key, unchecked; None if it is missing."""
        return self._table.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Text; `default` where the key is missing (None: the key is needed)."""
        value = self._table.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "text")
        return self._whole_text(key, value)

    def _whole_text(self, key: str, text: str) -> str:
        """The text, of which a file's name or a command takes all. Raises InputError for a null character in it."""
        if "\0" in text:
            raise self.wrong(key, "text without the null character")
        return text

    def integer(self, key: str, default: int | None, least: int, most: int = 2**62) -> int | None:
        """A whole number within bounds, or the default."""
        if key not in self._table:
            return default
        value = self._table[key]
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(key, f"a whole number from {least}" + (f" to {most}" if most < 2**62 else ""))
        return value

    def number(self, key: str, default: float | None, least: float = -math.inf) -> float | None:
        """A finite number of at least `least`, or the default."""
        if key not in self._table:
            return default
        value = self._table[key]
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self.wrong(key, "a number")
        if not max(least, -sys.float_info.max) <= value <= sys.float_info.max:
            raise self.wrong(key, f"a number of at least {least:g}" if math.isfinite(least) else "a finite number")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """A truth value, or the default."""
        value = self._table.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "true or false")
        return value

    def items(self, key: str) -> list[Any]:
        """A list, or a single value as a list of one; empty if the key is missing."""
        value = self._table.get(key, [])
        result = value if isinstance(value, list) else [value]
        if len(result) > MAX_LIST:
            raise InputError(f"'{key}' has {len(result)} entries", self.place(key), f"at most {MAX_LIST}")
        return result

    def texts(self, key: str, numbers: bool = False) -> tuple[str, ...]:
        """A list of texts (numbers written out where they are allowed), or a single one."""
        results: list[str] = []
        for item in self.items(key):
            if isinstance(item, str):
                results.append(self._whole_text(key, item))
            elif numbers and isinstance(item, (int, float)) and not isinstance(item, bool):
                results.append(repr(item))
            else:
                raise self.wrong(key, "text or a list of texts")
        return tuple(results)

    def table(self, key: str, known: Sequence[str] | None = None) -> Section:
        """A table below this one; an empty one where the key is missing."""
        value = self._table.get(key, {})
        if not isinstance(value, dict):
            raise self.wrong(key, "a table")
        return Section(value, self.place(key), known)

    def tables(self, key: str, known: Sequence[str] | None = None) -> list[Section]:
        """A list of tables below this one."""
        tables = self._table.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.wrong(key, "a list of tables")
        return [Section(table, f"{self.place(key)}[{index}]", known) for index, table in enumerate(tables)]

    def value(self, key: str) -> Value:
        """A plain value: number, text, true or false."""
        return self.plain(key, self._table.get(key))

    def values(self) -> dict[str, Value]:
        """All values of the table, which are plain, by their keys."""
        return {key: self.value(key) for key in self}

    def plain(self, key: str, value: Any) -> Value:
        """That value, checked to be plain and within bounds."""
        if isinstance(value, str):
            return self._whole_text(key, value)
        if is_value(value):
            return value
        raise self.wrong(key, "a finite number, text, true or false")


KEYS: Final = {"sources": "source", "references": "reference"}  # of a document, where they are not a field's name
MOST_PATTERN: Final = 500  # characters of a regular expression
PLACE: Final = re.compile(r"\{(\w+)\}")


def keys_of(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """The keys of the table in a document that describes a dataclass."""
    return tuple(dict.fromkeys(KEYS.get(member.name, member.name) for member in fields(kind)))


def as_name(key: str, section: Section) -> str:
    """A key that expressions can use as a name. Raises InputError."""
    if not key.isidentifier() or not key.isascii() or len(key) > 100:
        raise InputError(f"'{key}' is not a name", section.where, "use letters, digits and _, not a digit first")
    return key


def check_places(text: str, where: str, scope: tuple[str, ...]) -> None:
    """Check that every `{name}` of a command is in the scope. Raises InputError."""
    for used in PLACE.findall(text):
        if used not in scope:
            raise unknown_name(used, text, where, scope, "name a parameter, constant or device setting")


def has_one_group(pattern: str) -> bool:
    """Whether a pattern can capture a figure: a regular expression with one group, of at most 500 characters."""
    return groups_of(pattern) == 1


def groups_of(pattern: str) -> int | None:
    """Number of groups of a regular expression; None if it is invalid or too long."""
    try:
        return re.compile(pattern).groups if len(pattern) <= MOST_PATTERN else None
    except (re.error, RecursionError, OverflowError):
        return None
