"""`Docks`: the window's docks: where they start, shown and hidden, moved, kept over restarts, and put back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QByteArray, QEvent, QObject, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QDockWidget, QMainWindow, QSizePolicy, QTabBar, QWidget

from ..plots.label import PlainLabel
from .panels import PanelSpec

_TALL_PX = 900  # from this height of the screen on, two panels fit above one another
_WIDE_PX = 1900  # from this width on, beside one another
_LAYOUT_VERSION = 5  # raised when docks are renamed or removed: an older saved layout is then left alone
_SHARE, _SHARE_NARROW, _SHARE_WIDE = 0.36, 0.42, 0.54  # of the window's width, for the docks
_NARROW_PX = 1500


class Docks(QObject):
    """One dock per spec. `changed` follows every dock that is shown or hidden, by whatever means."""

    changed = Signal()

    def __init__(self, window: QMainWindow, specs: Sequence[PanelSpec]) -> None:
        super().__init__(window)
        self._window = window
        self._specs = specs
        self.by_name: dict[str, QDockWidget] = {}
        for spec in specs:
            dock = QDockWidget(spec.title, window)
            dock.setObjectName(spec.name)
            dock.setWidget(placeholder("Loading…"))
            dock.visibilityChanged.connect(self._visibility_changed)
            self.by_name[spec.name] = dock
        self._first = QByteArray()
        self._wide = window.screen().availableGeometry().width() >= _WIDE_PX
        self._stacks: dict[bool, QDockWidget] = {}  # the first dock of each, by whether it is that of the plots
        self._arrange()
        window.installEventFilter(self)

    def _arrange(self) -> None:
        """All in one stack of tabs; the plots in a stack of their own below on a tall screen, beside on a wide one."""
        apart = self._wide or self._window.screen().availableGeometry().height() >= _TALL_PX
        for spec in self._specs:  # the stacks first: a dock cannot be put beside one that has tabs already
            if (apart and spec.plots) not in self._stacks:
                self._stacks[apart and spec.plots] = self.by_name[spec.name]
        beside = Qt.Orientation.Horizontal if self._wide else Qt.Orientation.Vertical
        for dock in self._stacks.values():
            self._window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock, beside)
        for spec in self._specs:
            stack, dock = self._stacks[apart and spec.plots], self.by_name[spec.name]
            if dock is not stack:
                self._window.tabifyDockWidget(stack, dock)
        for first in self._stacks.values():
            first.raise_()

    def stop_watching(self) -> None:
        """Before the window is deleted: docks that go with it are no change."""
        self._window.removeEventFilter(self)
        for dock in self.by_name.values():
            dock.visibilityChanged.disconnect(self._visibility_changed)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Docks keep their share of a window that is resized or made as large as the screen."""
        if isinstance(event, QResizeEvent) and watched is self._window and self._window.isVisible():
            before = event.oldSize().width()
            if before > 0:
                part = event.size().width() / before
                widths = {name: round(width * part) for name, width in self.columns().items()}
                QTimer.singleShot(0, self, lambda: self._resize(widths))
        return False

    def columns(self) -> dict[str, int]:
        """Width of each dock that is in sight, in its place at the left or the right."""
        areas = Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea
        return {
            name: dock.width()
            for name, dock in self.by_name.items()
            if not (dock.isHidden() or dock.isFloating() or dock.visibleRegion().isEmpty())
            and self._window.dockWidgetArea(dock) & areas
        }

    def _resize(self, widths: Mapping[str, int]) -> None:
        """Give docks their widths, in pixels."""
        docks = [self.by_name[name] for name in widths]
        self._window.resizeDocks(docks, list(widths.values()), Qt.Orientation.Horizontal)

    def reset(self) -> None:
        """Every dock where it was at the very first start."""
        self._window.restoreState(self._first, _LAYOUT_VERSION)
        self.share(self._usual_share())

    def put(self, name: str, widget: QWidget) -> None:
        """Give a dock its widget; the old one goes."""
        dock = self.by_name[name]
        old = dock.widget()
        dock.setWidget(widget)
        if old is not None:
            old.deleteLater()

    def toggle(self, name: str, shown: bool) -> None:
        """Bring a dock to the front; only one that is at the front already is closed."""
        dock = self.by_name[name]
        if not shown and dock.visibleRegion().isEmpty():
            shown = True
        dock.setVisible(shown)
        if shown:
            dock.raise_()
        self.changed.emit()

    def bring(self, *names: str) -> None:
        """Show docks, the last one on top where they share a stack."""
        for name in names:
            self.by_name[name].show()
            self.by_name[name].raise_()

    def _tidy_tabs(self) -> None:
        """Whole words on the tabs, and arrows where they do not all fit."""
        for bar in self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            bar.setElideMode(Qt.TextElideMode.ElideNone)
            bar.setUsesScrollButtons(True)

    def share(self, part: float) -> None:
        """Give the docks that part of the window's width, the columns of them alike."""
        names = list(self.columns())
        columns = len({self.by_name[name].x() for name in names})
        if not names:  # before the window is up
            names = [dock.objectName() for dock in self._stacks.values() if not dock.isHidden()]
            columns = len(names) if self._wide else 1
        width = round(self._window.width() * part / max(1, columns))
        self._resize(dict.fromkeys(names, width))

    def _usual_share(self) -> float:
        if self._wide:
            return _SHARE_WIDE
        return _SHARE_NARROW if self._window.width() < _NARROW_PX else _SHARE

    def state(self) -> QByteArray:
        """The layout, for `restore`."""
        return self._window.saveState(_LAYOUT_VERSION)

    def restore(self, state: object) -> None:
        """A layout that was kept; the first one where there is none or it does not fit. Once, at the start."""
        self._first = self.state()
        if not (isinstance(state, QByteArray) and self._window.restoreState(state, _LAYOUT_VERSION)):
            self.share(self._usual_share())

    @Slot(bool)
    def _visibility_changed(self, _: bool) -> None:
        self._tidy_tabs()
        self.changed.emit()


def placeholder(text: str) -> QWidget:
    """What a dock holds while it has nothing else."""
    label = PlainLabel(text)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    label.setWordWrap(True)
    label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
    return label
