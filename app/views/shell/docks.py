"""`Docks`: the window's docks: where they start, shown and hidden, moved, kept over restarts, and put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QByteArray, QDataStream, QEvent, QIODevice, QObject, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QDockWidget, QFrame, QMainWindow, QScrollArea, QSizePolicy, QTabBar, QWidget

from ..focus import first_to_focus, takes_focus
from ..plots.label import PlainLabel
from .panels import PanelSpec

_TALL_PX = 900  # from this height of the screen on, two panels fit above one another
_WIDE_PX = 1900  # from this width on, beside one another
_LAYOUT_VERSION = 6  # raised when docks are renamed or removed: an older saved layout is then left alone
_SHARE, _SHARE_NARROW, _SHARE_WIDE = 0.36, 0.42, 0.54  # of the window's width, for the docks
_NARROW_PX = 1500
_TRACES_SHARE, _TRACES_PX = 0.4, 640  # of the screen's width, but no more pixels: what the traces keep at least
_LEAST_DOCK = QSize(200, 120)


class Docks(QObject):
    """One dock per spec, on a screen with `room` for the window. The window has its central widget already.

    Each dock in sight keeps its part of the window's width when the window is resized. The parts are what the user (or
    `share`) chose, not what a passing size of the window left of them: so no resizing and no start shifts anything.
    `changed` follows every dock that is shown, hidden or brought to the front, by whatever means.
    """

    changed = Signal()

    def __init__(self, window: QMainWindow, specs: Sequence[PanelSpec], room: QSize) -> None:
        super().__init__(window)
        self._window = window
        self._specs = specs
        self._room = room
        self.by_name: dict[str, QDockWidget] = {}
        for spec in specs:
            dock = QDockWidget(spec.title, window)
            dock.setObjectName(spec.name)
            dock.visibilityChanged.connect(self._visibility_changed)
            dock.installEventFilter(self)
            self.by_name[spec.name] = dock
            self.put(spec.name, placeholder("Loading…"))
        centre = window.centralWidget()
        assert centre is not None
        centre.setMinimumWidth(least_traces_width(room))
        self._first = QByteArray()
        self._wide = room.width() >= _WIDE_PX
        self._stacks: dict[bool, QDockWidget] = {}  # the first dock of each, by whether it is that of the plots
        self._parts: list[float] = []  # of the window's width, of each dock in sight, from left to right
        self._given_at = 0  # the window's width when the docks were last given their parts
        self._give_soon = self._soon(self._give)
        self._note_soon = self._soon(self._note)
        self._arrange()
        window.installEventFilter(self)

    def _soon(self, what: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(what)
        return timer

    def _arrange(self) -> None:
        """All in one stack of tabs; the plots in a stack of their own below on a tall screen, beside on a wide one."""
        apart = self._wide or self._room.height() >= _TALL_PX
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
        self._give_soon.stop()
        self._note_soon.stop()
        for dock in self.by_name.values():
            dock.removeEventFilter(self)
            dock.visibilityChanged.disconnect(self._visibility_changed)

    # --- widths -------------------------------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Give the docks their parts of a window that has another size; note what the user makes of them."""
        if event.type() == QEvent.Type.Resize:
            (self._give_soon if watched is self._window else self._note_soon).start()
        return False

    def _in_sight(self) -> list[QDockWidget]:
        """At the left or the right of the traces, from left to right; of docks that share a place, the one in front."""
        areas = Qt.DockWidgetArea.LeftDockWidgetArea | Qt.DockWidgetArea.RightDockWidgetArea
        docks = [
            dock
            for dock in self.by_name.values()
            if not (dock.isHidden() or dock.isFloating() or dock.visibleRegion().isEmpty())
            and self._window.dockWidgetArea(dock) & areas
        ]
        return sorted(docks, key=lambda dock: (dock.x(), dock.y()))

    def columns(self) -> dict[str, int]:
        """Width of each dock that is in sight, in its place at the left or the right."""
        return {dock.objectName(): dock.width() for dock in self._in_sight()}

    @Slot()
    def _give(self) -> None:
        """Each dock in sight its part. What follows from that is not the user's doing, and not noted."""
        docks, width, layout = self._in_sight(), self._window.width(), self._window.layout()
        if not (docks and layout is not None and self._window.isVisible()):
            return
        if len(docks) == len(self._parts):
            widths = [round(part * width) for part in self._parts]
            self._window.resizeDocks(docks, widths, Qt.Orientation.Horizontal)
            layout.activate()  # now, and not when the next turn would note it
        self._given_at = width
        self._note_soon.stop()

    @Slot()
    def _note(self) -> None:
        """Docks were resized, and the window was not: so it is wanted."""
        docks, width = self._in_sight(), self._window.width()
        if docks and width == self._given_at:
            self._parts = [dock.width() / width for dock in docks]

    def share(self, part: float) -> None:
        """Give the docks that part of the window's width, the columns alike; more where one would be scrolled."""
        docks = self._in_sight()
        count = len(docks) or len(self._stacks)  # none before the window is up
        columns = len({dock.x() for dock in docks}) or (count if self._wide else 1)
        needed = max((self._needed_width(dock.objectName()) for dock in docks), default=0) / self._window.width()
        self._parts = [max(part / columns, needed)] * count
        self._give()

    def _needed_width(self, name: str) -> int:
        """In pixels, so that nothing in a dock is scrolled from side to side."""
        panel = self._area(name).widget()
        return max(panel.minimumSizeHint().width(), panel.minimumWidth()) if panel is not None else 0

    def _usual_share(self) -> float:
        if self._wide:
            return _SHARE_WIDE
        return _SHARE_NARROW if self._window.width() < _NARROW_PX else _SHARE

    # --- shown and hidden ---------------------------------------------------------------------------------------------

    def put(self, name: str, widget: QWidget) -> None:
        """Give a dock its widget; the old one goes. One that needs more room than its dock has is scrolled."""
        dock = self.by_name[name]
        old = dock.widget()
        area = QScrollArea()
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setWidgetResizable(True)
        area.setMinimumSize(_LEAST_DOCK)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(widget)
        dock.setWidget(area)
        if old is not None:
            old.deleteLater()

    def set_shown(self, name: str, shown: bool) -> None:
        """Open a dock in front of its stack, or close it."""
        self.by_name[name].setVisible(shown)
        if shown:
            self.by_name[name].raise_()
        self.changed.emit()  # Qt says nothing of one that is closed behind another

    def bring(self, *names: str) -> None:
        """Show docks, the last one on top where they share a stack."""
        for name in names:
            self.by_name[name].show()
            self.by_name[name].raise_()
        self.changed.emit()  # Qt says nothing of one that was in front of its stack already

    def go_to(self, name: str) -> None:
        """Show a dock and give it the focus: where that was in it, else the first widget that takes it."""
        self.bring(name)
        dock, area = self.by_name[name], self._area(name)
        dock.activateWindow()  # it may float
        last = dock.focusWidget()
        inside = last if last is not None and takes_focus(last) else first_to_focus(dock)
        (inside or area).setFocus(Qt.FocusReason.ShortcutFocusReason)
        if inside is not None:
            area.ensureWidgetVisible(inside)

    def _area(self, name: str) -> QScrollArea:
        area = self.by_name[name].widget()
        assert isinstance(area, QScrollArea)
        return area

    def _tidy_tabs(self) -> None:
        """Whole words on the tabs, and arrows where they do not all fit."""
        for bar in self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            bar.setElideMode(Qt.TextElideMode.ElideNone)
            bar.setUsesScrollButtons(True)

    @Slot(bool)
    def _visibility_changed(self, _: bool) -> None:
        self._tidy_tabs()
        self.changed.emit()

    # --- kept over restarts -------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Every dock where it was at the very first start."""
        self._window.restoreState(self._first, _LAYOUT_VERSION)
        self.share(self._usual_share())

    def state(self) -> QByteArray:
        """The layout, for `restore`."""
        written = QByteArray()
        stream = QDataStream(written, QIODevice.OpenModeFlag.WriteOnly)
        stream.writeInt32(len(self._parts))
        for part in self._parts:
            stream.writeDouble(part)
        stream << self._window.saveState(_LAYOUT_VERSION)
        return written

    def restore(self, state: QByteArray | None, room: QSize) -> None:
        """A layout that was kept; the first one where there is none or it does not fit. Once, before it is shown."""
        self._first = self._window.saveState(_LAYOUT_VERSION)
        if state is not None and self._restore(state):
            least = self._window.minimumSizeHint()
            if least.width() <= room.width() and least.height() <= room.height():
                return
        self._window.restoreState(self._first, _LAYOUT_VERSION)
        self.share(self._usual_share())

    def _restore(self, state: QByteArray) -> bool:
        """Whether it is a layout."""
        stream, kept = QDataStream(state), QByteArray()
        count = stream.readInt32()
        if not 0 <= count <= len(self._specs):
            return False
        self._parts = [stream.readDouble() for _ in range(count)]
        stream >> kept
        return all(0 < part <= 1 for part in self._parts) and self._window.restoreState(kept, _LAYOUT_VERSION)


def least_traces_width(room: QSize) -> int:
    """In pixels, on a screen with that room, wherever docks are moved."""
    return min(round(_TRACES_SHARE * room.width()), _TRACES_PX)


def placeholder(text: str) -> QWidget:
    """What a dock holds while it has nothing else."""
    label = PlainLabel(text)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    label.setWordWrap(True)
    label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
    return label
