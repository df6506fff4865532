"""`Docks`: the window's docks: where they start, shown and hidden, moved, kept over restarts, and put back."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QByteArray, QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QDockWidget, QLabel, QMainWindow, QSizePolicy, QTabBar, QWidget

from app.views.panels import PanelSpec

_TALL_PX = 900  # from this height of the screen on, two panels fit above one another
_LAYOUT_VERSION = 5  # raised when docks are renamed or taken away: an older saved layout is then left alone
_SHARE, _SHARE_NARROW = 0.36, 0.42  # of the window's width, for the docks; where it is narrow
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
        self._arrange()

    def _arrange(self) -> None:
        """All in one stack of tabs; on a tall screen the plots in a stack of their own below."""
        tall = self._window.screen().availableGeometry().height() >= _TALL_PX
        stacks: dict[bool, QDockWidget] = {}
        for spec in self._specs:
            dock, below = self.by_name[spec.name], tall and spec.below
            self._window.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
            if below in stacks:
                self._window.tabifyDockWidget(stacks[below], dock)
            stacks.setdefault(below, dock)
        for first in stacks.values():
            first.raise_()

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
        """Give the docks that part of the window's width."""
        dock = next((d for d in self.by_name.values() if not d.isHidden() and not d.isFloating()), None)
        if dock is not None:
            self._window.resizeDocks([dock], [int(self._window.width() * part)], Qt.Orientation.Horizontal)

    def _usual_share(self) -> float:
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
    label = QLabel(text)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    label.setWordWrap(True)
    label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
    return label
