"""The specifications that come with the program, by kind, each with the one line that says what it shows; by name."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...base.errors import InputError
from ...base.files import is_there
from ...base.paths import resources
from .operator_kernels import kept_specification
from .operator_shapes import is_operator, parse_operator

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


def specification_path(text: str) -> Path:
    """A file, an example by its name, or the specification of an operator, which is kept in the data folder.

    Raises InputError for an operator that makes no sense and for a name that nothing has, and WattridgeError where
    nothing can be written.
    """
    path = Path(text)
    if is_there(path):
        return path
    if is_operator(text):
        return kept_specification(parse_operator(text))
    paths = named_examples()
    if text not in paths and path.name == text and not path.suffix:
        raise InputError("there is neither a file nor an example of that name", text, "see `wattridge examples`")
    return paths.get(text, path)


def is_specification(text: str) -> bool:
    """Whether it names a specification: a file in TOML, an example or an operator."""
    return Path(text).suffix.lower() == ".toml" or is_operator(text) or text in named_examples()


def named_examples() -> dict[str, Path]:
    """The specifications and scripts that come with the program, by the name of their file without its suffix."""
    files = sorted((resources() / "examples").rglob("*"))
    return {path.stem: path for path in files if path.suffix in (".toml", ".py")}
