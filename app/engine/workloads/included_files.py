"""The files that a kernel's source includes: another text in one of them is another kernel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ...errors import InputError
from ...input_files import open_input
from .source_kernel import Build

MAX_INCLUDES: Final = 2000
_INCLUDE: Final = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)


def included(build: Build) -> Iterator[tuple[Path, bytes]]:
    """The files that a text includes, and those which they include, as far as they are found: not the toolkit's own."""
    waiting = [*build.sources, *_named_in(build.text.encode(), build.include)]
    seen: set[Path] = set()
    while waiting and len(seen) < MAX_INCLUDES:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            with open_input(path) as file:
                text = file.read()
        except (OSError, InputError):
            continue
        yield path, text
        waiting += _named_in(text, (path.parent, *build.include))


def _named_in(text: bytes, folders: Sequence[Path]) -> Iterator[Path]:
    """The files that a text includes, each from the first of the folders that has it."""
    for name in _INCLUDE.findall(text):
        candidates = (folder / name.decode("utf-8", "replace") for folder in folders)
        found = next((candidate for candidate in candidates if candidate.is_file()), None)
        if found is not None:
            yield found
