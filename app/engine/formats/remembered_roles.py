"""What users said of the columns of tables, kept in a small file beside them for tables of the same shape.

The file can be shared with the tables; it holds headings and roles, and nothing is run from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from ...base.errors import InputError
from ...base.files import read_text, write_text
from ...base.text import json_or_none

NAME: Final = "wattridge-roles.json"
_LARGEST: Final = 2**20  # bytes
_MOST: Final = 200  # shapes


def remember(path: Path, headings: Iterable[str], said: Mapping[str, str]) -> Path:
    """Keep what is said of a table's columns in its folder, in place of what was said of that shape before.

    Parameters
    ----------
    path : Path
        The table.
    headings : iterable of str
        Its headings: tables with the same ones are of the same shape.
    said : mapping of str
        What its columns are, as the options `--parameters`, `--figures` and `--roles` say it, by the option's name.

    Returns
    -------
    Path
        The file in which it is kept.

    Raises
    ------
    WattridgeError
        If the file cannot be written, or what is there is none of ours.
    """
    file = _beside(path)
    shape = sorted(headings)
    others = [entry for entry in _entries(file) if entry["columns"] != shape][-_MOST + 1 :]
    written = {"wattridge-roles": 1, "shapes": [*others, {"columns": shape, **said}]}
    return write_text(file, [json.dumps(written, indent=1, ensure_ascii=False), "\n"], overwrite=True)


def remembered(path: Path, headings: Iterable[str]) -> dict[str, str]:
    """Return what was said of tables of this shape in this folder.

    Parameters
    ----------
    path : Path
        The table.
    headings : iterable of str
        Its headings.

    Returns
    -------
    dict of str
        As `remember` was given it; empty if nothing was said.

    Raises
    ------
    InputError
        If the file beside the table is damaged or none of ours.
    """
    shape = sorted(headings)
    for entry in _entries(_beside(path)):
        if entry["columns"] == shape:
            said = {name: entry.get(name) for name in ("parameters", "figures", "roles")}
            return {name: text for name, text in said.items() if isinstance(text, str)}
    return {}


def _beside(path: Path) -> Path:
    return path.resolve().parent / NAME


def _entries(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        return []
    document = json_or_none(read_text(file, _LARGEST))
    shapes = document.get("shapes") if isinstance(document, dict) else None
    if not isinstance(shapes, list) or not all(
        isinstance(e, dict) and isinstance(e.get("columns"), list) for e in shapes
    ):
        raise InputError("this holds no roles of columns", str(file), "correct it or remove it")
    return shapes
