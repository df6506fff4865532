"""`Placement`: where the window and its docks lie, kept over restarts, for each set of screens its own."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QMargins, QRect, QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow

from ..settings import Settings
from .docks import Docks

_USUAL = QSize(1840, 1000)
_FRAME = QMargins(8, 40, 8, 8)  # room for what the desktop draws around a window: not known before it is shown


def first_geometry(available: QRect) -> QRect:
    """Where the window lies at the very first start: within what is available of the screen, its frame included."""
    room = available.marginsRemoved(_FRAME)
    size = room.size().boundedTo(_USUAL.expandedTo(available.size() * 3 / 4))
    geometry = QRect(room.topLeft(), size)
    geometry.moveCenter(room.center())
    return geometry


def screens_name(sizes: Iterable[QSize]) -> str:
    """The name of a set of screens, from their sizes."""
    return "+".join(sorted(f"{size.width()}x{size.height()}" for size in sizes))


class Placement:
    """`restore` once, before the window is shown; `keep` when it closes."""

    def __init__(self, window: QMainWindow, docks: Docks, settings: Settings) -> None:
        self._window = window
        self._docks = docks
        self._settings = settings
        self._screens = _screens_now()

    def restore(self) -> None:
        """What was kept on these screens, else as at the very first start."""
        self._window.setGeometry(first_geometry(self._window.screen().availableGeometry()))
        geometry = self._settings.kept(f"geometry_{self._screens}")
        if geometry is not None:
            self._window.restoreGeometry(geometry)
        screen = QGuiApplication.screenAt(self._window.geometry().center()) or self._window.screen()
        self._docks.restore(self._settings.kept(f"layout_{self._screens}"), screen.availableSize())

    def keep(self) -> None:
        """For the next start, unless a screen came or went: the layout would be that of other screens."""
        if _screens_now() == self._screens:
            self._settings.keep(f"geometry_{self._screens}", self._window.saveGeometry())
            self._settings.keep(f"layout_{self._screens}", self._docks.state())


def _screens_now() -> str:
    return screens_name(screen.size() for screen in QGuiApplication.screens())
