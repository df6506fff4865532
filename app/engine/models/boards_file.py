"""`resources/boards.toml`: what is published of boards, looked up by the names that drivers give them."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from ...base.paths import resources

_FILE: Final = "boards.toml"
_MAKERS: Final = ("nvidia", "amd", "tesla")  # some drivers put them before a name, some do not


@functools.cache
def board_tables() -> tuple[tuple[Mapping[str, Any], frozenset[str]], ...]:
    """Read the tables of the file, each with the folded names of its board.

    Returns
    -------
    tuple of (mapping, frozenset of str)
        In the order of the file.
    """
    document = tomllib.loads((resources() / _FILE).read_text("utf-8"))
    return tuple((table, frozenset(map(folded, table["names"]))) for table in document["board"])


def folded(name: str) -> str:
    """Reduce a board's name to what tells boards apart.

    Parameters
    ----------
    name : str
        What a driver calls the board.

    Returns
    -------
    str
        Its letters and digits in lower case, without a maker in front.
    """
    words = "".join(letter if letter.isalnum() else " " for letter in name.lower()).split()
    while words and words[0] in _MAKERS:
        words.pop(0)
    return "".join(words)


def base_clock_named(name: str) -> float | None:
    """Look up the base clock of a board's data sheet.

    Parameters
    ----------
    name : str
        What a driver calls the board, or a part of that, as recordings name them.

    Returns
    -------
    float or None
        In MHz; None where none is on file, or boards of that name have several.
    """
    return figure_named(name, "base_clock_mhz")


def figure_named(name: str, key: str) -> float | None:
    """Look up a figure of a board's data sheet.

    Parameters
    ----------
    name : str
        As for `base_clock_named`.
    key : str
        Of the file: 'tdp_w', 'bandwidth_gb_s', ...

    Returns
    -------
    float or None
        In the unit of the key; None where none is on file, or boards of that name have several.
    """
    wanted = folded(name)
    exact = [table for table, names in board_tables() if wanted in names]
    alike = [table for table, names in board_tables() if wanted and any(wanted in each for each in names)]
    figures = {float(table[key]) for table in exact or alike if key in table}
    return figures.pop() if len(figures) == 1 else None
