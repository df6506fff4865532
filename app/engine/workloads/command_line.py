"""The command line of one of the user's programs: `{name}` in it stands for a value. It never passes a shell."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...errors import InputError
from ..measurement import Value

_PLACE: Final = re.compile(r"\{(\w+)\}")


class CommandLine:
    """A command line that a specification holds; its program is looked for, and not run."""

    def __init__(self, text: str, folder: Path, where: str) -> None:
        """`folder` is the specification's. Raises InputError where it makes no sense or names no program."""
        self._folder = folder
        self._where = where
        try:
            self._words = shlex.split(text)
        except ValueError as error:
            raise InputError(f"not a command line: {error}", where, "close every quote") from None
        if not self._words:
            raise InputError("the command line is empty", where, "name a program")
        if not _PLACE.search(self._words[0]):
            self._words[0] = self._program(self._words[0])

    def words(self, scope: Mapping[str, Value]) -> list[str]:
        """The command line, word by word; names that are not in the scope stay. A value never becomes two words."""
        return fill_places(self._words, scope)

    def _program(self, name: str) -> str:
        """The program's path: one with a slash is relative to the specification."""
        path = str(self._folder / name) if "/" in name and not Path(name).is_absolute() else name
        found = shutil.which(path)
        if found is None:
            raise InputError(f"there is no program '{name}'", self._where, "give its name or its path")
        return found


def fill_places(words: list[str], scope: Mapping[str, Value]) -> list[str]:
    """The words with the values of the names that the scope has."""
    return [_PLACE.sub(lambda place: _text(scope[place[1]]) if place[1] in scope else place[0], word) for word in words]


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"  # as TOML writes it
    return str(value)
