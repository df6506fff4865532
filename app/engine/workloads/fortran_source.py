"""What the text of a function in Fortran says of how its arguments are passed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_MOST: Final = 1 << 20  # characters of a source that are looked at
_COMMENT: Final = re.compile(r"!.*")
_CONTINUED: Final = re.compile(r"&[ \t]*\n[ \t]*&?")
_END: Final = re.compile(r"^\s*(?:contains|end(?:\s*(?:subroutine|function)\b.*)?)\s*$", re.MULTILINE)
_VALUE: Final = re.compile(r"(?:^|,)\s*value\s*(?:,|$)")


@lru_cache(maxsize=64)
def passed_by_value(source: str, function: str) -> frozenset[int]:
    """The places of the arguments that the function declares with the attribute `value`; none where it is not found.

    >>> sorted(passed_by_value("subroutine f(x, n)\\ninteger, value :: n\\nend", "f"))
    [1]
    """
    text = _CONTINUED.sub(" ", _COMMENT.sub("", source[:_MOST])).lower()
    found = re.search(rf"\b(?:subroutine|function)\s+{re.escape(function.lower())}\s*\(([^)]*)\)", text)
    if found is None:
        return frozenset()
    names = [name.strip() for name in found[1].split(",")]
    body = text[found.end() :]
    ended = _END.search(body)
    by_value: set[str] = set()
    for line in (body[: ended.start()] if ended else body).splitlines():
        attributes, declares, declared = line.partition("::")
        if declares and _VALUE.search(attributes.strip()):
            by_value.update(name.strip() for name in declared.split(","))
    return frozenset(place for place, name in enumerate(names) if name in by_value)
