"""`Docks`: the docks of a workspace: where they start, shown and hidden, moved, kept over restarts, and put back.

`Page`: what holds a panel, in a dock or in the centre: scrolled where it needs more room, and entered by key.

The icons of the workspaces and of the docks' buttons, drawn in the colour of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from PySide6.QtCore import (
    QByteArray,
    QDataStream,
    QEvent,
    QIODevice,
    QObject,
    QPointF,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QColor, QIcon, QPainter, QPen, QPixmap, QPolygonF, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QDockWidget,
    QFrame,
    QMainWindow,
    QScrollArea,
    QSizePolicy,
    QTabBar,
    QWidget,
)

from ..shared import theme
from ..shared.label import PlainLabel
from ..shared.widgets import first_to_focus, lies_behind, takes_focus
from .panels import PanelSpec, Place

_SIDE = 24.0  # of the square that the strokes below are in
_SCALE = 3  # pixels per unit: sharp on a screen with a scale of 2, and at 22 pixels
# Polylines; a circle is (x, y, radius).
_STROKES: dict[str, tuple[list[tuple[float, ...]], ...]] = {
    "home": (
        [(3, 12), (12, 4), (21, 12)],
        [(6, 10), (6, 20), (18, 20), (18, 10)],
        [(10, 20), (10, 14), (14, 14), (14, 20)],
    ),
    "watch": ([(2, 13), (7, 13), (10, 5), (14, 20), (17, 11), (22, 11)],),
    "tune": (
        [(4, 20), (4, 4)],
        [(4, 20), (21, 20)],
        [(8, 15, 1.4)],
        [(11, 10, 1.4)],
        [(15.5, 7.5, 1.4)],
        [(20, 6.5, 1.4)],
        [(15, 14.5, 1.4)],
    ),
    "program": (
        [(3, 5), (14, 5)],
        [(6, 10), (18, 10)],
        [(9, 15), (15, 15)],
        [(13, 20), (21, 20)],
    ),
    "understand": (
        [(3, 20), (21, 20)],
        [(6, 20), (6, 13)],
        [(11, 20), (11, 8)],
        [(16, 20), (16, 11)],
        [(20, 20), (20, 5)],
    ),
    "control": (
        [(5, 4), (5, 20)],
        [(12, 4), (12, 20)],
        [(19, 4), (19, 20)],
        [(5, 15, 2.2)],
        [(12, 8, 2.2)],
        [(19, 13, 2.2)],
    ),
    "library": (
        [(4, 5), (4, 20)],
        [(8.5, 5), (8.5, 20)],
        [(13, 5), (13, 20)],
        [(16, 6), (20.5, 20)],
        [(2, 20.5), (22, 20.5)],
    ),
    "float": ([(8, 4), (20, 4), (20, 16), (8, 16), (8, 4)], [(4, 9), (4, 20), (15, 20)]),
    "close": ([(5, 5), (19, 19)], [(19, 5), (5, 19)]),
}


def icon_of(name: str, colour: str) -> QIcon:
    """The icon of a workspace or a button."""
    pixmap = QPixmap(round(_SIDE * _SCALE), round(_SIDE * _SCALE))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.scale(_SCALE, _SCALE)
    pen = QPen(QColor(colour), 1.8)
    pen.setCapStyle(Qt.PenCapStyle.RoundCap)
    pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
    painter.setPen(pen)
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for stroke in _STROKES[name]:
        if len(stroke[0]) == 3:
            x, y, radius = stroke[0]
            painter.setBrush(QColor(colour))
            painter.drawEllipse(QRectF(x - radius, y - radius, 2 * radius, 2 * radius))
            painter.setBrush(Qt.BrushStyle.NoBrush)
        else:
            painter.drawPolyline(QPolygonF([QPointF(*point) for point in stroke]))
    painter.end()
    return QIcon(pixmap)


_LEAST = QSize(200, 120)
_LOADING = "Loading…"


class Page(QScrollArea):
    """Never wider because of what it holds, which gets the page's size, and is scrolled only below its least one.

    Qt's own `widgetResizable` scrolls a panel with wrapped labels as soon as it has less than its usual height.
    """

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMinimumSize(_LEAST)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._words = _LOADING
        self._label: PlainLabel | None = None  # that shows them

    def say(self, text: str) -> None:
        """Words in place of a panel."""
        self._words = text
        if self._label is not None:
            self._label.setText(text)
        elif self.isVisible():
            self._show_words()

    def _show_words(self) -> None:
        label = PlainLabel(self._words, wrap=True)
        label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.hold(label)
        self._label = label

    def hold(self, widget: QWidget) -> None:
        """Show this one; the one before goes."""
        self._label = None
        self.setWidget(widget)
        widget.show()
        self._fit()

    def _fit(self) -> None:
        panel = self.widget()
        if panel is None:
            return
        room = self.maximumViewportSize()
        needed = _least(panel, room.width())
        if needed.width() > room.width():
            room.setHeight(room.height() - self.horizontalScrollBar().sizeHint().height())
        if needed.height() > room.height():
            room.setWidth(room.width() - self.verticalScrollBar().sizeHint().width())
            needed = _least(panel, room.width())
        panel.resize(room.expandedTo(needed))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.widget() is None:
            self._show_words()
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """What the panel needs may have changed, and what in it takes the focus that it has."""
        if event.type() == QEvent.Type.LayoutRequest and watched is self.widget():
            self._fit()
            if self.window().focusWidget() is self:  # a panel shows what is in it once that is known
                self.focus_inside()
        return super().eventFilter(watched, event)

    @property
    def needed_width(self) -> int:
        """In pixels, so that nothing is scrolled from side to side, also once it is scrolled up and down."""
        panel = self.widget()
        return 0 if panel is None else _least(panel, 0).width() + self.verticalScrollBar().sizeHint().width()

    def focus_inside(self) -> None:
        """Give the focus to where it was in here, else to the first widget that takes it, in reading order."""
        last = self.focusWidget()
        inside = last if last is not None and takes_focus(last) else first_to_focus(self)
        (inside or self).setFocus(Qt.FocusReason.ShortcutFocusReason)
        if inside is not None:
            self.ensureWidgetVisible(inside)


def _least(panel: QWidget, width: int) -> QSize:
    """The least size of a panel that has so much width, or more where it needs more."""
    least, layout = panel.minimumSizeHint().expandedTo(panel.minimumSize()), panel.layout()
    if layout is not None and layout.hasHeightForWidth():
        high = layout.minimumHeightForWidth(max(width, least.width()))
        least.setHeight(max(high, panel.minimumHeight()))
    return least


_TALL_PX = 900  # from this height of the screen on, two stacks fit above one another
_LAYOUT_VERSION = 8  # raised when docks are renamed or removed: an older saved layout is then left alone
_SHARE, _SHARE_NARROW = 0.32, 0.34  # of the workspace's width, for the docks
_NARROW_PX = 1100
_BUTTONS = {"qt_dockwidget_floatbutton": "float", "qt_dockwidget_closebutton": "close"}  # Qt's names, and the icons
_CENTRE_SHARE, _CENTRE_PX = 0.58, 560  # of the room's width, but no more pixels: what the centre keeps at least


class Docks(QObject):
    """One dock per spec, on a screen with `room` for the workspace, which has its central widget already.

    Each dock in sight keeps its part of the workspace's width when that is resized. The parts are what the user (or
    `share`) chose, not what a passing size left of them: so no resizing and no start shifts anything. `changed` follows
    every dock that is shown, hidden or brought to the front, by whatever means.
    """

    changed = Signal()

    def __init__(self, workspace: QMainWindow, specs: Sequence[PanelSpec], room: QSize) -> None:
        super().__init__(workspace)
        self._window = workspace
        self._specs = specs
        self._room = room
        self.by_name: dict[str, QDockWidget] = {}
        self.pages: dict[str, Page] = {}
        self._dress_soon = self._soon(self._dress_buttons)
        self._icons: dict[str, QIcon] = {}  # of the buttons, drawn in `_ink`
        self._ink = ""
        for spec in specs:
            dock = QDockWidget(spec.title, workspace)
            dock.setObjectName(spec.name)
            dock.visibilityChanged.connect(self._visibility_changed)
            dock.installEventFilter(self)
            self.by_name[spec.name], self.pages[spec.name] = dock, Page()
            dock.setWidget(self.pages[spec.name])
            dock.topLevelChanged.connect(self._floats)
        theme.notifier().changed.connect(self._dress_soon.start)
        centre = workspace.centralWidget()
        assert centre is not None
        centre.setMinimumWidth(least_centre_width(room))
        self._first = QByteArray()
        # of each dock in sight, from left to right: its part of the workspace's width, and of its column's height
        self._parts: list[tuple[float, float]] = []
        self._usual = False  # nobody has chosen other parts
        self._given_at = 0  # the workspace's width when the docks were last given their parts
        self._give_soon = self._soon(self._give)
        self._note_soon = self._soon(self._note)
        self._stacks = self._arrange()
        workspace.installEventFilter(self)

    def _soon(self, what: Callable[[], None]) -> QTimer:
        timer = QTimer(self)
        timer.setSingleShot(True)
        timer.timeout.connect(what)
        return timer

    def _arrange(self) -> int:
        """Each side one stack of tabs; on a tall screen those that go below have a stack of their own. How many."""
        stacks: dict[tuple[Place, bool], QDockWidget] = {}
        for spec in self._specs:  # the stacks first: a dock cannot be put beside one that has tabs already
            if self._stack_of(spec) not in stacks:
                area = Qt.DockWidgetArea.LeftDockWidgetArea
                if spec.place is Place.RIGHT:
                    area = Qt.DockWidgetArea.RightDockWidgetArea
                stacks[self._stack_of(spec)] = self.by_name[spec.name]
                self._window.addDockWidget(area, self.by_name[spec.name], Qt.Orientation.Vertical)
        for spec in self._specs:
            stack, dock = stacks[self._stack_of(spec)], self.by_name[spec.name]
            if dock is not stack:
                self._window.tabifyDockWidget(stack, dock)
        for first in stacks.values():
            first.raise_()
        return len(stacks)

    def _stack_of(self, spec: PanelSpec) -> tuple[Place, bool]:
        return spec.place, spec.below and self._room.height() >= _TALL_PX

    def stop_watching(self) -> None:
        """Before the window is deleted: docks that go with it are no change."""
        self._window.removeEventFilter(self)
        self._give_soon.stop()
        self._note_soon.stop()
        self._dress_soon.stop()
        for dock in self.by_name.values():
            dock.removeEventFilter(self)
            dock.visibilityChanged.disconnect(self._visibility_changed)

    # --- widths -------------------------------------------------------------------------------------------------------

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Give the docks their parts of a workspace that has another size; note what the user makes of them."""
        if event.type() == QEvent.Type.Resize:
            (self._give_soon if watched is self._window else self._note_soon).start()
        return False

    def _in_sight(self) -> list[QDockWidget]:
        """At the left or the right of the centre, from left to right; of docks that share a place, the one in front."""
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
            widths = [round(part * width) for part, _ in self._parts]
            heights = [
                round(part * _column_height(dock, docks)) for dock, (_, part) in zip(docks, self._parts, strict=True)
            ]
            self._window.resizeDocks(docks, widths, Qt.Orientation.Horizontal)
            self._window.resizeDocks(docks, heights, Qt.Orientation.Vertical)
            layout.activate()  # now, and not when the next turn would note it
        elif self._parts:  # drawers that were opened or closed
            self._window.resizeDocks(docks, [round(self._parts[0][0] * width)] * len(docks), Qt.Orientation.Horizontal)
            layout.activate()
        self._given_at = width
        self._note_soon.stop()

    @Slot()
    def _note(self) -> None:
        """Docks were resized, and the workspace was not: so it is wanted."""
        docks, width = self._in_sight(), self._window.width()
        if docks and width == self._given_at:
            parts = [(dock.width() / width, dock.height() / _column_height(dock, docks)) for dock in docks]
            same = len(parts) == len(self._parts)
            pairs = zip(parts, self._parts, strict=True) if same else ()
            self._usual &= same and all(abs(now - before) * width < 2 for (now, _), (before, _) in pairs)
            self._parts = parts

    def share(self, part: float) -> None:
        """Give the docks that part of the workspace's width, the columns alike; more where one would be scrolled."""
        docks = self._in_sight()
        count = len(docks) or self._stacks  # none before the workspace is in sight
        columns = len({dock.x() for dock in docks}) or 1
        needed = max((self.pages[dock.objectName()].needed_width for dock in docks), default=0) / self._window.width()
        rows = max(
            1, count // columns
        )  # of the height, alike: Qt would give what panels ask for that are there already
        heights = [height for _, height in self._parts] if len(self._parts) == count else [1 / rows] * count
        self._parts = [(max(part / columns, needed), height) for height in heights]
        self._usual = False
        self._give()

    def make_room(self) -> None:
        """A panel was put into a dock: give it the width that it needs, unless the user chose another."""
        if self._usual:
            self._share_as_usual()

    def _share_as_usual(self) -> None:
        self.share(_SHARE_NARROW if self._room.width() < _NARROW_PX else _SHARE)
        self._usual = True

    # --- shown and hidden ---------------------------------------------------------------------------------------------

    def in_front(self, name: str) -> bool:
        """Whether a dock is in sight, and not behind another one."""
        return not self.by_name[name].visibleRegion().isEmpty()

    def set_shown(self, name: str, shown: bool) -> None:
        """Open a dock in front of its stack, or close it."""
        self.by_name[name].setVisible(shown)
        if shown:
            self.by_name[name].raise_()
            self._give_soon.start()
        self.changed.emit()  # Qt says nothing of one that is closed behind another

    def show_only(self, names: Collection[str]) -> None:
        """Open these docks, and close the others."""
        for name, dock in self.by_name.items():
            if (name in names) == dock.isHidden():
                dock.setVisible(name in names)
        self._give_soon.start()

    def lies_behind(self, name: str) -> bool:
        """Whether a dock is open behind another one."""
        return not (self.by_name[name].isHidden() or self.in_front(name))

    def bring(self, *names: str) -> None:
        """Show docks, the last one on top where they share a stack."""
        for name in names:
            self.by_name[name].show()
            self.by_name[name].raise_()
        self.changed.emit()  # Qt says nothing of one that was in front of its stack already

    def _tidy_tabs(self) -> None:
        """Whole words on the tabs, and arrows where they do not all fit."""
        for bar in self._window.findChildren(QTabBar, options=Qt.FindChildOption.FindDirectChildrenOnly):
            bar.setElideMode(Qt.TextElideMode.ElideNone)
            bar.setUsesScrollButtons(True)
            used = bar.count() > 1  # Qt keeps the others beyond the window's edge, where the focus would be lost
            bar.setFocusPolicy(Qt.FocusPolicy.TabFocus if used else Qt.FocusPolicy.NoFocus)

    @Slot(bool)
    def _visibility_changed(self, _: bool) -> None:
        self._tidy_tabs()
        self._dress_soon.start()
        self._pass_focus()
        self.changed.emit()

    def _pass_focus(self) -> None:
        """Move the focus from a hidden dock to the one that covers it: keys would act on invisible widgets."""
        focused = self._window.window().focusWidget()
        if focused is None or not lies_behind(focused):
            return
        for dock in self.by_name.values():
            above = self._window.tabifiedDockWidgets(dock) if dock.isAncestorOf(focused) else []
            for item in above:
                if self.in_front(item.objectName()):
                    self.pages[item.objectName()].focus_inside()

    @Slot(bool)
    def _floats(self, _: bool) -> None:
        self._dress_soon.start()

    @Slot()
    def _dress_buttons(self) -> None:
        """The style's own icons are grey on any ground, and come back when a dock is shown or floats."""
        ink = theme.colours().text
        if ink != self._ink and self.by_name:
            self._ink = ink
            self._icons = {name: icon_of(icon, ink) for name, icon in _BUTTONS.items()}
        for dock in self.by_name.values():
            for name, icon in self._icons.items():
                for button in dock.findChildren(QAbstractButton, name):
                    button.setIcon(icon)

    # --- kept over restarts -------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Every dock where it was at the very first start."""
        self._window.restoreState(self._first, _LAYOUT_VERSION)
        self._parts = []
        self._share_as_usual()

    def state(self) -> QByteArray:
        """The layout, for `restore`."""
        written = QByteArray()
        stream = QDataStream(written, QIODevice.OpenModeFlag.WriteOnly)
        stream.writeInt32(len(self._parts))
        for parts in self._parts:
            for part in parts:
                stream.writeDouble(part)
        stream << self._window.saveState(_LAYOUT_VERSION)
        return written

    def restore(self, state: QByteArray | None, room: QSize) -> None:
        """A layout that was kept; the first one if there is none or it does not fit. Once, before it is shown."""
        if not self._specs:
            return  # five of the seven workspaces
        self._first = self._window.saveState(_LAYOUT_VERSION)
        if state is not None and self._restore(state):
            least = self._window.minimumSizeHint()
            if least.width() <= room.width() and least.height() <= room.height():
                return
        self._window.restoreState(self._first, _LAYOUT_VERSION)
        self._share_as_usual()

    def _restore(self, state: QByteArray) -> bool:
        """Whether it is a layout."""
        stream, kept = QDataStream(state), QByteArray()
        count = stream.readInt32()
        if not 0 <= count <= len(self._specs):
            return False
        self._parts = [(stream.readDouble(), stream.readDouble()) for _ in range(count)]
        stream >> kept
        return all(0 < part <= 1 for parts in self._parts for part in parts) and self._window.restoreState(
            kept, _LAYOUT_VERSION
        )


def _column_height(dock: QDockWidget, docks: Sequence[QDockWidget]) -> int:
    """Of the docks above and below one another, without the handles between them."""
    return sum(item.height() for item in docks if item.x() == dock.x())


def least_centre_width(room: QSize) -> int:
    """In pixels, on a screen with that room, wherever docks are moved."""
    return min(round(_CENTRE_SHARE * room.width()), _CENTRE_PX)
