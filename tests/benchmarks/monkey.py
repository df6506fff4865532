"""Random but valid use of the window. By hand: python tests/benchmarks/monkey.py [SECONDS] [SEED]

Rounds of random steps (actions, buttons, fields, keys, mouse, docks, files); after each round only the home
board is watched again and everything is counted: no exception, no thread, timer or widget too many, memory
flat within 5 % from the second quarter's median to the last one's. Exit status 1 and the last steps where something is
amiss. The same seed draws the same numbers; what they meet depends on the machine's pace too.
"""

from __future__ import annotations

import faulthandler
import gc
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
from PySide6.QtGui import QAction, QDesktopServices, QDropEvent, QWheelEvent  # noqa: E402
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
    QSpinBox,
    QWidget,
)

from app.paths import resources  # noqa: E402
from app.views.shell.actions import every_action  # noqa: E402
from app.views.shell.app import Program, application  # noqa: E402
from app.views.watched_board import watched_gpu  # noqa: E402

HOME = "simulated:a100"
STEPS = 120  # in a round
STILL_S = 60.0
NOT_PRESSED = {"quit", "log_folder"}
WORDS = ("gemm", "a100 fast", "best, of may", "", "0", "-1", "1e9", "x" * 200, "émoji ✓", "%s {0} <b>")
QUIET = ("propagateSizeHints", "does not support raise", "does not support")


class Monkey:
    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.done: deque[str] = deque(maxlen=40)
        self.faults: list[str] = []
        self.kinds: Counter[str] = Counter()
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
            (self.use_mouse, 12),
            (self.type_keys, 6),
            (self.move_dock, 5),
            (self.choose_row, 8),
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
        found = [*self._shown(pg.GraphicsView), self.window.monitor.view]
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
        target = QApplication.focusWidget() or self.window
        key = self.random.choice(
            (Qt.Key.Key_Tab, Qt.Key.Key_Backtab, Qt.Key.Key_Space, Qt.Key.Key_Escape, Qt.Key.Key_Down, Qt.Key.Key_Up)
        )
        QTest.keyClick(target, key)
        return f"{key.name} to {type(target).__name__}"

    def move_dock(self) -> str:
        name, dock = self.random.choice(list(self.window.docks.items()))
        what = self.random.choice(("float", "hide", "show", "left", "right", "bottom", "tab"))
        if what == "float":
            dock.setFloating(not dock.isFloating())
        elif what in ("hide", "show"):
            dock.setVisible(what == "show")
        elif what == "tab":
            other = self.random.choice([d for d in self.window.docks.values() if d is not dock])
            self.window.tabifyDockWidget(other, dock)
        else:
            area = {"left": "LeftDockWidgetArea", "right": "RightDockWidgetArea", "bottom": "BottomDockWidgetArea"}[
                what
            ]
            self.window.addDockWidget(Qt.DockWidgetArea[area], dock)
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
        tune = window.panels["tune"]
        tune.stop_session()
        self._wait(lambda: not tune.stop.isEnabled(), 60)
        window.settings.reset()
        boards.show(HOME)
        self._wait(lambda: boards.current is boards.find(HOME), 30)
        for board in [board for board in boards.all if board is not boards.current]:
            boards.forget(board)
        self._wait(lambda: len(boards.all) == 1, 30)
        for _ in range(5):
            self.turn(0.05)
            QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
            gc.collect()
        roots = [self.program, *QApplication.topLevelWidgets()]
        timers = {timer for root in roots for timer in root.findChildren(QTimer)}
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "threads": float(len([t for t in threading.enumerate() if t.is_alive()])),
            "timers": float(len(timers)),
            "widgets": float(len(QApplication.allWidgets())),
            "windows": float(len(QApplication.topLevelWidgets())),
            "rss_mb": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
        }

    def turn(self, seconds: float) -> None:
        """Let the event loop work."""
        end = time.monotonic() + seconds
        QCoreApplication.processEvents()
        while time.monotonic() < end:
            QCoreApplication.processEvents()
            time.sleep(0.002)

    def _ready(self) -> None:
        self._wait(lambda: len(self.window.panels) == len(self.window.docks) - 1, 60)

    def _wait(self, known: Callable[[], bool], patience_s: float) -> None:
        end = time.monotonic() + patience_s
        while not known():
            if time.monotonic() > end:
                raise TimeoutError("the window does not become ready")
            self.turn(0.02)

    def _shown(self, *kinds: type) -> list[Any]:
        return [w for w in QApplication.allWidgets() if isinstance(w, kinds) and w.isVisible() and not _outside(w)]


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
    monkey = Monkey(seed, folder)
    begun, rounds, steps = time.monotonic(), [], 0
    print(f"seed {seed}, {seconds:.0f} s", flush=True)
    print(f"{'round':>5} {'steps':>6} {'threads':>8} {'timers':>7} {'widgets':>8} {'windows':>8} {'MB':>7}", flush=True)
    rounds.append(monkey.settle())
    while time.monotonic() - begun < seconds and not faults:
        try:
            for _ in range(STEPS):
                monkey.step()
                steps += 1
                if faults:
                    break
            rounds.append(monkey.settle())
        except Exception:  # noqa: BLE001  (what a step meets is what is looked for)
            faults.append(traceback.format_exc())
            break
        r = rounds[-1]
        print(
            f"{len(rounds) - 1:5} {steps:6} {r['threads']:8.0f} {r['timers']:7.0f} {r['widgets']:8.0f}"
            f" {r['windows']:8.0f} {r['rss_mb']:7.1f}",
            flush=True,
        )
    qInstallMessageHandler(None)
    faulthandler.cancel_dump_traceback_later()
    amiss = list(faults)
    quarter = max(1, len(rounds) // 4)
    later = rounds[quarter:]  # what is loaded by need is there by then, and the window keeps it
    for what, slack in (("threads", 0), ("timers", 2), ("widgets", 10), ("windows", 2)):
        least, last = min(r[what] for r in later[:quarter]), min(r[what] for r in rounds[-max(3, quarter) :])
        if last > least + slack:  # in none of the last rounds as few: what is freed late comes and goes
            amiss.append(f"{what} grew from {least:.0f} to {last:.0f}")
    early = statistics.median(r["rss_mb"] for r in later[:quarter])
    growth = statistics.median(r["rss_mb"] for r in later[-quarter:]) / early - 1
    if growth > 0.05:
        amiss.append(f"memory grew by {100 * growth:.1f} %")
    print(f"{steps} steps in {time.monotonic() - begun:.0f} s: {dict(monkey.kinds)}")
    print(f"memory {100 * growth:+.1f} % from the second quarter's median to the last one's")
    for line in amiss:
        print(line)
    if amiss:
        print("last steps:", *monkey.done, sep="\n  ")
    monkey.popups.stop()
    monkey.program.close()
    print("nothing amiss" if not amiss else f"{len(amiss)} amiss")
    return 1 if amiss else 0


if __name__ == "__main__":
    raise SystemExit(main())
