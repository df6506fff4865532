"""`AskBar`: what to do with unsaved changes, asked inside the window; nothing waits for the answer."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QFrame

from ..plots import theme
from ..plots.label import PlainLabel
from ..widgets import button, hbox


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
        theme.notifier().changed.connect(self._recolour)
        self._recolour()
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
        """There is nothing to ask any more."""
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

    @Slot()
    def _recolour(self) -> None:
        c = theme.colours()
        self.setStyleSheet(
            f"#ask {{ background: {c.warning}; border-bottom: 1px solid {c.border}; }}"
            f"#ask QLabel {{ color: {c.warning_text}; background: transparent; }}"
        )
