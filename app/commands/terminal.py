"""What reaches the terminal: tables, messages, a progress bar on standard error, and the one JSON document.

Everything that a command prints passes through here, and nowhere else: names come from files and devices, and what
they hold must not act on a terminal.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout, suppress
from typing import TYPE_CHECKING, Any, Final

from ..base.formatting import number
from ..base.processes import ProgressBar as ProgressBar
from ..base.processes import Stop as Stop
from ..base.processes import ask as ask
from ..base.processes import end_on_signals as end_on_signals
from ..base.processes import say as say
from ..base.processes import say_lines as say_lines
from ..base.processes import stop_on_interrupt as stop_on_interrupt
from ..base.records import as_json
from ..base.text import safe_json, visible

if TYPE_CHECKING:
    from ..engine.results.description import Description, Listing

_PLAIN: Final = {  # for terminals whose encoding lacks them
    "–": "-", "…": "...", "·": "-", "─": "-", "█": "#", "░": ".", "★": "*", "µ": "u", "α": "alpha", "β": "beta",
    "²": "2", "±": "+-", "°": " deg ", "−": "-", "×": "x", "→": "->", "≤": "<=", "≥": ">=",
}  # fmt: skip
_NARROWEST: Final = 8  # characters that a column of words keeps in a narrow table
_GAP: Final = "  "


def prepare_streams() -> None:
    """Make standard output and error take any text, whatever the locale; missing ones (`>&-`) take it and forget it."""
    codecs.register_error("wattridge.plain", _plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  (lives as long as the process)
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="wattridge.plain")


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What stands for a character that the encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in text), error.end


def abandon_output() -> None:
    """After a write that failed: forget what is still buffered, so that the interpreter's exit does not fail again."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
            continue
        with suppress(OSError, ValueError, AttributeError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, stream.fileno())
            os.close(nothing)
            stream.flush()


def at_terminal() -> bool:
    """Whether a question can be asked and answered here."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def agrees(question: str) -> bool:
    """Ask on a terminal; elsewhere the answer is no."""
    if not at_terminal():
        return False
    ask(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def show(*lines: str) -> None:
    """Print each text as one line on standard output; without any, an empty line."""
    for line in lines or ("",):
        print(visible(line))


def print_json(document: Any) -> None:
    """The one document of a `--json` command. It stays valid JSON whatever the names in it and the encoding."""
    unicode = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "").startswith("utf")
    print(safe_json(json.dumps(as_json(document), indent=1, allow_nan=False, ensure_ascii=not unicode)))


def print_table(rows: Sequence[Sequence[Any]], header: Sequence[str]) -> None:
    """Columns as wide as their content, numbers to the right.

    In a terminal, or where COLUMNS is set, no line is longer than that: columns of words are shortened first, then
    columns that do not fit follow below, with the first one repeated.
    """
    text = [[visible(_shown(cell)) for cell in row] for row in rows]
    heads = [visible(name) for name in header]
    right = [all(isinstance(row[i], int | float) or row[i] is None for row in rows) for i in range(len(heads))]
    widths = [max(len(line[i]) for line in [heads, *text]) for i in range(len(heads))]
    room = line_width()
    if room is not None:
        widths = _narrowed(widths, [len(head) for head in heads], right, room)
    for number_of_block, block in enumerate(_blocks(widths, room)):
        if number_of_block:
            print()
        for line in (heads, ["─" * width for width in widths], *text):
            cells = [_elided(line[i], widths[i]) for i in block]
            parts = (c.rjust(widths[i]) if right[i] else c.ljust(widths[i]) for c, i in zip(cells, block, strict=True))
            print(_GAP.join(parts).rstrip())


def _shown(cell: Any) -> str:
    """A cell of a table: numbers with four digits, a dash for what is unknown."""
    return number(cell) if cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool)) else str(cell)


def print_description(description: Description) -> None:
    """A title, a line per figure, remarks and tables. Lines that are longer than the terminal are wrapped."""
    show(f"{description.title}: {description.origin}" if description.origin else description.title)
    widest = max((len(figure.label) for figure in description.figures), default=0)
    for figure in description.figures:
        meaning = f"  ({figure.meaning})" if figure.meaning else ""
        print_wrapped(f"  {figure.label:<{widest}}  ", f"{figure.text}{meaning}")
    for remark in description.remarks:
        print_wrapped("  note: ", remark)
    for listing in description.listings:
        show()
        print_listing(listing)


def print_listing(listing: Listing) -> None:
    """A table below its title."""
    if listing.title:
        show(listing.title)
    print_table(listing.rows, listing.header)


def say_listing(listing: Listing) -> None:
    """A table on standard error, so that standard output stays the document."""
    with redirect_stdout(sys.stderr):
        print_listing(listing)


def print_wrapped(head: str, text: str) -> None:
    """A text after its head; further lines stand below its beginning."""
    head, text, room = visible(head), visible(text), line_width()
    if room is None or len(head) + len(text) <= room:
        print(head + text)
    else:
        indent = " " * min(len(head), room // 2)
        print(textwrap.fill(head + text, room, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False))


def line_width() -> int | None:
    """The characters of a line: COLUMNS where it is set, else the terminal's; None where output goes elsewhere."""
    asked = os.environ.get("COLUMNS", "")
    if asked.isascii() and asked.isdigit() and 0 < int(asked) < 10_000:
        return int(asked)
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _narrowed(widths: Sequence[int], heads: Sequence[int], right: Sequence[bool], room: int) -> list[int]:
    """Columns of words made narrower, the widest first, until the table fits or none can give more."""
    narrow = list(widths)
    least = [
        width if is_number else min(width, max(_NARROWEST, head))
        for width, head, is_number in zip(widths, heads, right, strict=True)
    ]
    while sum(narrow) + len(_GAP) * (len(narrow) - 1) > room:
        spare = [width - low for width, low in zip(narrow, least, strict=True)]
        widest = max((i for i in range(len(narrow)) if spare[i] > 0), key=lambda i: narrow[i], default=None)
        if widest is None:
            break
        narrow[widest] -= 1
    return [min(width, room) for width in narrow]


def _blocks(widths: Sequence[int], room: int | None) -> Iterator[list[int]]:
    """The columns that stand side by side; further blocks repeat the first column where there is room for it."""

    def fits(block: Sequence[int]) -> bool:
        return room is None or sum(widths[i] for i in block) + len(_GAP) * (len(block) - 1) <= room

    block = [0]
    for index in range(1, len(widths)):
        if not fits([*block, index]):
            yield block
            block = [0] if fits([0, index]) else []
        block.append(index)
    yield block


def _elided(text: str, room: int) -> str:
    """The text, without its middle if it is too long."""
    kept = room - 1
    return text if len(text) <= room else f"{text[: kept - kept // 2]}…{text[len(text) - kept // 2 :]}"[:room]
