"""What the guide says of a specification's keys: help for the key at the cursor, and what can be completed there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ...files import read_text
from ...paths import resources

HEADING = "## Every key"  # of the guide's page; its rows are `| key | words |`, with [] around the name of a table
_MOST_BYTES = 1 << 20
_ROW = re.compile(r"^\| `(\[?)([\w.]+)\]?` \| (.+) \|$", re.MULTILINE)
_HIDDEN = re.compile(r"\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|#[^\n]*")
_HEADER = re.compile(r"^[ \t]*\[\[?[ \t]*([A-Za-z_][\w.-]*)[ \t]*\]", re.MULTILINE)
_ENTRY = re.compile(r"^[ \t]*([\w-]+)(?:\.[\w.-]+)?[ \t]*=", re.MULTILINE)
_WORD = re.compile(r"[\w.-]*$")


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a position in a text lies: its table, the entry that is not complete before it, and the word there."""

    table: str
    entry: str  # '' where a new one can begin
    head: str  # what stands before the word in its line, without texts and comments
    word: str

    @property
    def inner(self) -> str:
        """What the keys at this spot belong to."""
        return _joined(self.table, self.entry)


@lru_cache(maxsize=1)
def known_keys() -> dict[str, tuple[str, bool]]:
    """By the name of a key, as `kernel.source`: what it is, in Markdown, and whether it is a table."""
    page = read_text(resources() / "guide" / "specification.md", _MOST_BYTES).partition(HEADING)[2]
    return {name: (words, bool(table)) for table, name, words in _ROW.findall(page)}


def spot_at(text: str, at: int) -> Spot:
    """Where a position lies, counted in characters."""
    before = _HIDDEN.sub('""', text[:at])
    headers = list(_HEADER.finditer(before))
    table, begin = (headers[-1][1], headers[-1].end()) if headers else ("", 0)
    entries = list(_ENTRY.finditer(before, begin))
    above, line = before[: before.rfind("\n") + 1], before[before.rfind("\n") + 1 :]
    rest = above[entries[-1].end() :] if entries else ""
    open_yet = not rest or sum(letter in "[{" for letter in rest) > sum(letter in "]}" for letter in rest)
    word = _WORD.search(line)
    assert word is not None
    return Spot(table, entries[-1][1] if entries and open_yet else "", line[: word.start()], word[0])


def help_at(text: str, at: int) -> tuple[str, str]:
    """The key, or else the table, at a position, and what the guide says of it; '' where there is none."""
    rest = re.match(r"[\w.-]*", text[at:])
    spot = spot_at(text, at + (rest.end() if rest else 0))
    for name in (_joined(spot.inner, spot.word), spot.inner, spot.word, spot.table):
        if name in known_keys():
            return name, known_keys()[name][0]
    return "", ""


def completions_at(text: str, at: int) -> tuple[str, list[str]]:
    """The word before a position, and what it can become: keys of the table, or tables after a bracket."""
    spot, known = spot_at(text, at), known_keys()
    if not spot.entry and spot.head.strip() in ("[", "[["):
        found = [f"{name}{']' * len(spot.head.strip())}" for name, (_, table) in known.items() if table]
    elif (not spot.entry and not spot.head.strip()) or spot.head.rstrip()[-1:] in ("{", ","):
        above = f"{spot.inner}." if spot.inner else ""
        found = [f"{name.removeprefix(above)} = " for name in known if name.startswith(above)]
        found = [key for key in found if "." not in key]
    else:
        found = []
    return spot.word, [each for each in found if each.startswith(spot.word)]


def _joined(table: str, key: str) -> str:
    return ".".join(each for each in (table, key) if each)
