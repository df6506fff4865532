"""Random but valid use of the window. By hand: python tests/benchmarks/monkey.py [SECONDS] [SEED]

Rounds of random steps (actions, buttons, fields, keys, mouse, docks, workspaces, boards, files, the editor's text);
after each round only the home board is watched again and everything is counted. Choices are made and exported, and
each receipt is compared with the chip at the time. Looked for: no exception, no 2 s without a turn
of Qt's event loop, no thread, timer or widget too many, memory in use flat within 5 % from the second quarter's
median to the last one's. Exit status 1 and the last steps where something is amiss. The same seed draws the same
numbers; what they meet depends on the machine's pace too.

Counting begins when everything that is made when it is first asked for, and then kept, was asked for once: every
page, every window beside the main one, as many sessions as Home has cards for, and SciPy's modules that come late
(150,000 of Python's blocks). A run of minutes took the first use of any of them for a leak. Not the threads of task
queues are counted, but the queues: each begins its thread with its first job, whenever that comes, and ends it with
its panel.

Memory is what malloc and Python have handed out, not what the process holds of the machine (told as MB): of freed
memory malloc keeps between 30 and 200 MB in pieces, more or less by chance, while what is in use stays the same. It
is compared where there are 20 rounds or more: one round's result in sight makes more of a difference than a leak.
"""

from __future__ import annotations

import ctypes
import faulthandler
import importlib
import json
import linecache
import os
import random
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path[:0] = [str(ROOT)]

import pyqtgraph as pg  # noqa: E402
import shiboken6  # noqa: E402
from PySide6.QtCore import (  # noqa: E402
    QCoreApplication,
    QEvent,
    QMimeData,
    QModelIndex,
    QPoint,
    QPointF,
    Qt,
    QTimer,
    QtMsgType,
    QUrl,
    qInstallMessageHandler,
)
from PySide6.QtGui import QAction, QDesktopServices, QDropEvent, QKeySequence, QWheelEvent  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import (  # noqa: E402
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QDialog,
    QDoubleSpinBox,
    QLineEdit,
    QPlainTextEdit,
    QSpinBox,
    QTabWidget,
    QWidget,
)

from app.base.paths import resources  # noqa: E402
from app.views.front.front_plot import FrontPlot  # noqa: E402
from app.views.front.table_panel import ResultsView  # noqa: E402
from app.views.inspector.answer_bar import ExportButton  # noqa: E402
from app.views.inspector.chooser_bar import ChooserBar  # noqa: E402
from app.views.library.home_panel import SESSIONS_SHOWN  # noqa: E402
from app.views.shared.tasks import TaskQueue  # noqa: E402
from app.views.shared.watched_boards import watched_gpu  # noqa: E402
from app.views.shell.app import Program, application  # noqa: E402
from app.views.shell.choice_chip import ChoiceChip  # noqa: E402
from app.views.shell.window_actions import every_action  # noqa: E402
from app.views.watch.lane_view import LaneView  # noqa: E402

HOME = "simulated:a100"
STEPS = 120  # in a round
BOARDS = 4  # at once
LOADED_LATE = ("scipy.signal", "scipy.stats")  # with a convolution that checks a kernel, and some strategies
ROUNDS_COMPARED = 20  # at least, for memory
STILL_S, STALLED_S = 60.0, 2.0
NOT_PRESSED = {"quit", "log_folder"}
WORDS = ("gemm", "a100 fast", "best, of may", "", "0", "-1", "1e9", "x" * 200, "émoji ✓", "%s {0} <b>")
LINES = ("[kernel]", "name = 1", "flops = ", "[device", "budget = 3", '"""', "")
SHORTCUTS = (*(f"Ctrl+{n}" for n in range(1, 7)), "Ctrl+K", "Ctrl+Z", "Ctrl+Shift+Z", "F2", "F3", "F4", "F6", "Space")
QUIET = ("propagateSizeHints", "does not support raise", "does not support")


