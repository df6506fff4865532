"""JSON objects read as their text arrives: a file of any size in pieces, or one that another program still writes.

Each member is yielded as soon as it is complete; those of the members named `inside` (an object or a list of entries)
one by one, so that nothing larger than an entry is ever held.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from ...base.errors import InputError

MAXIMUM_MEMBER = 8 * 2**20  # characters of one entry or one value of the header
_SOON = 2**16  # characters up to which a member is tried again as soon as there are more
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"[0-9.eE+-]*")
_BEGUN = re.compile(r"[-+.\w\\]*")  # a word, a number or an escape that may go on
PairsHook = Callable[[list[tuple[str, Any]]], Any]
_REMEDY = "the file is cut off or damaged; fetch it again"


class Member(NamedTuple):
    """One member of the object, or of the member `inside` it (an item of a list has the name '')."""

    inside: str  # '' at the top
    name: str
    value: Any


class _More(Exception):
    """The text so far ends in the middle of something."""


class JsonStream:
    """Feed it text, take the members: `feed(text)`, then iterate `members()`; `end()` when there is no more."""

    def __init__(
        self, where: str, inside: Collection[str] = (), *, pairs_hook: PairsHook | None = None, remedy: str = _REMEDY
    ) -> None:
        """`pairs_hook`: as `json.loads`, for the objects in values; `remedy`: for a text that is not JSON."""
        self.closed = False  # the object's last brace was seen
        self.opened = ""  # the first one of `inside` whose bracket was seen
        self._where = where
        self._inside = inside
        self._decoder = json.JSONDecoder(object_pairs_hook=pairs_hook)
        self._remedy = remedy
        self._text = ""
        self._at = 0
        self._line, self._column = 1, 1  # of the text's first character
        self._container = ""
        self._list = False  # the container is a list
        self._last = ""  # what was read last: "{" any bracket that opens, "," or "}" the end of a member; "" nothing
        self._escapes = False
        self._waited = 0  # characters of a member that was not complete

    @property
    def inside(self) -> bool:
        """The text so far ends among the entries."""
        return bool(self._container)

    @property
    def half(self) -> bool:
        """The text so far ends in the middle of a member."""
        return _end_of_space(self._text, self._at) < len(self._text)

    @property
    def line(self) -> int:
        """The line of the last member, counted from 1."""
        return self._place(self._at)[0]

    def feed(self, text: str) -> None:
        """Add more text; the part that was read is dropped."""
        self._line, self._column = self._place(self._at)
        self._text = self._text[self._at :] + text
        self._at = 0
        self._escapes = self._escapes or "\\u" in text

    def members(self, *, last: bool = False, final: bool = False) -> Iterator[Member]:
        """The members that are complete. Raises InputError naming line and column.

        `last`: there is no more text for now, so a long member is tried again; `final`: no more text will come, and an
        incomplete member is an error.
        """
        while not self.closed:
            length = len(self._text) - self._at
            if self._waited > _SOON and length < 2 * self._waited and not last and not final:
                self._check_length(length)
                return  # so that a long member is not tried again with every piece of it
            try:
                member = self._next(final)
            except _More:
                self._waited = len(self._text) - self._at
                self._check_length(self._waited)
                return
            self._waited = 0
            if member is not None:
                yield member
        self._at = _end_of_space(self._text, self._at)
        if self._at < len(self._text):
            raise self._wrong(self._at, "there is text after the last brace")

    def end(self) -> None:
        """No more text will come. Raises InputError unless the object is complete, or left open among the entries."""
        if self.closed or self.inside:
            return
        for _ in self.members(final=True):  # raises where the text breaks off
            pass
        if not self.closed:
            raise self._wrong(len(self._text), "the text breaks off")

    # --- inside -----------------------------------------------------------------------------------------------------

    def _next(self, final: bool) -> Member | None:
        """The next member; None for a bracket. Raises _More if the text ends early, InputError if it is wrong."""
        at = self._at = _end_of_space(self._text, self._at)
        character = self._text[at : at + 1]
        if not character:
            raise _More
        if not self._last:
            if character != "{":
                raise self._wrong(at, "an object in braces is needed")
            self._last, self._at = "{", at + 1
            return None
        if character == ("]" if self._list else "}") and self._last != ",":
            self.closed = not self._container
            self._container, self._list, self._last, self._at = "", False, "}", at + 1
            return None
        if self._last == "}":
            if character != ",":
                raise self._wrong(at, "a comma or a bracket is needed")
            self._last = ","
            at = self._at = _end_of_space(self._text, at + 1)
            if at == len(self._text):
                raise _More
        name, at = ("", at) if self._list else self._name(at)
        if not self._container and name in self._inside and self._text[at : at + 1] in ("{", "["):
            self._container, self._list = name, self._text[at] == "["
            self._last, self._at = "{", at + 1
            self.opened = self.opened or name
            return None
        value, end = self._value(at, final)
        self._last, self._at = "}", end
        if self._escapes:
            self._refuse_half_characters(name, value, at)
        return Member(self._container, name, value)

    def _check_length(self, length: int) -> None:
        """Raise InputError for a member that is longer than allowed, complete or not."""
        if length > MAXIMUM_MEMBER:
            what = f"an entry or a value of more than {MAXIMUM_MEMBER / 2**20:.0f} MiB"
            raise self._wrong(self._at, what, "remove it")

    def _name(self, position: int) -> tuple[str, int]:
        """The name of a member, and where its value begins."""
        if self._text[position] != '"':
            raise self._wrong(position, "a name in double quotes is needed")
        name, position = self._value(position, final=False)
        position = _end_of_space(self._text, position)
        if self._text[position : position + 1] not in ("", ":"):
            raise self._wrong(position, "a colon is needed")
        position = _end_of_space(self._text, position + 1)
        if position >= len(self._text):
            raise _More
        return name, position

    def _value(self, position: int, final: bool) -> tuple[Any, int]:
        """The value that begins here, and where it ends."""
        try:
            value, end = self._decoder.raw_decode(self._text, position)
        except json.JSONDecodeError as error:
            if not final and _may_go_on(error):
                raise _More from None
            raise self._wrong(error.pos, error.msg) from None
        except (RecursionError, ValueError) as error:
            what = "nested too deeply" if isinstance(error, RecursionError) else "a number of thousands of digits"
            raise self._wrong(position, what, "pass a file as its program wrote it") from None
        if not final and self._text[end - 1] not in '}]"' and _NUMBER.fullmatch(self._text, end):
            raise _More  # 12 may still become 12.3
        return value, end

    def _refuse_half_characters(self, name: str, value: Any, position: int) -> None:
        """Raise InputError for half a character, which JSON can spell, but no file or screen can hold."""
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise self._wrong(position, "a text holds half a character (a lone surrogate)", "remove it") from None

    def _wrong(self, position: int, what: str, remedy: str = "") -> InputError:
        """The error for that place; without a remedy of its own it is that the text is not JSON."""
        line, column = self._place(position)
        what = what if remedy else f"not valid JSON: {what[:1].lower()}{what[1:]}"
        return InputError(f"line {line}, column {column}: {what}", self._where, remedy or self._remedy)

    def _place(self, position: int) -> tuple[int, int]:
        """The line and column in the file of a position in the text, counted from 1."""
        newline = self._text.rfind("\n", 0, position)
        column = position - newline if newline >= 0 else self._column + position
        return self._line + self._text.count("\n", 0, position), column


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    assert match is not None
    return match.end()


def _may_go_on(error: json.JSONDecodeError) -> bool:
    """Tell whether more text could put it right: it was found at the end, or in a text that has not ended."""
    return error.msg.startswith("Unterminated string") or _BEGUN.fullmatch(error.doc, error.pos) is not None
