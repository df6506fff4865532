"""`SpecificationEditor`: the TOML at the left; at the right its problems, the size of the space, and help for a key.

`AskBar`: what to do with unsaved changes, asked inside the window; nothing waits for the answer.

Drafts in the data folder: what was not saved survives a crash.

`EditedSpecification`: the text that is edited, where it belongs, and what a file holds of it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut, QTextCursor, QTextDocument
from PySide6.QtWidgets import QFrame, QPushButton, QSplitter, QWidget

from ...base.errors import InputError, WattridgeError
from ...base.files import read_text, write_text
from ...base.paths import private_folder, resources
from ...engine.formats.t1 import is_json
from ...engine.session.load import load_specification
from ...engine.specification.document import document_of
from ...engine.specification.toml_edit import rebased, text_of, toml_of
from ...engine.specification.toml_section import MAX_BYTES
from ..shared import theme
from ..shared.label import ElidedLabel, PlainLabel
from ..shared.panel import Ending
from ..shared.tasks import LatestTask, TaskQueue
from ..shared.widgets import button, hbox, local_time, open_file, save_file, vbox
from .preview import Beside, Found, Measured, Reading, measure, read
from .toml_pane import TomlPane, help_at
from .wizard import Complaint

if TYPE_CHECKING:
    from ...engine.specification.new_document import NewSpecification
    from ...sensors.gpu import Gpu
    from .wizard import NewWindow


class EditedSpecification(QObject):
    """The text of a document of Qt's, whose history it has, with the file that it is for."""

    changed = Signal()  # the text is another one
    place_changed = Signal()  # it was opened, saved or made

    def __init__(self, document: QTextDocument, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._document = document
        self.text = ""
        self._raw: str | None = ""  # the same as Qt has it, to which a few control characters are others; None: not yet
        self.path: Path | None = None  # None: it was not saved yet
        self.folder = Path.home()  # what file names in it are relative to
        self.name = "untitled"  # of a file for it
        self._saved = ""
        document.contentsChanged.connect(self._look)

    @property
    def modified(self) -> bool:
        """There is something that no file holds."""
        return self.text != self._saved

    @property
    def title(self) -> str:
        return self.path.name if self.path is not None else f"{self.name}.toml"

    @property
    def place(self) -> Path:
        """The path of the document, or the path it would have, as messages name it."""
        return self.path if self.path is not None else self.folder / self.title

    def open(self, text: str, path: Path) -> None:
        """Edit what a file holds."""
        self.path, self.folder, self.name, self._saved = path, path.absolute().parent, path.stem, text
        self._begin(text)

    def begin(self, text: str, folder: Path, name: str) -> None:
        """Edit a text that is in no file yet."""
        self.path, self.folder, self.name, self._saved = None, folder, name, ""
        self._begin(text)

    def note_saved(self, text: str, path: Path) -> None:
        """A file holds this text now."""
        self.path, self.folder, self.name, self._saved = path, path.absolute().parent, path.stem, text
        self.place_changed.emit()

    def text_for(self, path: Path) -> str:
        """The text for another file: the sources that it names are found from there."""
        try:
            return rebased(self.text, self.folder, path.absolute().parent)
        except InputError:  # it is not TOML yet
            return self.text

    def set_text(self, text: str) -> None:
        """All of it is another text, which can be undone. Only where it differs is anything touched."""
        old = self.text
        most = min(len(text), len(old))
        start = next((index for index in range(most) if text[index] != old[index]), most)
        tail = 0
        while tail < most - start and text[-1 - tail] == old[-1 - tail]:
            tail += 1
        cursor = QTextCursor(self._document)
        cursor.setPosition(_units(old[:start]))
        cursor.setPosition(_units(old[: len(old) - tail]), QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text[start : len(text) - tail])

    @Slot()
    def undo(self) -> None:
        """Take the newest change back."""
        self._document.undo()

    @Slot()
    def redo(self) -> None:
        """Make it again."""
        self._document.redo()

    def _begin(self, text: str) -> None:
        self._raw = None
        self._document.setPlainText(text)
        self.text, self._raw = text, self._document.toRawText()
        self.place_changed.emit()
        self.changed.emit()

    @Slot()
    def _look(self) -> None:
        """See whether the text is another one: a new colour of it counts as a change for Qt."""
        raw = self._document.toRawText()
        if self._raw is not None and raw != self._raw:
            self.text, self._raw = raw.replace("\u2029", "\n"), raw
            self.changed.emit()


def _units(text: str) -> int:
    """The length of a text as Qt counts it, in units of UTF-16."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class AskBar(QFrame):
    """Hidden until something asks. `ask` with what is to happen once the answer is not Cancel."""

    save_asked = Signal()
    discard_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("ask")
        self._then: Callable[[], object] | None = None
        self.text = PlainLabel(wrap=True)
        self.save = button("&Save", "Save, then go on", self._save)
        self.discard = button("Do &not save", "The changes are lost", self._discard)
        self.cancel = button("&Cancel", "Everything stays as it is", self.end)
        hbox((self.text, 1), self.save, self.discard, self.cancel, of=self, margins=5)
        theme.style(
            self,
            "#ask {{ background: {c.warning}; border-bottom: 1px solid {c.border}; }}",
            "#ask QLabel {{ color: {c.warning_text}; background: transparent; }}",
        )
        self.hide()

    def ask(self, text: str, then: Callable[[], object], *, save: str = "&Save", discard: str = "Do &not save") -> None:
        """Ask; `then` is called once the changes are saved or given up."""
        self._then = then
        self.text.setText(text)
        self.save.setText(save)
        self.discard.setText(discard)
        self.show()
        self.save.setFocus()

    @Slot()
    def end(self) -> None:
        """Cancel the pending question."""
        self._then = None
        self.hide()

    def go_on(self) -> None:
        """What waited for the answer happens now."""
        then = self._then
        self.end()
        if then is not None:
            then()

    @Slot()
    def _save(self) -> None:
        self.save_asked.emit()

    @Slot()
    def _discard(self) -> None:
        self.discard_asked.emit()


_MAX_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Draft:
    """A text, the file it is for (None: not saved yet), the folder its file names are relative to, and when."""

    text: str
    path: Path | None
    folder: Path
    name: str
    saved_s: float = 0.0


def keep(draft: Draft) -> None:
    """Write a draft in place of an older one for the same file. Raises WattridgeError if that fails."""
    file = _file(draft.path)
    document = {
        "text": draft.text,
        "path": None if draft.path is None else str(draft.path.absolute()),
        "folder": str(draft.folder),
        "name": draft.name,
        "saved_s": time.time(),
    }
    write_text(file, json.dumps(document), overwrite=True)


def kept(path: Path | None) -> Draft | None:
    """The draft for a file, or the one that is for none; None if there is none that can be read."""
    with suppress(WattridgeError, ValueError, KeyError, TypeError, OSError):
        document = json.loads(read_text(_file(path), _MAX_BYTES))
        kept_path = None if document["path"] is None else Path(document["path"])
        return Draft(
            str(document["text"]),
            kept_path,
            Path(document["folder"]),
            str(document["name"]),
            float(document["saved_s"]),
        )
    return None


def forget(path: Path | None) -> None:
    """It was saved, or is not wanted any more."""
    with suppress(WattridgeError, OSError):
        _file(path).unlink(missing_ok=True)


def _file(path: Path | None) -> Path:
    name = "untitled" if path is None else hashlib.sha256(str(path.absolute()).encode("utf-8", "replace")).hexdigest()
    return private_folder("drafts") / f"{name[:32]}.json"


_FILES = "Specifications (*.toml);;All files (*)"
_READ_MS = 80  # after the last change
_KEEP_MS = 1500
START = """# What is tuned: a kernel or a command, its parameters, and what is to be small or large.
[parameters]
block_size_x = [32, 64, 128, 256]

[objective]
minimise = "energy_j"

[search]
strategy = "auto"
"""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    text: str
    draft: Draft | None


@dataclass(frozen=True, slots=True)
class _FromT1:
    path: Path
    text: str  # the same in TOML


class SpecificationEditor(QWidget, Ending):
    """A window beside the main one. `run_asked` hands a saved file over, to be set up to run."""

    run_asked = Signal(object)  # Path
    checked = Signal()  # the newest text was read, and its space built if it has one

    def __init__(self, gpu: Gpu, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._gpu = gpu
        self.text = TomlPane()
        self.edited = EditedSpecification(self.text.document(), self)
        self.reading: Reading | None = None  # of the newest text that was read
        self.measured: Measured | None = None  # its space
        self.new_window: NewWindow | None = None  # once it was asked for
        self._then: Callable[[], object] | None = None  # what waits for a file to be saved
        self._closing = False
        self._draft: Draft | None = None  # that is offered
        self.ask_bar, self.beside = AskBar(), Beside()
        self.message = Complaint()
        self.where = ElidedLabel(muted=True)
        self._reader = LatestTask(self, self._was_read, self._not_done)
        self._measurer = LatestTask(self, self._was_measured, self._not_done)
        self._files = TaskQueue(self, self._not_done)
        self._read_timer, self._keep_timer = QTimer(self), QTimer(self)
        self._lay_out()
        self._connect()
        self.edited.begin(START, Path.home(), "untitled")

    def _lay_out(self) -> None:
        self.resize(1200, 680)
        self.new = button("New …", "From a kernel, a command or an example (Ctrl+N)", self.ask_new)
        self.open_button = button("Open …", "Edit another specification (Ctrl+O)", self.ask_open)
        self.save_button = button("Save", "Ctrl+S", self.save)
        self.save_as_button = button("Save as …", "Ctrl+Shift+S", self.ask_save_as)
        self.undo, self.redo = (
            button("Undo", "Ctrl+Z", self.edited.undo),
            button("Redo", "Ctrl+Shift+Z", self.edited.redo),
        )
        tip = "Save, and open it in Tune (Ctrl+Return)"
        self.run = button("Set up to run", tip, self.set_up)
        self.parts = QSplitter(Qt.Orientation.Horizontal)
        self.parts.addWidget(self.text)
        self.parts.addWidget(self.beside)
        self.parts.setSizes([720, 480])
        self.parts.setStretchFactor(0, 1)
        self.parts.setChildrenCollapsible(False)
        buttons: list[QPushButton] = [self.new, self.open_button, self.save_button, self.save_as_button]
        vbox(
            self.ask_bar,
            hbox(*buttons, self.undo, self.redo, (self.where, 1), self.run),
            self.message,
            (self.parts, 1),
            of=self,
            margins=8,
            spacing=6,
        )

    def _connect(self) -> None:
        for timer, milliseconds, slot in (
            (self._read_timer, _READ_MS, self._read),
            (self._keep_timer, _KEEP_MS, self._keep),
        ):
            timer.setSingleShot(True)
            timer.setInterval(milliseconds)
            timer.timeout.connect(slot)
        self.edited.changed.connect(self._changed)
        self.edited.place_changed.connect(self._show_place)
        self.text.undoAvailable.connect(self.undo.setEnabled)
        self.text.redoAvailable.connect(self.redo.setEnabled)
        self.text.cursorPositionChanged.connect(self._show_help)
        self.beside.line_chosen.connect(self._go_to)
        self.ask_bar.save_asked.connect(self._save_and_go_on)
        self.ask_bar.discard_asked.connect(self._discard_and_go_on)
        for keys, slot in (
            ("Ctrl+S", self.save),
            ("Ctrl+Shift+S", self.ask_save_as),
            ("Ctrl+N", self.ask_new),
            ("Ctrl+O", self.ask_open),
            ("Ctrl+Z", self.edited.undo),
            ("Ctrl+Shift+Z", self.edited.redo),
            ("Ctrl+Y", self.edited.redo),
            ("Ctrl+Return", self.set_up),
        ):
            QShortcut(QKeySequence(keys), self).activated.connect(slot)
        for widget in (self.undo, self.redo):
            widget.setEnabled(False)
        self._show_help()

    # --- what is edited -----------------------------------------------------------------------------------------------

    def open(self, path: Path) -> None:
        """Edit a file, once what is unsaved is saved or given up."""
        self._ask_first(lambda: self._load(path))

    def begin(self, made: NewSpecification, folder: Path) -> None:
        """Edit a new specification for that folder, once what is unsaved is saved or given up."""
        self._ask_first(lambda: self.edited.begin(made.text, folder, made.name))

    def show_board(self, gpu: Gpu) -> None:
        """The limits and clocks are those of another board."""
        self._gpu = gpu
        self._read_timer.start()

    def offer_untitled(self) -> None:
        """Offer what a crash left of a specification that was in no file."""
        self._files.run(lambda: kept(None), self._offer)

    def _load(self, path: Path) -> None:
        def job() -> _File | _FromT1:
            if is_json(path):
                same = text_of(document_of(load_specification(path), path.absolute().parent))
                return _FromT1(
                    path, f"# From {toml_of(path.name)}, which is T1: saving this leaves that as it is.\n{same}"
                )
            return _File(path, read_text(path, MAX_BYTES).replace("\r\n", "\n"), kept(path))

        self._files.run(job, self._loaded)

    def _loaded(self, file: _File | _FromT1) -> None:
        if isinstance(file, _FromT1):
            self.edited.begin(file.text, file.path.absolute().parent, file.path.stem)
            return
        self.message.say("")
        self.edited.open(file.text, file.path)
        if file.draft is not None and file.draft.text != file.text:
            self._offer(file.draft)

    def _offer(self, draft: Draft | None) -> None:
        if draft is None or draft.text == self.edited.text or (draft.path is None and self._unsaved):
            return
        self._draft = draft
        when, what = local_time(draft.saved_s), draft.path.name if draft.path else f"{draft.name}.toml, never saved"
        self.ask_bar.ask(
            f"There are unsaved changes of {when} to {what}.",
            lambda: None,
            save="&Restore them",
            discard="&Forget them",
        )

    # --- the text and what stands beside it ---------------------------------------------------------------------------

    @Slot()
    def _changed(self) -> None:
        self.message.say("")
        self._show_place()
        self._show_help()  # the cursor was moved before the text changed
        self._read_timer.start()
        self._keep_timer.start()

    @Slot()
    def _show_place(self) -> None:
        edited = self.edited
        self.setWindowTitle(f"{'*' if edited.modified else ''}{edited.title} – specification")
        self.where.setText(
            f"{'not saved' if edited.path is None else 'changed' if edited.modified else 'saved'} · {edited.place}"
        )
        self.save_button.setEnabled(edited.modified or edited.path is None)

    @Slot()
    def _read(self) -> None:
        text, path = self.edited.text, self.edited.place
        self._reader.run(lambda _stop: read(text, path))

    @Slot(object)
    def _was_read(self, reading: Reading) -> None:
        if reading.text != self.edited.text:
            return  # the newer text is read in a moment
        self.reading = reading
        self._show_found(reading.found)
        self.run.setEnabled(reading.spec is not None)
        self.run.setToolTip(
            "Save, and open it in Tune (Ctrl+Return)" if reading.spec else "Something is to be corrected first"
        )
        gpu = self._gpu
        self.measured = None
        if reading.spec is not None:
            self.beside.say("Counting the valid configurations …")
        else:
            self.beside.say("No size: something is to be corrected first")
        self._measurer.run(lambda stop: measure(reading, gpu, stop))

    @Slot(object)
    def _was_measured(self, measured: Measured) -> None:
        if self.reading is None or measured.text != self.edited.text:
            return
        self.measured = measured
        if measured.space is not None:
            self.beside.show_space(measured.space)
        elif measured.found:
            self.beside.say(f"No size: {measured.found[0]}")
            self._show_found(measured.found)
        self.checked.emit()

    def _show_found(self, findings: tuple[Found, ...]) -> None:
        lines: dict[int, str] = {}
        for finding in findings:
            if finding.line is not None:
                lines[finding.line] = (
                    f"{lines[finding.line]}; {finding.problem}" if finding.line in lines else str(finding.problem)
                )
        self.text.show_problems(lines)
        self.beside.show_problems(findings)

    @Slot()
    def _show_help(self) -> None:
        self.beside.show_help(*help_at(self.edited.text, len(self.text.before)))

    @Slot(int)
    def _go_to(self, line: int) -> None:
        self.text.go_to_line(line)
        self.text.setFocus()

    @Slot(str, str)
    def _not_done(self, what: str, remedy: str) -> None:
        self._then, self._closing = None, False
        self.message.say(f"{what} ({remedy})" if remedy else what)

    # --- files --------------------------------------------------------------------------------------------------------

    @Slot()
    def save(self) -> None:
        """Save to its file; ask for one if there is none, and where it is an example: those stay as they are."""
        path = self.edited.path
        if path is None or path.resolve().is_relative_to(resources().resolve()):
            self.ask_save_as()
        else:
            self.save_to(path)

    @Slot()
    def ask_save_as(self) -> None:
        """Choose a file."""
        save_file(self, "Save the specification", self.edited.title, _FILES, self.save_to, suffix="toml")

    def save_to(self, path: Path) -> None:
        """Save to that file; the sources that it names are found from there as well."""
        text, edited_path = self.edited.text_for(path), self.edited.path

        def job() -> None:
            write_text(path, text, overwrite=True)
            forget(edited_path)
            forget(path)

        self._keep_timer.stop()
        self._files.run(job, lambda _: self._saved(text, path))

    def _saved(self, text: str, path: Path) -> None:
        unchanged = self.edited.text_for(path) == text
        self.edited.note_saved(text, path)
        if unchanged:
            self.edited.set_text(text)
        self._read_timer.start()
        then, self._then = self._then, None
        if then is not None:
            then()

    @Slot()
    def set_up(self) -> None:
        """Save, and hand the file over to be set up to run."""
        if self.reading is None or self.reading.spec is None or self.reading.text != self.edited.text:
            return
        if self.edited.modified or self.edited.path is None:
            self._then = self._hand_over
            self.save()
        else:
            self._hand_over()

    def _hand_over(self) -> None:
        if self.edited.path is not None:
            self.run_asked.emit(self.edited.path)

    @Slot()
    def ask_open(self) -> None:
        """Choose a file to edit."""
        open_file(self, "Edit a specification", _FILES, self.open)

    @Slot()
    def ask_new(self, way: str = "", example: str = "") -> None:
        """Begin a new one from a kernel, a command or an example: where it was left, or as of `NewWindow.begin`."""
        from .wizard import NewWindow

        if self.new_window is None:
            self.new_window = NewWindow(self)
            self.new_window.made.connect(self.begin)
        if way:
            self.new_window.begin(way, example)
        self.new_window.show()
        self.new_window.raise_()
        self.new_window.activateWindow()

    # --- unsaved changes ----------------------------------------------------------------------------------------------

    @property
    def _unsaved(self) -> bool:
        """Whether there are unsaved changes."""
        return self.edited.modified and self.edited.text != START

    def _ask_first(self, then: Callable[[], object]) -> None:
        if not self._unsaved:
            then()
            return
        self._draft = None
        self.ask_bar.ask(f"{self.edited.title} has unsaved changes.", then)

    @Slot()
    def _save_and_go_on(self) -> None:
        if self._draft is not None:
            draft, self._draft = self._draft, None
            if draft.path is None:
                self.edited.begin(draft.text, draft.folder, draft.name)
            else:
                self.edited.set_text(draft.text)
            self.ask_bar.go_on()
            return
        self._then = self.ask_bar.go_on
        self.save()

    @Slot()
    def _discard_and_go_on(self) -> None:
        draft, self._draft = self._draft, None
        path = draft.path if draft is not None else self.edited.path
        self._keep_timer.stop()
        self._files.run(lambda: forget(path))
        if draft is None:
            self._closing = True  # whatever waits need not ask again
        self.ask_bar.go_on()
        self._closing = False

    @Slot()
    def _keep(self) -> None:
        """Keep what is unsaved in the data folder, so that a crash loses nothing."""
        edited = self.edited
        path = edited.path
        if self._unsaved:
            draft = Draft(edited.text, path, edited.folder, edited.name)
            self._files.run(lambda: keep(draft))
        elif path is not None and self._draft is None:  # one that is offered stays until there is an answer
            self._files.run(lambda: forget(path))

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._unsaved and not self._closing:
            event.ignore()
            self._ask_first(self.close)
            return
        if self.edited.modified:  # given up
            self.edited.begin(START, Path.home(), "untitled")
        super().closeEvent(event)

    def shutdown(self) -> None:
        """End what runs; what is unsaved is kept as a draft."""
        self._keep()
        super().shutdown()