class Watch(threading.Thread):
    """Tells where Qt's thread was when its event loop had not turned for STALLED_S.

    Not counted is the time in which that thread could have run and the machine had no core for it.
    """

    def __init__(self) -> None:
        super().__init__(name="watch", daemon=True)
        self.stalls: list[str] = []
        self._waits = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat")
        self._turned, self._waited_s, self._ended = time.monotonic(), self._waited(), threading.Event()
        self._beat = QTimer(interval=50)
        self._beat.timeout.connect(self._turn)
        self._beat.start()
        self._qt = threading.get_ident()

    def _turn(self) -> None:
        self._turned, self._waited_s = time.monotonic(), self._waited()

    def _waited(self) -> float:
        """Seconds for which Qt's thread has waited for a core so far; where the system does not tell, none."""
        return int(self._waits.read_text().split()[1]) / 1e9 if self._waits.exists() else 0.0

    def run(self) -> None:
        told = None
        while not self._ended.wait(0.1):
            turned, waited_s = self._turned, self._waited() - self._waited_s
            if time.monotonic() - turned - waited_s > STALLED_S and told != turned:
                told = turned
                where = traceback.format_stack(sys._current_frames()[self._qt])[-8:]
                linecache.clearcache()  # of every line that was shown it keeps the whole file
                self.stalls.append(f"no turn of the event loop for {STALLED_S:.0f} s:\n{''.join(where)}")

    def end(self) -> None:
        self._beat.stop()
        self._ended.set()
        self.join()


