"""Cells of delimited text as numbers, a block of lines at a time: a hundred megabytes in a second or two.

Every step works on one character of all rows at once, so that no Python object is made per cell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Rows = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PADDING: Final = b"\n" + b" " * 63  # behind a block, so that no cell is read beyond it
_NEWLINE, _SPACE, _RETURN, _POINT, _MINUS, _PLUS, _ZERO = (ord(each) for each in "\n \r.-+0")
_LONGEST: Final = 18  # digits that 64 bits hold
_LONGEST_TEXT: Final = 60  # characters by which texts are told apart
_PRIME: Final = np.uint64(0x100000001B3)  # of the hash FNV-1a
_TENS: Final = 10.0 ** np.arange(_LONGEST + 2)


class Block:
    """Whole lines, split into cells: `starts[row, cell]` is where a cell begins, spaces before it left out.

    `delimiter` None stands for spaces. Lines with another number of cells than `cells` are in `odd`, by number; those
    that are empty or begin with '#' are neither.
    """

    def __init__(self, text: bytes, delimiter: str | None, cells: int) -> None:
        self.data: Bytes = np.frombuffer(text + PADDING, np.uint8)
        self._text = text + PADDING
        data = self.data[: len(text)]
        ends = np.flatnonzero(data == _NEWLINE)
        if not len(ends) or ends[-1] != len(text) - 1:
            ends = np.append(ends, len(text))  # the last line, where it does not end
        begins = np.concatenate(([0], ends[:-1] + 1))
        self.lines = len(ends)
        self._begins, self._ends = begins, ends
        first = self.data[begins]
        kept = (begins < ends) & (first != ord("#")) & (first != _RETURN)
        self._bound: int = -1 if delimiter is None else ord(delimiter)
        if delimiter is None:
            inside = (data != _SPACE) & (data != _NEWLINE) & (data != _RETURN) & (data != ord("\t"))
            before = np.concatenate(([False], inside[:-1]))
            marks = np.flatnonzero(inside & ~before)
            per_line = cells
        else:
            marks = np.flatnonzero(data == self._bound)
            per_line = cells - 1
        edges = np.searchsorted(marks, begins)
        counts = np.diff(np.append(edges, len(marks)))
        if delimiter is None:
            kept &= counts > 0
        good = kept & (counts == per_line)
        self.odd: Rows = np.flatnonzero(kept & ~good)
        self.numbers: Rows = np.flatnonzero(good)  # of the lines, from 0
        if len(self.numbers) != self.lines or kept.sum() != self.lines:
            marks = marks[np.repeat(good, counts)]
        table = marks.reshape(len(self.numbers), per_line)
        self.starts: npt.NDArray[np.int64] = table if delimiter is None else np.column_stack((begins[good], table + 1))
        if delimiter is not None:
            self._skip_spaces()

    def _skip_spaces(self) -> None:
        """Most logs have one space behind each comma, or none; some pad their cells."""
        while (spaces := self.data[self.starts] == _SPACE).any():
            self.starts += spaces

    def __len__(self) -> int:
        return len(self.numbers)

    def line(self, number: int) -> bytes:
        """A whole line, counted from 0."""
        return self._text[int(self._begins[number]) : int(self._ends[number])].strip()

    def text(self, row: int, cell: int) -> bytes:
        """One cell as it is written, without spaces around it."""
        start = int(self.starts[row, cell])
        return self._text[start : self._end(start)].strip()

    def distinct(self, cell: int) -> tuple[list[int], Rows]:
        """A row of each different text in a cell, and of every row which of these it has: by a hash of the text."""
        at = self.starts[:, cell]
        code = np.zeros(len(at), np.uint64)
        active = np.ones(len(at), np.bool_)
        for place in range(_LONGEST_TEXT):
            character = self.data[at + place]
            active &= (character != _NEWLINE) & (character != _RETURN)
            active &= (character != self._bound) if self._bound != -1 else (character != _SPACE)
            if not active.any():
                break
            code = np.where(active, (code ^ character) * _PRIME, code)
        _, rows, which = np.unique(code, return_index=True, return_inverse=True)
        return rows.tolist(), which

    def floats(self, cell: int, slow: Callable[[bytes, int], float]) -> Floats:
        """One cell of every row as a number; `slow` reads what is not digits with a point, by text and row.

        A unit may follow a number after a space, the same in all rows.
        """
        values, stops, known = read_numbers(self.data, self.starts[:, cell])
        behind = self.data[stops]
        whole = (behind == self._bound) | (behind == _NEWLINE) | (behind == _RETURN)
        if self._bound == -1:
            whole |= (behind == _SPACE) | (behind == ord("\t"))
        else:
            spaced = behind == _SPACE
            if spaced.any():
                unit = self.data[stops + 1]
                like = unit[int(np.argmax(spaced))]
                whole |= spaced & (unit == like)
        for row in np.flatnonzero(~(known & whole)).tolist():
            values[row] = slow(self.text(row, cell), row)
        return values

    def unit(self, cell: int) -> str:
        """What follows the number in the first row that has one; '' where nothing does."""
        for row in range(min(len(self), 1000)):
            words = self.text(row, cell).split()
            if words and words[0][:1].isdigit():
                return words[1].decode("utf-8", "replace") if len(words) > 1 else ""
        return ""

    def _end(self, start: int) -> int:
        ends = b"\n" if self._bound == -1 else b"\n" + bytes((self._bound,))
        stop = min(at for each in ends if (at := self._text.find(each, start)) >= 0)
        if self._bound == -1:
            return start + len(self._text[start:stop].split(None, 1)[0])
        return stop


def read_numbers(data: Bytes, starts: Rows) -> tuple[Floats, Rows, npt.NDArray[np.bool_]]:
    """The decimal numbers that begin at `starts`, where each ends, and which are any: digits with at most one point.

    What is not digits ends a number. Numbers of more than 18 digits are not known.
    """
    sign = data[starts]
    negative = sign == _MINUS
    at = starts + (negative | (sign == _PLUS))
    mantissa = np.zeros(len(at), np.int64)
    digits = np.zeros(len(at), np.int64)
    decimals = np.zeros(len(at), np.int64)
    pointed = np.zeros(len(at), np.bool_)
    active = np.ones(len(at), np.bool_)
    for _ in range(_LONGEST + 2):
        character = data[at]
        digit = character - np.uint8(_ZERO)
        is_digit = active & (digit < 10)
        is_point = active & (character == _POINT) & ~pointed
        active = is_digit | is_point
        if not active.any():
            break
        mantissa = np.where(is_digit, mantissa * 10 + digit, mantissa)
        digits += is_digit
        decimals += is_digit & pointed
        pointed |= is_point
        at = at + active
    known = (digits > 0) & (digits <= _LONGEST) & ~active
    values = mantissa / _TENS[decimals]
    values[negative] *= -1.0
    values[~known] = np.nan
    return values, at, known
