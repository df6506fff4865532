"""The specifications that come with the program, by kind, each with the one line that says what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...base.paths import resources

KINDS: Final = {  # by the table of the file
    "[kernel]": "Kernels",
    "[operator]": "Operators",
    "[command]": "Programs",
    "[service]": "Served models and other services",
}


def examples() -> tuple[Path, ...]:
    """Those of each kind together, in the order of `KINDS`."""
    paths = sorted((resources() / "examples").rglob("*.toml"), key=lambda path: path.stem)
    kinds = list(KINDS.values())
    return tuple(sorted(paths, key=lambda path: kinds.index(kind_of(path))))


def kind_of(path: Path) -> str:
    """One of the values of `KINDS`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(kind for table, kind in KINDS.items() if table in lines)


def about(path: Path) -> str:
    """The first sentence of a file's comment or docstring."""
    comment: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith(("#", '"""')):
            break
        comment += line.strip('#" ').split()
    return " ".join(comment).partition(". ")[0].rstrip(".")
