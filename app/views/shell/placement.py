"""`Placement`: where the window lies and what is in it, kept over restarts, for each set of screens its own."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QByteArray, QMargins, QRect, QSize
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow

from ..shared.settings import Settings
from .workspaces import Workspaces

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

    def __init__(self, window: QMainWindow, workspaces: Workspaces, settings: Settings) -> None:
        self._window = window
        self._workspaces = workspaces
        self._settings = settings
        self._screens = _screens_now()

    def restore(self) -> None:
        """What was kept on these screens, else as at the very first start."""
        self._window.setGeometry(first_geometry(self._window.screen().availableGeometry()))
        geometry = self._settings.kept(f"geometry_{self._screens}")
        if geometry is not None:
            self._window.restoreGeometry(geometry)
        screen = QGuiApplication.screenAt(self._window.geometry().center()) or self._window.screen()
        room = screen.availableSize()
        for name, workspace in self._workspaces.by_name.items():
            workspace.docks.restore(self._settings.kept(self._layout_of(name)), room)
        sides = _two_numbers(self._settings.kept(f"sides_{self._screens}"))
        if sides is not None and sides[0] < room.width() // 2 and sides[1] < room.height() // 2:
            self._workspaces.set_sides_px(*sides)
        self._workspaces.show_workspace(self._settings.workspace)

    def keep(self) -> None:
        """For the next start, unless a screen came or went: the layout would be that of other screens."""
        self._settings.workspace = self._workspaces.current.spec.name
        if _screens_now() != self._screens:
            return
        self._settings.keep(f"geometry_{self._screens}", self._window.saveGeometry())
        inspector, strip = self._workspaces.sides_px
        self._settings.keep(f"sides_{self._screens}", QByteArray(f"{inspector} {strip}".encode()))
        for name, workspace in self._workspaces.by_name.items():
            if workspace.was_shown:  # one that was not has no sizes yet
                self._settings.keep(self._layout_of(name), workspace.docks.state())

    def _layout_of(self, workspace: str) -> str:
        return f"layout_{workspace}_{self._screens}"


def _two_numbers(kept: QByteArray | None) -> tuple[int, int] | None:
    try:
        one, other = (int(word) for word in bytes((kept or QByteArray()).data()).split())
    except ValueError:
        return None
    return (one, other) if min(one, other) > 0 else None


def _screens_now() -> str:
    return screens_name(screen.size() for screen in QGuiApplication.screens())
