"""`InParts`: a widget that takes too long to make for one turn of Qt's loop."""

from __future__ import annotations

from collections.abc import Iterator


class InParts:
    """Mixed into a widget whose `make` does what `__init__` would, and yields where a turn may end.

    `__init__` takes `at_once` and hands it to `begin` last: whoever makes the widget by itself gets all of it, and the
    window asks for it part by part. Until it is whole it is not shown, and hears of nothing: signals are connected in
    the last part, which also reads what they would have said.
    """

    _left: Iterator[None] | None

    def make(self) -> Iterator[None]:
        """Make the widget. At most one plot between two `yield`s: each takes milliseconds."""
        raise NotImplementedError

    def begin(self, at_once: bool) -> None:
        """Make nothing yet, or all of it."""
        self._left = self.make()
        if at_once:
            self.finish()

    @property
    def is_whole(self) -> bool:
        """Whether every part is there."""
        return self._left is None

    def make_part(self) -> None:
        """Make one more part, if any is left."""
        if self._left is not None and next(self._left, self) is self:
            self._left = None

    def make_parts(self) -> Iterator[None]:
        """Make what is left, for a widget that this one is a part of."""
        while not self.is_whole:
            self.make_part()
            yield

    def finish(self) -> None:
        """Make what is left now."""
        for _ in self.make_parts():
            pass
