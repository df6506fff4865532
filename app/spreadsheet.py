"""Text cells of CSV files: what a spreadsheet would take for a formula is marked as text, and read back unmarked.

A program that opens a CSV file evaluates a cell that begins with `=`, `+`, `-` or `@` (tabs and carriage returns before
them are skipped). An apostrophe before it, as one types it into a spreadsheet, makes it text. Source: OWASP, "CSV
Injection".
"""

from __future__ import annotations

import re
from typing import Final

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
