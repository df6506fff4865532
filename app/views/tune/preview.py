"""`Beside`: what stands beside the text: help for the key at the cursor, the size of the space, and the problems.

What the reader says of a text, and the space it describes. Runs off Qt's thread; free of Qt.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QListWidget, QListWidgetItem, QScrollArea, QWidget

from ...base.errors import InputError
from ...base.formatting import count_text, counted, duration
from ...engine.space.search_space import SearchSpace, pruning_steps
from ...engine.specification.check import specification_of
from ...engine.specification.model import Specification
from ...engine.specification.problems import Problem, problem_of, problems_of
from ...engine.specification.toml_edit import Place, line_of
from ...engine.specification.toml_section import parse_toml
from ..shared.label import PlainLabel
from ..shared.widgets import vbox
from .space_window import PruningPicture

if TYPE_CHECKING:
    from ...engine.space.search_space import SearchSpace
    from ...sensors.gpu import Gpu


@dataclass(frozen=True, slots=True)
class Found:
    """A problem and its line in the text, from 1; None if it has none."""

    problem: Problem
    line: int | None

    def __str__(self) -> str:
        place = _words(self.problem.place)
        return f"{place}: {self.problem}" if place else str(self.problem)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says; `document` is None if it is not TOML, `spec` where something is wrong."""

    text: str
    path: Path
    document: Mapping[str, Any] | None
    spec: Specification | None
    found: tuple[Found, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """The space of a text, or why there is none."""

    text: str
    space: SearchSpace | None
    found: tuple[Found, ...] = field(default=())


def read(text: str, path: Path) -> Reading:
    """Read a text as the file of that path would be."""
    try:
        document = parse_toml(text, path)
    except InputError as error:
        line = re.search(r"at line (\d+)", error.what)
        line_number = int(line[1]) if line else max(1, text.count("\n") + (not text.endswith("\n")))
        return Reading(text, path, None, None, (Found(Problem((), error.what, error.remedy), line_number),))
    problems = problems_of(document, path)
    if problems:
        return Reading(text, path, document, None, tuple(Found(item, line_of(text, item.place)) for item in problems))
    spec = specification_of(document, path)
    try:
        _check_search(spec)
    except InputError as error:
        problem = problem_of(error, document, path)
        return Reading(text, path, document, None, (Found(problem, line_of(text, problem.place)),))
    return Reading(text, path, document, spec)


def measure(reading: Reading, gpu: Gpu, stop: threading.Event) -> Measured:
    """Build the space that was read, with the limits and clocks of a board."""
    from ...engine.session.planning import space_of

    if reading.spec is None or reading.document is None:
        return Measured(reading.text, None)
    try:
        return Measured(reading.text, space_of(reading.spec, gpu, stop))
    except InputError as error:
        problem = problem_of(error, reading.document, reading.path)
        return Measured(reading.text, None, (Found(problem, line_of(reading.text, problem.place)),))


def _check_search(spec: Specification) -> None:
    from ...engine.session.planning import check_search

    check_search(spec)


def _words(place: Place) -> str:
    """A place as the reader names it: kernel.arguments[0].type."""
    text = ""
    for key in place:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return text


_LINE = Qt.ItemDataRole.UserRole
_LINES = 12  # of the picture; it scrolls beyond


class Beside(QWidget):
    """Shows what was found in the text; a problem that is chosen is gone to."""

    line_chosen = Signal(int)  # from 1

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.count = _heading("Problems")
        self.problems = QListWidget()
        self.problems.setAccessibleName("Problems")
        self.problems.setWordWrap(True)
        self.problems.setAlternatingRowColors(True)
        self.problems.setTextElideMode(Qt.TextElideMode.ElideNone)
        self.problems.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.words = PlainLabel(wrap=True, selectable=True)
        self.words.setAccessibleName("Size of the space")
        self.picture = PruningPicture()
        self.area = QScrollArea()
        self.area.setWidget(self.picture)
        self.area.setWidgetResizable(True)
        self.area.setFrameShape(QFrame.Shape.NoFrame)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFixedHeight(self.picture.height_of(2))
        self.key = _heading("Key")
        self.help = PlainLabel(wrap=True, selectable=True)
        self.help.setTextFormat(Qt.TextFormat.MarkdownText)
        self.help.setAccessibleName("Help for the key at the cursor")
        self.help.setMinimumHeight(5 * self.help.fontMetrics().lineSpacing())
        self.help.setAlignment(Qt.AlignmentFlag.AlignTop)
        parts = self.key, self.help, _heading("Space"), self.words, self.area, self.count, (self.problems, 100), 1
        vbox(*parts, of=self, margins=0, spacing=4).setContentsMargins(8, 0, 0, 0)
        self.problems.itemActivated.connect(self._chosen)
        self.problems.itemClicked.connect(self._chosen)

    def show_problems(self, findings: Sequence[Found]) -> None:
        """List what is wrong, each with its line."""
        self.problems.clear()
        for finding in findings:
            prefix = f"Line {finding.line}: " if finding.line is not None else ""
            QListWidgetItem(f"{prefix}{finding}", self.problems).setData(_LINE, finding.line or 1)
        self.count.setText(counted(len(findings), "problem") if findings else "No problems")
        self.problems.setVisible(bool(findings))

    def say(self, text: str) -> None:
        """There is no size, or not yet; the picture stays until there is another one."""
        self.words.setText(text)

    def show_space(self, space: SearchSpace) -> None:
        """Show a space that was built."""
        size = f"{count_text(space.size)} valid of {count_text(space.cartesian)} combinations"
        built = f" · built in {duration(space.build_seconds)}" if space.build_seconds else ""
        self.words.setText(" · ".join([size + built, *space.notes]))
        steps = pruning_steps(space)
        self.picture.show_steps(space.cartesian, steps)
        self.area.setFixedHeight(self.picture.height_of(min(_LINES, 2 + len(steps))))

    def show_help(self, key: str, words: str) -> None:
        """Show what the guide says of a key."""
        self.key.setText(key or "Key")
        self.help.setText(words or "Put the cursor on a key to read what it does. Ctrl+Space lists the keys.")

    @Slot(QListWidgetItem)
    def _chosen(self, item: QListWidgetItem) -> None:
        self.line_chosen.emit(item.data(_LINE))


def _heading(text: str) -> PlainLabel:
    label = PlainLabel(text)
    font = label.font()
    font.setBold(True)
    label.setFont(font)
    return label
