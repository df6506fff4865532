"""Text from files and devices, made safe to show: control characters are written out, never passed to a terminal.

Text cells of CSV files: what a spreadsheet would take for a formula is marked as text, and read back unmarked.

A program that opens a CSV file evaluates a cell that begins with `=`, `+`, `-` or `@` (tabs and carriage returns before
them are skipped). An apostrophe before it, as one types it into a spreadsheet, makes it text. Source: OWASP, "CSV
Injection".
"""

from __future__ import annotations

import getpass
import json
import platform
import re
import socket
import unicodedata
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

# Cc: ANSI escapes, backspace, newlines; Cf: bidirectional overrides, zero-width characters; Cs: bytes that were not
# UTF-8; Zl and Zp: line and paragraph separators.
_ACTIVE = frozenset(("Cc", "Cf", "Cs", "Zl", "Zp"))
_NAMES_A_BOARD: Final = re.compile(
    r"\b(?P<kind>(?:GPU|MIG|AMD)-)[0-9a-f][0-9a-f-]{6,}"  # a UUID, or the beginning of one
    r"|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\b"  # an address on the PCI bus
    r"|\b(?:s/n|sn|serial(?: number)?)[:#\s]*(?=\w*\d)[\w-]{6,}"
    r"|(?<![\w.])\d{10,}(?![\w.])",  # a serial number of NVIDIA's has 13 digits
    re.IGNORECASE | re.ASCII,
)
_MOST_RAW = 2**16  # characters of a line that are read; nothing longer fits a terminal


def one_line(text: str) -> str:
    """The text on one line: runs of spaces, tabs and newlines become one space, control characters their escapes.

    >>> one_line("a\\x1b[31m\\nb")
    'a\\\\x1b[31m b'
    """
    return visible(" ".join(text[:_MOST_RAW].split()))


def shortened(text: str, most: int = 80) -> str:
    """The text on one line of at most so many characters, for messages."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 3]}..."


def visible(text: str) -> str:
    """The text with every control or formatting character written as Python writes it: `\\x1b`, `\\u202e`, `\\n`."""
    if text.isprintable():
        return text
    return "".join(_escaped(letter) if unicodedata.category(letter) in _ACTIVE else letter for letter in text)


def safe_json(document: str) -> str:
    """A JSON document in which every control or formatting character is escaped, its own line ends apart."""
    if document.isprintable():
        return document
    return "".join(
        letter if letter == "\n" or unicodedata.category(letter) not in _ACTIVE else _json_escape(letter)
        for letter in document
    )


def nameless(text: str, *secrets: str) -> str:
    """The text without what identifies a board, a machine or its user; `secrets` are more that it shall not hold.

    UUIDs, PCI addresses and what is as long as a serial number become `…`, as do the names of this machine and of this
    user and each secret; the home folder becomes `~`.
    """
    home = str(Path.home())
    text = text.replace(home, "~") if len(home) > 1 else text
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = re.sub(re.escape(secret), "…", text, flags=re.IGNORECASE)
    text = _NAMES_A_BOARD.sub(lambda found: f"{found['kind'] or ''}…", text)
    for name in sorted(names_of_this_machine(), key=len, reverse=True):
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "…", text)
    return text


@cache
def names_of_this_machine() -> frozenset[str]:
    """Those of the machine and of this user, by which a text would name somebody."""
    hosts = {socket.gethostname(), platform.node()}
    names = {*hosts, *(host.partition(".")[0] for host in hosts), *(host.lower() for host in hosts)}
    with suppress(OSError, KeyError, ImportError):  # a user without a name
        names.add(getpass.getuser())
    return frozenset(names - {"", "localhost", "root"})  # which name nobody


def json_or_none(text: str | bytes) -> Any:
    """The document of a JSON text; None if the text is not JSON, or nested too deeply to be parsed."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def float_or_none(text: str | bytes) -> float | None:
    """The number that a text is to Python, which may be NaN or infinite; None if the text is none."""
    try:
        return float(text)
    except ValueError:
        return None


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[index] << 8 | units[index + 1]:04x}" for index in range(0, len(units), 2))


_BEGINS: Final = "=+\\-@\t\r\n＝＋－＠"
_RISKY: Final = re.compile(rf"'*[{_BEGINS}]")
_MARKED: Final = re.compile(rf"'+[{_BEGINS}]")


def text_cell(text: str) -> str:
    """A cell of words; never for numbers, which may begin with a sign.

    >>> text_cell("=1+1"), text_cell("plain")
    ("'=1+1", 'plain')
    """
    return f"'{text}" if _RISKY.match(text) else text


def cell_text(cell: str) -> str:
    """What `text_cell` was given; a cell that it did not mark, numbers among them, is returned as it is."""
    return cell[1:] if _MARKED.match(cell) else cell