class Monkey:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.done: deque[str] = deque(maxlen=40)
        self.faults: list[str] = []
        self.kinds: Counter[str] = Counter()
        self.receipts = 0  # that were compared with the chip
        self.popups = QTimer(interval=700)  # a tool button's menu has a loop of its own, that waits for somebody
        self.popups.timeout.connect(self._close_popup)
        self.popups.start()
        self.program = Program(watched_gpu(HOME))
        self._ready()

    @property
    def window(self) -> Any:
        return self.program.window

    def _close_popup(self) -> None:
        popup = QApplication.activePopupWidget()
        if popup is not None:
            popup.close()

    # --- one step -----------------------------------------------------------------------------------------------------

    def step(self) -> None:
        faulthandler.dump_traceback_later(STILL_S, exit=True)  # a step that stands still tells where
        kinds: tuple[tuple[Callable[[], str], int], ...] = (
            (self.press_action, 30),
            (self.press_button, 25),
            (self.change_field, 15),
            (self.choose_board, 2),
            (self.edit_text, 3),
            (self.use_mouse, 12),
            (self.type_keys, 6),
            (self.move_dock, 5),
            (self.change_workspace, 6),
            (self.choose_row, 8),
            (self.choose, 6),
            (self.export, 3),
            (self.open_something, 4),
            (self.drop_file, 1),
            (self.resize, 2),
            (self.close_dialog, 10),
        )
        kind = self.random.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        self.done.append(kind.__name__)
        what = kind()
        self.kinds[kind.__name__] += 1
        self.done[-1] = f"{kind.__name__}: {what}"
        self.turn(self.random.choice((0.0, 0.0, 0.01, 0.05)))

    def press_action(self) -> str:
        found = [
            a for _, a in every_action(self.window.menuBar()) if a.isEnabled() and a.objectName() not in NOT_PRESSED
        ]
        gpus = [a for a in found if a.data() is not None]
        if self.random.random() > 0.05:
            found = [a for a in found if a not in gpus]
        action: QAction = self.random.choice(found)
        action.trigger()
        return action.objectName() or action.text()

    def choose_board(self) -> str:
        """Another board is opened, or one that is watched is shown, or simulated ones run faster or slower."""
        found = [a for _, a in every_action(self.window.menuBar()) if a.isEnabled() and a.data() is not None]
        if len(self.window.boards.all) >= BOARDS:
            found = [a for a in found if not isinstance(a.data(), str)]  # what names no board is a speed
        if not found or self.random.random() < 0.3:
            board = self.random.choice(self.window.boards.all)
            self.window.boards.show(board.uuid)
            return str(board.gpu.info.label)
        action: QAction = self.random.choice(found)
        action.trigger()
        return action.text()

    def edit_text(self) -> str:
        """The TOML of the editor, where it is in sight."""
        found = [w for w in self._shown(QPlainTextEdit) if w.isEnabled() and not w.isReadOnly()]
        if not found:
            return "-"
        text = self.random.choice(found)
        cursor = text.textCursor()
        cursor.setPosition(self.random.randrange(max(1, text.document().characterCount())))
        if self.random.random() < 0.3:
            cursor.select(cursor.SelectionType.LineUnderCursor)
        cursor.insertText(self.random.choice(LINES))
        return type(text).__name__

    def press_button(self) -> str:
        found = [w for w in self._shown(QAbstractButton) if w.isEnabled()]
        if not found:
            return "-"
        button = self.random.choice(found)
        told = f"{type(button).__name__} {button.text() or button.accessibleName()}"
        menu = getattr(button, "menu", lambda: None)()
        if menu is not None:
            menu.aboutToShow.emit()
            actions = [a for a in menu.actions() if a.isEnabled() and not a.isSeparator()]
            if actions:
                chosen = self.random.choice(actions)
                told += f" > {chosen.text()}"
                chosen.trigger()
            return told
        QTimer.singleShot(0, lambda: button.click() if shiboken6.isValid(button) else None)
        return told

    def change_field(self) -> str:
        found = [w for w in self._shown(QComboBox, QAbstractSpinBox, QLineEdit) if w.isEnabled()]
        if not found:
            return "-"
        field = self.random.choice(found)
        if isinstance(field, QComboBox) and field.count():
            field.setCurrentIndex(self.random.randrange(field.count()))
            field.activated.emit(field.currentIndex())
        elif isinstance(field, QSpinBox | QDoubleSpinBox):
            low, high = field.minimum(), field.maximum()
            field.setValue(self.random.choice((low, high, min(high, low + 7), field.value(), min(high, 500))))
        elif isinstance(field, QLineEdit) and not isinstance(field.parent(), QAbstractSpinBox):  # whose text is its own
            field.setText(self.random.choice(WORDS))
            field.editingFinished.emit()
        return f"{type(field).__name__} {field.accessibleName()}"

    def use_mouse(self) -> str:
        found = self._shown(pg.GraphicsView, LaneView)
        if not found:
            return "-"
        view = self.random.choice(found)
        target = view.viewport() if isinstance(view, pg.GraphicsView) else view
        if target.width() < 30 or target.height() < 30:
            return "-"

        def place() -> QPoint:
            return QPoint(self.random.randrange(5, target.width() - 5), self.random.randrange(5, target.height() - 5))

        what = self.random.choice(("click", "double", "drag", "right", "wheel", "move"))
        at, to = place(), place()
        left, right = Qt.MouseButton.LeftButton, Qt.MouseButton.RightButton
        if what == "click":
            QTest.mouseClick(target, left, pos=at)
        elif what == "double":
            QTest.mouseDClick(target, left, pos=at)
        elif what in ("drag", "right"):
            button = left if what == "drag" else right
            QTest.mousePress(target, button, pos=at)
            QTest.mouseMove(target, to)
            QTest.mouseRelease(target, button, pos=to if self.random.random() < 0.7 else at)
        elif what == "wheel":
            steps = QPoint(0, self.random.choice((-240, -120, 120, 240)))
            none = Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase
            event = QWheelEvent(
                QPointF(at), QPointF(target.mapToGlobal(at)), QPoint(), steps, Qt.MouseButton.NoButton, *none, False
            )
            QCoreApplication.sendEvent(target, event)
        else:
            QTest.mouseMove(target, at)
        return f"{what} on {type(view).__name__}"

    def type_keys(self) -> str:
        if self.random.random() < 0.4:
            keys = self.random.choice(SHORTCUTS)
            QTest.keySequence(self.window, QKeySequence(keys))
            return keys
        target = QApplication.focusWidget() or self.window
        key = self.random.choice(
            (Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Space, Qt.Key.Key_Escape, Qt.Key.Key_Down, Qt.Key.Key_Up)
        )
        QTest.keyClick(target, key)
        return f"{key.name} to {type(target).__name__}"

    def change_workspace(self) -> str:
        name = self.random.choice(list(self.window.workspaces.by_name))
        self.window.workspaces.show_workspace(name)
        tabs = self.window.workspaces.current.tabs
        if tabs is not None:
            tabs.setCurrentIndex(self.random.randrange(tabs.count()))
        return str(name)

    def move_dock(self) -> str:
        places = self.random.choice([each for each in self.window.workspaces.by_name.values() if each.docks.by_name])
        name, dock = self.random.choice(list(places.docks.by_name.items()))
        what = self.random.choice(("float", "hide", "show", "left", "right", "bottom", "tab"))
        if what == "float":
            dock.setFloating(not dock.isFloating())
        elif what in ("hide", "show"):
            dock.setVisible(what == "show")
        elif what == "tab":
            for other in [d for d in places.docks.by_name.values() if d is not dock][:1]:
                places.tabifyDockWidget(other, dock)
        else:
            area = {"left": "LeftDockWidgetArea", "right": "RightDockWidgetArea", "bottom": "BottomDockWidgetArea"}[
                what
            ]
            places.addDockWidget(Qt.DockWidgetArea[area], dock)
        return f"{name} {what}"

    def choose_row(self) -> str:
        found = [
            w for w in self._shown(QAbstractItemView) if w.model() is not None and w.model().rowCount(QModelIndex())
        ]
        if not found:
            return "-"
        view = self.random.choice(found)
        model = view.model()
        head = getattr(view, "horizontalHeader", getattr(view, "header", None))
        columns = head().count() if head is not None else 1
        row, column = self.random.randrange(model.rowCount(QModelIndex())), self.random.randrange(max(1, columns))
        view.setCurrentIndex(model.index(row, column))
        if self.random.random() < 0.2 and hasattr(view, "sortByColumn"):
            view.sortByColumn(column, self.random.choice((Qt.SortOrder.AscendingOrder, Qt.SortOrder.DescendingOrder)))
        return f"{type(view).__name__} {view.accessibleName()} row {row}"

    def choose(self) -> str:
        """By a rule, along the front, in the table, or what was chosen before."""
        chip = self.window.findChild(ChoiceChip)
        rules = [a for a in self.window.findChild(ChooserBar).menu.actions() if a.isEnabled() and not a.isSeparator()]
        plots, tables = self._shown(FrontPlot), self._shown(ResultsView)
        what = self.random.choice(("rule", "front", "table", "undo"))
        if what == "rule" and rules:
            action = self.random.choice(rules)
            action.trigger()
            what = action.text()
        elif what == "front" and plots:
            for key in (*[Qt.Key.Key_Right] * self.random.randint(0, 4), Qt.Key.Key_Return):
                QTest.keyClick(plots[0], key)
        elif what == "table" and tables and tables[0].model().rowCount(QModelIndex()):
            tables[0].setCurrentIndex(tables[0].model().index(self.random.randrange(tables[0].model().rowCount()), 0))
            QTest.keyClick(tables[0], Qt.Key.Key_Return)
        else:
            chip.undo.click()
        return f"{what}: {chip.text()}"

    def export(self) -> str:
        """What the receipt says is what the chip shows when Export is pressed."""
        button, chip = self.window.findChild(ExportButton), self.window.findChild(ChoiceChip)
        if not button.isEnabled() or not self.window.result.session:
            return "-"
        self.turn(0.5)  # rank and costs have a turn of their own
        running, shown = self.window.bridge.activity.busy, chip.text().split(" · ")
        done: list[Any] = []
        took = [
            button.written.connect(lambda files, _: done.append(files)),
            button.failed.connect(lambda what, _: done.append(what)),
        ]
        button.click()
        self._wait(lambda: bool(done) or not button.isEnabled(), 60)
        for connection in took:
            button.disconnect(connection)
        if not done or isinstance(done[0], str):
            return f"nothing written: {done}"
        receipt = json.loads((done[0][0].parent / "receipt.json").read_text())
        rank = receipt["standing"]["rank"]
        says = [f"Measurement {receipt['measurement']}", receipt["rule"]]
        says += [f"{'no rank' if rank is None else f'rank {rank}'} of {receipt['standing']['of']}"]
        compared = 2 if running else len(shown[:3])
        if says[:compared] != shown[:compared]:
            self.faults.append(f"the chip showed {shown[:compared]}, the receipt says {says[:compared]}")
        self.receipts += 1
        return ", ".join(says)

    def open_something(self) -> str:
        if self.random.random() < 0.5:
            path = self.random.choice(sorted((resources() / "examples").glob("*.toml")))
            self.window.open_specification(path, start=self.random.random() < 0.6)
            return path.name
        records = self.window.services.store.sessions()
        if not records:
            return "-"
        record = self.random.choice(records)
        if "tune" not in self.window.panels:
            return "-"
        self.random.choice((self.window.open_session, self.window.resume_session))(record.id)
        return f"session {record.id}"

    def drop_file(self) -> str:
        files = [
            *(resources() / "examples").glob("*.toml"),
            *self.folder.rglob("*-cache.json"),
            *self.folder.rglob("*.csv"),
        ]
        path = self.random.choice(sorted(files))
        data = QMimeData()
        data.setUrls([QUrl.fromLocalFile(str(path))])
        none = Qt.DropAction.CopyAction, data, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
        self.window.dropEvent(QDropEvent(QPoint(40, 40), *none))
        return path.name

    def resize(self) -> str:
        self.window.resize(self.random.choice((900, 1366, 1600, 2560)), self.random.choice((600, 768, 1000)))
        return f"{self.window.width()}x{self.window.height()}"

    def close_dialog(self) -> str:
        self._close_popup()
        shown = [w for w in QApplication.topLevelWidgets() if isinstance(w, QDialog) and w.isVisible()]
        for dialog in shown[: self.random.randint(0, 3)]:
            dialog.close()
        return f"{len(shown)} open"

    # --- between rounds -----------------------------------------------------------------------------------------------

    def settle(self) -> dict[str, float]:
        """Only the home board again, and nothing running; what there is then."""
        faulthandler.dump_traceback_later(STILL_S, exit=True)
        popup = QApplication.activePopupWidget()
        while popup is not None:
            popup.close()
            popup = QApplication.activePopupWidget()
        window, boards = self.window, self.window.boards
        for dialog in [w for w in QApplication.topLevelWidgets() if isinstance(w, QDialog) and w.isVisible()]:
            dialog.close()  # those that ask for a file come and go
        tune = window.panels["tune"]
        window.bridge.queue.clear()  # else the next one begins
        tune.stop_session()
        activity = window.bridge.activity

        def nothing_runs() -> bool:
            if activity.busy and not activity.stopping:  # a sweep or a roofline, or what has only now begun
                activity.stop()
            return not activity.busy and not tune.stop.isEnabled()

        self._wait(nothing_runs, 120)
        window.settings.reset()
        boards.show(HOME)
        self._wait(lambda: boards.current is boards.find(HOME), 30)
        asked: dict[str, float] = {}  # when

        def home_alone() -> bool:
            """A board that is shown, or under a session that was read until now and then began, is not forgotten."""
            if boards.current is not boards.find(HOME):
                boards.show(HOME)  # one that was opened last has arrived only now, and shows itself
            idle, now = nothing_runs(), time.monotonic()
            for board in [b for b in boards.all if b is not boards.current and idle]:
                if now - asked.get(board.uuid, 0.0) > 5.0:
                    asked[board.uuid] = now
                    boards.forget(board)
            return idle and len(boards.all) == 1

        self._wait(home_alone, 120)
        for _ in range(5):
            self.turn(0.05)
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            self.program.collector.look_at_everything()  # as it does by itself while another program is in front
        roots = [self.program, *QApplication.topLevelWidgets()]
        timers = {timer for root in roots for timer in root.findChildren(QTimer)}
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "threads": float(
                len([t for t in threading.enumerate() if t.name not in ("watch", "wattridge-task-queue")])
            ),
            "queues": float(len({queue for root in roots for queue in root.findChildren(TaskQueue)})),
            "timers": float(len(timers)),
            "widgets": float(len(QApplication.allWidgets())),
            "windows": float(len(QApplication.topLevelWidgets())),
            "blocks": float(sys.getallocatedblocks()),
            "in_use_mb": _malloc_in_use() / 1e6,
            "rss_mb": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        }

    def census(self) -> Counter[str]:
        """Widgets by class and the class of their parent, threads, modules: they tell where more came from."""
        kept: Counter[str] = Counter(
            sys.intern(f"{type(w).__name__} in {type(w.parentWidget()).__name__ if w.parentWidget() else 'no other'}")
            for w in QApplication.allWidgets()
        )
        kept.update(sys.intern(f"thread {thread.name}") for thread in threading.enumerate())
        kept["modules that were imported"] = len(sys.modules)
        return kept

    def turn(self, seconds: float) -> None:
        """Let the event loop work."""
        end = time.monotonic() + seconds
        QCoreApplication.processEvents()
        while time.monotonic() < end:
            QCoreApplication.processEvents()
            time.sleep(0.002)

    def _ready(self) -> None:
        self._wait(lambda: bool(self.window.panels.has("tune")), 60)
        for name, workspace in self.window.workspaces.by_name.items():
            self.window.workspaces.show_workspace(name)
            self._wait(lambda w=workspace: all(self.window.panels.has(spec.name) for spec in w.panels), 60)
        self._ask_for_everything()

    def _ask_for_everything(self) -> None:
        """What is made when it is first asked for, and then kept."""
        for name in LOADED_LATE:
            importlib.import_module(name)
        window = self.window
        recording = (resources() / "recordings" / "h200-sgemm-session.json.gz").read_bytes()
        for place in range(SESSIONS_SHOWN + 1):
            (self.folder / f"{place}.json.gz").write_bytes(recording)
        window.panels["sessions"].import_files([self.folder / f"{n}.json.gz" for n in range(SESSIONS_SHOWN + 1)])
        self._wait(lambda: len(window.services.store.sessions()) > SESSIONS_SHOWN, 120)
        self._wait(lambda: window.result.table is not None, 60)
        self.turn(3.0)  # each of them is opened, which sets up its replay
        window.open_specification(resources() / "examples" / "gemm.toml", start=True)
        self._wait(lambda: window.panels["tune"].stop.isEnabled(), 60)
        self.turn(1.0)
        window.panels["tune"].queue.show_variants()
        window.panels["tune"].show_space()
        window.side_windows.show_editor().ask_new()
        for _, action in every_action(window.menuBar()):
            if action.isEnabled() and action.data() is None and action.objectName() not in NOT_PRESSED:
                action.trigger()
                self.turn(0.02)
        for name in window.workspaces.by_name:
            window.workspaces.show_workspace(name)
            self._show_pages()
        self._show_pages()
        for dialog in [w for w in QApplication.topLevelWidgets() if w.isVisible() and w is not window]:
            dialog.close()

    def _show_pages(self) -> None:
        for tabs in [w for w in QApplication.allWidgets() if isinstance(w, QTabWidget) and w.isVisible()]:
            for place in range(tabs.count()):
                tabs.setCurrentIndex(place)
                self.turn(0.02)

    def _wait(self, known: Callable[[], bool], patience_s: float) -> None:
        faulthandler.dump_traceback_later(patience_s + STILL_S, exit=True)
        end = time.monotonic() + patience_s
        while not known():
            if time.monotonic() > end:
                boards = ", ".join(board.gpu.info.label for board in self.window.boards.all)
                raise TimeoutError(
                    f"not ready: {boards} are watched, {self.window.bridge.activity.title or 'nothing'} runs"
                )
            self.turn(0.02)

    def _shown(self, *kinds: type) -> list[Any]:
        return [w for w in QApplication.allWidgets() if isinstance(w, kinds) and w.isVisible() and not _outside(w)]


