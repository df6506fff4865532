"""`Workspaces`: the rail, the workspace in sight, the live traces below it and the Inspector beside it.

`Workspace`: one of the window's views of the work: panels in the middle, docks around them.

`Rail`: the workspaces at the left edge of the window; the one in sight is marked by weight and a bar too.

`Beside`: the work and, at its right or below it, something that keeps its size in pixels and can be hidden.

`Placement`: where the window lies and what is in it, kept over restarts, for each set of screens its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PySide6.QtCore import QByteArray, QEvent, QMargins, QObject, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QDockWidget,
    QFrame,
    QMainWindow,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QToolButton,
    QWidget,
)

from ..shared import theme
from ..shared.settings import Settings
from ..shared.turns import OwnTurn
from ..shared.widgets import hbox, vbox
from .docks import Docks, Page, icon_of
from .loading import Panels
from .panels import INSPECTOR, PANELS, STRIP, WORKSPACES, PanelSpec, Place, WorkspaceSpec

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
            if workspace.state:
                self._workspaces.set_state(name, workspace.state)
        sides = _two_numbers(self._settings.kept(f"sides_{self._screens}"))
        if sides is not None and sides[0] < room.width() // 2 and sides[1] < room.height() // 2:
            self._workspaces.set_sides_px(*sides)

    def keep(self) -> None:
        """For the next start, unless a screen came or went: the layout would be that of other screens."""
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


class Workspace(QMainWindow):
    """A window within the window, so that docks can be moved in it. `room` is what the screen has for it."""

    changed = Signal()  # a dock or a tab came to sight or went

    def __init__(self, spec: WorkspaceSpec, panels: Sequence[PanelSpec], room: QSize) -> None:
        super().__init__()
        self.setWindowFlags(Qt.WindowType.Widget)
        self.setObjectName(spec.name)
        self.setDockOptions(
            QMainWindow.DockOption.AllowTabbedDocks
            | QMainWindow.DockOption.AllowNestedDocks
            | QMainWindow.DockOption.AnimatedDocks
        )
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.spec, self.panels = spec, tuple(panels)
        self.was_shown = False
        self.state = next(iter(spec.states), "")  # empty of one that has none
        centre = [panel for panel in panels if panel.place is Place.CENTRE]
        self._in_centre = {item.name: Page() for item in centre}
        self.tabs = QTabWidget() if len(centre) > 1 else None
        if self.tabs is not None:
            self.tabs.setDocumentMode(True)
            for item in centre:
                self.tabs.addTab(self._in_centre[item.name], item.text)
            self.tabs.currentChanged.connect(self._tab_changed)
        self.setCentralWidget(self.tabs or self._in_centre[centre[0].name])
        self.docks = Docks(self, [panel for panel in panels if panel.is_dock], room)
        self.docks.changed.connect(self.changed)
        self.pages = {**self._in_centre, **self.docks.pages}

    @property
    def usual(self) -> frozenset[str]:
        """What is in sight in its state beside the centre, until the user chooses otherwise."""
        if self.state:
            return self.spec.states[self.state]
        return frozenset(word for word, shown in ((STRIP, self.spec.strip), (INSPECTOR, self.spec.inspector)) if shown)

    def bring(self, name: str) -> None:
        """Show a panel in front of those with which it shares its place."""
        if name in self.docks.by_name:
            self.docks.bring(name)
        elif self.tabs is not None:
            self.tabs.setCurrentWidget(self._in_centre[name])

    def in_front(self) -> list[str]:
        """The panels in the order in which they are wanted: those in sight first."""

        def behind(name: str) -> bool:
            docked = name in self.docks.by_name
            return not (self.docks.in_front(name) if docked else self._in_centre[name].isVisible())

        return sorted((spec.name for spec in self.panels), key=behind)

    @Slot(int)
    def _tab_changed(self, _: int) -> None:
        self.changed.emit()


_ICON = QSize(22, 22)


class Rail(QFrame):
    """Tab reaches the marked one, the arrows move among them."""

    chosen = Signal(str)
    entered = Signal()  # the one that is in sight: by Space, Return or the mouse, not by an arrow

    def __init__(self, specs: Sequence[WorkspaceSpec], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("rail")
        self.setAccessibleName("Workspaces")
        self.buttons: dict[str, QToolButton] = {}
        self._group = QButtonGroup(self)
        for spec in specs:
            button = self.buttons[spec.name] = QToolButton()
            button.setText(spec.title)
            button.setAccessibleName(f"{spec.title} workspace")
            button.setToolTip(f"{spec.tip} ({spec.shortcut})")
            button.setCheckable(True)
            button.setAutoRaise(True)
            button.setIconSize(_ICON)
            small = button.font()
            small.setPointSizeF(small.pointSizeF() - 0.5)
            button.setFont(small)
            button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.installEventFilter(self)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
            self._group.addButton(button)
        self._group.buttonClicked.connect(self._clicked)
        vbox(*self.buttons.values(), 1, of=self, margins=0, spacing=0)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Expanding)
        theme.style(
            self,
            "#rail {{ background: {c.raised}; border-right: 1px solid {c.border}; }}",
            "#rail QToolButton {{ color: {c.text}; border: none; border-left: 3px solid transparent;",
            " padding: 7px 3px; }}",
            "#rail QToolButton:hover {{ background: {c.window}; }}",
            "#rail QToolButton:checked {{ background: {c.window}; border-left: 3px solid {c.accent};",
            " font-weight: 600; }}",
            "#rail QToolButton:focus {{ border-right: 2px solid {c.accent}; }}",
        )
        theme.follow(self._recolour)

    def mark(self, name: str) -> None:
        """That workspace is in sight."""
        self.buttons[name].setChecked(True)

    @Slot(QToolButton)
    def _clicked(self, button: QToolButton) -> None:
        self.chosen.emit(next(name for name, value in self.buttons.items() if value is button))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """After a button has acted on its key or its click."""
        key = event.key() if isinstance(event, QKeyEvent) else Qt.Key.Key_unknown
        if event.type() == QEvent.Type.KeyPress and key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.entered.emit()
        elif event.type() == QEvent.Type.MouseButtonRelease or (
            event.type() == QEvent.Type.KeyRelease and key == Qt.Key.Key_Space
        ):
            QTimer.singleShot(0, self, self.entered.emit)
        return False

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange and self.buttons:
            QTimer.singleShot(0, self, self._recolour)

    @Slot()
    def _recolour(self) -> None:
        for name, button in self.buttons.items():
            button.setIcon(icon_of(name, theme.colours().text))
        width = max(button.fontMetrics().horizontalAdvance(button.text()) for button in self.buttons.values())
        self.setFixedWidth(round(1.12 * width) + 11)  # of the bold one too: nothing moves with the mark


class Beside(QSplitter):
    """The size that the user chose comes back after a passing size of the window that had no room for it."""

    def __init__(self, orientation: Qt.Orientation, work: QWidget, side: QWidget, usual_px: int) -> None:
        super().__init__(orientation)
        self._side = side
        self._usual_px = self.side_px = usual_px
        self.addWidget(work)
        self.addWidget(side)
        self.setChildrenCollapsible(False)
        self.setStretchFactor(0, 1)
        self.setStretchFactor(1, 0)
        self.splitterMoved.connect(self._moved)

    def set_side_px(self, pixels: int) -> None:
        """Give the side that many pixels, within its bounds."""
        self.side_px = pixels
        self._give()

    def reset(self) -> None:
        """The size of the first start."""
        self.set_side_px(self._usual_px)

    def set_shown(self, shown: bool) -> None:
        """Show the side, or hide it."""
        self._side.setVisible(shown)
        self.refresh()  # else the handle between them would get its place later, when all was painted once
        self._give()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._give()

    def _give(self) -> None:
        along = self.width() if self.orientation() is Qt.Orientation.Horizontal else self.height()
        self.setSizes([max(0, along - self.side_px - self.handleWidth()), self.side_px])

    @Slot()
    def _moved(self, *_: object) -> None:
        self.side_px = self.sizes()[1]


_INSPECTOR_SHARE, _INSPECTOR_PX = 0.21, (300, 440)  # of the screen's width
_STRIP_SHARE, _STRIP_PX = 0.15, (110, 170)  # of its height


class Workspaces(QWidget):
    """The panels are made when their workspace comes to sight, one part per turn of the event loop.

    `bring` and `go_to` find a panel wherever it is. Whether strip and Inspector are in sight is kept per workspace.
    """

    changed = Signal()  # what is in sight
    settled = Signal()  # every panel that is wanted is there

    def __init__(self, panels: Panels, strip: QWidget, room: QSize, settings: Settings) -> None:
        super().__init__()
        self._panels, self._settings = panels, settings
        self.rail = Rail(WORKSPACES)
        self.inspector = Page()
        self._pages = {INSPECTOR: self.inspector}
        self._stack = QStackedWidget()
        self.by_name: dict[str, Workspace] = {}
        self._of_panel: dict[str, Workspace] = {}
        inspector_px = _within(_INSPECTOR_SHARE * room.width(), *_INSPECTOR_PX)
        inside = QSize(room.width() - inspector_px - self.rail.width(), room.height())
        for spec in WORKSPACES:
            made = Workspace(spec, [panel for panel in PANELS if panel.workspace == spec.name], inside)
            made.changed.connect(self.changed)
            self.by_name[spec.name] = made
            self._stack.addWidget(made)
            self._pages |= made.pages
            self._of_panel |= dict.fromkeys(made.pages, made)
        self._over_strip = Beside(
            Qt.Orientation.Vertical, self._stack, strip, _within(_STRIP_SHARE * room.height(), *_STRIP_PX)
        )
        self._with_inspector = Beside(Qt.Orientation.Horizontal, self._over_strip, self.inspector, inspector_px)
        hbox(self.rail, (self._with_inspector, 1), of=self, margins=0, spacing=0)
        self._strip = strip
        self.rail.chosen.connect(self._show)
        self.rail.entered.connect(self._focus_page)
        panels.made.connect(self._put)
        self._next = OwnTurn(self, self._make_next)
        self._enter(WORKSPACES[0].name)

    @property
    def current(self) -> Workspace:
        """The workspace in sight."""
        shown = self._stack.currentWidget()
        assert isinstance(shown, Workspace)
        return shown

    @property
    def splitters(self) -> tuple[Beside, Beside]:
        """What holds the Inspector, and what holds the strip."""
        return self._with_inspector, self._over_strip

    @property
    def docks(self) -> dict[str, QDockWidget]:
        """The docks of every workspace, by name."""
        return {name: dock for item in self.by_name.values() for name, dock in item.docks.by_name.items()}

    # --- what is in sight ---------------------------------------------------------------------------------------------

    @Slot(str)
    def show_workspace(self, name: str) -> None:
        """Change to a workspace, and move the focus into it; of a name that there is none of, nothing happens."""
        self._show(name)
        if self.isVisible():
            self._focus_page()

    @Slot()
    def _focus_page(self) -> None:
        self._pages[self.current.in_front()[0]].focus_inside()

    @Slot(str)
    def _show(self, name: str) -> None:
        if name in self.by_name and self.by_name[name] is not self.current:
            self._enter(name)
            self.changed.emit()

    def _enter(self, name: str) -> None:
        beside = self._shown_in(self.by_name[name])
        self._stack.setCurrentWidget(self.by_name[name])
        self._over_strip.set_shown(STRIP in beside)
        self._with_inspector.set_shown(INSPECTOR in beside)
        self.by_name[name].was_shown = True
        self.rail.mark(name)
        self.make_waiting()

    def _shown_in(self, item: Workspace) -> frozenset[str]:
        return self._settings.shown(_kept_as(item.spec.name, item.state), item.usual)

    def set_state(self, workspace: str, state: str) -> None:
        """Open and close the drawers of a workspace as they were last in that state."""
        item = self.by_name[workspace]
        item.state = state
        item.docks.show_only(self._shown_in(item))
        if item is self.current:
            self._enter(workspace)
        self.changed.emit()

    def _note(self, item: Workspace, name: str, shown: bool) -> None:
        """The user opened or closed something: it is so whenever the workspace is in this state."""
        kept = self._shown_in(item)
        self._settings.note_shown(_kept_as(item.spec.name, item.state), kept | {name} if shown else kept - {name})

    def bring(self, *names: str) -> None:
        """Show panels, the last one on top where they share a place, and the workspace of the last one."""
        for name in names:
            if name == INSPECTOR:
                self.set_inspector(True)
            else:
                self._enter(self._of_panel[name].spec.name)
                self._of_panel[name].bring(name)
        self.make_waiting()
        self.changed.emit()

    def go_to(self, name: str) -> None:
        """Show a panel and give it the focus: where that was in it, else the first widget that takes it."""
        self.bring(name)
        if name in self._panels:
            self._panels[name]
        self._pages[name].activateWindow()  # it may float
        self._pages[name].focus_inside()

    @property
    def shows_inspector(self) -> bool:
        """Whether the Inspector is in sight."""
        return not self.inspector.isHidden()

    @property
    def shows_strip(self) -> bool:
        """Whether the live traces are in sight below the workspace."""
        return not self._strip.isHidden()

    def set_inspector(self, shown: bool) -> None:
        """Show the Inspector beside this workspace, or hide it."""
        self._with_inspector.set_shown(shown)
        self._side_changed(INSPECTOR, shown)

    def set_strip(self, shown: bool) -> None:
        """Show the live traces below this workspace, or hide them."""
        self._over_strip.set_shown(shown)
        self._side_changed(STRIP, shown)

    def _side_changed(self, name: str, shown: bool) -> None:
        self._note(self.current, name, shown)
        self.make_waiting()
        self.changed.emit()

    def set_dock(self, name: str, shown: bool) -> None:
        """Open a dock in its workspace, or close it; one that lies behind another comes to the front instead."""
        item = self._of_panel[name]
        shown = shown or (item is self.current and item.docks.lies_behind(name))
        if shown:
            self._enter(item.spec.name)
        item.docks.set_shown(name, shown)
        if item.state:
            self._note(item, name, shown)

    def share(self, part: float) -> None:
        """Give the docks of this workspace that part of its width."""
        self.current.docks.share(part)

    # --- the panels ---------------------------------------------------------------------------------------------------

    @Slot()
    def make_waiting(self) -> None:
        """Make what is in sight and not there yet."""
        self._next.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Nothing is made before, nor in the turn in which the window appears."""
        super().showEvent(event)
        QTimer.singleShot(0, self.make_waiting)

    @Slot()
    def _make_next(self) -> None:
        if not self.isVisible():
            return
        early = [spec.name for spec in PANELS if spec.early]
        beside = [INSPECTOR] if self.shows_inspector else []
        wanted = (*self.current.in_front(), *beside, *early)
        waiting = next((name for name in wanted if name in self._panels and not self._panels.has(name)), None)
        if waiting is not None:
            self._panels.make_part(waiting)
            self._next.start()
        elif all(self._panels.has(name) for name in wanted):
            self.settled.emit()

    @Slot(str)
    def _put(self, name: str) -> None:
        self._pages[name].hold(self._panels[name])
        if name in self._of_panel:
            self._of_panel[name].docks.make_room()
        else:
            self._fit_inspector()

    def _fit_inspector(self) -> None:
        """Nothing in it is scrolled from side to side, with large text too."""
        self._with_inspector.set_side_px(max(self._with_inspector.side_px, self.inspector.needed_width))

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            QTimer.singleShot(0, self, self._fit_inspector)

    def say(self, text: str) -> None:
        """Words in place of every panel that is not there."""
        for name, page in self._pages.items():
            if not self._panels.has(name):
                page.say(text)

    # --- kept over restarts -------------------------------------------------------------------------------------------

    @property
    def sides_px(self) -> tuple[int, int]:
        """Width of the Inspector and height of the strip."""
        return self._with_inspector.side_px, self._over_strip.side_px

    def set_sides_px(self, inspector: int, strip: int) -> None:
        """Give Inspector and strip a size, within their bounds."""
        self._with_inspector.set_side_px(inspector)
        self._over_strip.set_side_px(strip)

    def reset(self) -> None:
        """Every workspace as at the very first start."""
        for name, item in self.by_name.items():
            item.docks.reset()
            for state in item.spec.states or ("",):
                self._settings.forget_shown(_kept_as(name, state))
            if item.state:
                item.docks.show_only(item.usual)
        self._with_inspector.reset()
        self._over_strip.reset()
        self._enter(self.current.spec.name)
        self.changed.emit()

    def stop_watching(self) -> None:
        """Before the window is deleted: what goes with it is no change."""
        self._next.stop()
        for item in self.by_name.values():
            item.docks.stop_watching()


def _kept_as(workspace: str, state: str) -> str:
    """In the settings."""
    return f"beside_{workspace}" + (f"_{state}" if state else "")


def _within(pixels: float, least: int, most: int) -> int:
    return min(max(round(pixels), least), most)
