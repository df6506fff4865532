"""`FileMenus`: recent files and examples to open."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtWidgets import QMenu, QWidget

from ..plots.label import plain_tip
from ..settings import Settings


class FileMenus(QObject):
    """Fills the submenus when they are about to be shown."""

    chosen = Signal(object)  # a Path to be opened

    def __init__(self, window: QWidget, settings: Settings, recent: QMenu, examples: QMenu) -> None:
        super().__init__(window)
        self._settings = settings
        self._recent, self._examples = recent, examples
        recent.aboutToShow.connect(self._fill_recent)
        examples.aboutToShow.connect(self._fill_examples)

    @Slot()
    def _fill_examples(self) -> None:
        from ..tune.draft import examples  # imported late: drafts come with the engine

        if self._examples.isEmpty():
            for path in examples():
                self._offer(self._examples, path, path.stem.replace("_", " "))

    @Slot()
    def _fill_recent(self) -> None:
        self._recent.clear()
        for path in self._settings.recent:
            self._offer(self._recent, path, path.name)
        if self._recent.isEmpty():
            self._recent.addAction("nothing yet").setEnabled(False)
        else:
            self._recent.addSeparator()
            self._recent.addAction("Forget these").triggered.connect(self._settings.forget_recent)

    def _offer(self, menu: QMenu, path: Path, text: str) -> None:
        action = menu.addAction(text)
        action.setStatusTip(f"Open {path}")
        action.setToolTip(plain_tip(str(path)))
        action.triggered.connect(lambda _=False: self.chosen.emit(path))