class _MallocInfo(ctypes.Structure):
    _fields_ = [(f"f{place}", ctypes.c_size_t) for place in range(10)]  # of struct mallinfo2


def _malloc_in_use() -> int:
    """Bytes that glibc's malloc has handed out, in heaps and in mappings of their own."""
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallocInfo
    told = mallinfo()
    return int(told.f7 + told.f4)  # uordblks, hblkhd


def _outside(widget: QWidget) -> bool:
    """Inside a file dialog: its buttons make and remove folders."""
    return type(widget.window()).__name__ == "QFileDialog"


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3600.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    faulthandler.enable()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        os.environ["WATTRIDGE_DATA"] = name
        os.environ["HOME"] = name
        os.chdir(name)  # a folder that it types may be a relative one
        qt = application()
        QApplication.setAttribute(Qt.ApplicationAttribute.AA_DontUseNativeDialogs)
        QDesktopServices.openUrl = lambda *_: True  # type: ignore[method-assign, assignment]
        status = run(seconds, seed, Path(name))
        shiboken6.delete(qt)
    return status


def run(seconds: float, seed: int, folder: Path) -> int:
    faults: list[str] = []
    sys.excepthook = lambda kind, error, trace: faults.append("".join(traceback.format_exception(kind, error, trace)))
    threading.excepthook = lambda told: faults.append(
        "".join(traceback.format_exception(told.exc_type, told.exc_value, told.exc_traceback))
    )

    def told_by_qt(kind: QtMsgType, _context: object, message: str) -> None:
        if kind != QtMsgType.QtDebugMsg and not any(word in message for word in QUIET):
            faults.append(f"Qt: {message}")

    qInstallMessageHandler(told_by_qt)
    watch = Watch()
    watch.start()
    try:
        monkey = Monkey(seed, folder)
    except Exception:  # noqa: BLE001  (the hook above keeps it to itself)
        print(*faults, traceback.format_exc(), sep="\n")
        return 1
    begun, rounds, steps = time.monotonic(), [], 0
    print(f"seed {seed}, {seconds:.0f} s", flush=True)
    print(
        f"{'round':>5} {'steps':>6} {'threads':>8} {'timers':>7} {'widgets':>8} {'windows':>8} {'in use':>7} {'MB':>7}",
        flush=True,
    )
    rounds.append(monkey.settle())
    censuses = [monkey.census()]
    while time.monotonic() - begun < seconds and not faults:
        try:
            for _ in range(STEPS):
                monkey.step()
                steps += 1
                faults += monkey.faults
                if faults:
                    break
            rounds.append(monkey.settle())
            censuses.append(monkey.census())
        except Exception:  # noqa: BLE001  (what a step meets is what is looked for)
            faults.append(traceback.format_exc())
            break
        r = rounds[-1]
        print(
            f"{len(rounds) - 1:5} {steps:6} {r['threads']:8.0f} {r['timers']:7.0f} {r['widgets']:8.0f}"
            f" {r['windows']:8.0f} {r['in_use_mb']:7.1f} {r['rss_mb']:7.1f}",
            flush=True,
        )
    qInstallMessageHandler(None)
    faulthandler.cancel_dump_traceback_later()
    watch.end()
    amiss = [*faults, *watch.stalls]
    growth: dict[str, float] = {}
    quarter = max(1, len(rounds) // 4)
    later = rounds[quarter:]  # what is loaded by need is there by then, and the window keeps it
    # A result in sight has a histogram for each parameter, and a strategy fields for its options: those widgets differ.
    for what, slack in (("threads", 0), ("queues", 0), ("timers", 2), ("widgets", 30), ("windows", 2)):
        least, last = min(r[what] for r in later[:quarter]), min(r[what] for r in rounds[-max(3, quarter) :])
        if last > least + slack:  # in none of the last rounds as few: what is freed late comes and goes
            amiss.append(f"{what} grew from {least:.0f} to {last:.0f}")
    for what in ("in_use_mb", "blocks", "rss_mb"):
        early = statistics.median(r[what] for r in later[:quarter])
        growth[what] = statistics.median(r[what] for r in later[-quarter:]) / early - 1
        if growth[what] > 0.05 and what != "rss_mb" and len(rounds) > ROUNDS_COMPARED:
            amiss.append(f"{what} grew by {100 * growth[what]:.1f} %")
    print(f"{steps} steps in {time.monotonic() - begun:.0f} s: {dict(monkey.kinds)}")
    print(f"{monkey.receipts} receipts say what the chip showed")
    told = ", ".join(f"{what} {100 * share:+.1f} %" for what, share in growth.items())
    print(f"{told} from the second quarter's median to the last one's")
    for line in amiss:
        print(line)
    if amiss:
        more = censuses[-1] - censuses[min(quarter, len(censuses) - 1)]
        print(
            "more than at the end of the first quarter:",
            *(f"{n:5} {what}" for what, n in more.most_common(40)),
            sep="\n  ",
        )
        print("last steps:", *monkey.done, sep="\n  ")
    monkey.popups.stop()
    monkey.program.close()
    print("nothing amiss" if not amiss else f"{len(amiss)} amiss")
    return 1 if amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())
