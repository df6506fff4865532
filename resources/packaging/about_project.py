"""What pyproject.toml says of the project: its version, its author and its addresses, which stand there alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_DOCUMENT: Final = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_PROJECT: Final = _DOCUMENT["project"]
URLS: Final[dict[str, str]] = _PROJECT["urls"]
AUTHOR: Final[str] = _PROJECT["authors"][0]["name"]
MAIL: Final[str] = _PROJECT["authors"][0]["email"]
SUMMARY: Final[str] = _PROJECT["description"]
DEPENDENCIES: Final[list[str]] = _PROJECT["dependencies"]
PLACEHOLDER: Final = "OWNER"  # stands in each address that nobody has filled in
_LINK: Final = re.compile(r"""(?P<before>\]\(|src="|href=")(?!https?:|#|mailto:)(?P<path>[^)"\s#]+)""")
_PICTURES: Final = (".png", ".svg", ".gif", ".webp")


def version() -> str:
    """As app/__init__.py states it."""
    text = (ROOT / "app" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE)
    assert found is not None
    return found[1]


def address(path: str, kind: str = "blob") -> str:
    """Where a file of this version is published: as a page (`blob`), or as it is (`raw`)."""
    return f"{URLS['Repository']}/{kind}/v{version()}/{path}"


def with_addresses(text: str) -> str:
    """A Markdown text whose links and pictures are found from anywhere."""

    def absolute(link: re.Match[str]) -> str:
        kind = "raw" if link["path"].lower().endswith(_PICTURES) else "blob"
        return link["before"] + address(link["path"].removeprefix("./"), kind)

    return _LINK.sub(absolute, text)


def left_to_fill_in() -> list[str]:
    """The addresses that are placeholders still."""
    return [
        each
        for each in (MAIL, *URLS.values(), _DOCUMENT["tool"]["wattridge"]["appimage-runtime"])
        if PLACEHOLDER in each
    ]
