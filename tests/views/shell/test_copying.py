"""'Copy as command line' and 'Copy as Python': of the view in use, read by the program's own parser."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Callable

import pytest
from fixtures.lab import ready
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.base.paths import resources
from app.cli import make_parser
from app.engine.results.state import SessionState
from app.engine.session import events
from app.engine.session.queue import variants
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin
from app.views.shell.app import Program
from app.views.shell.window import MainWindow

Open = Callable[..., Program]
EXAMPLE = resources() / "examples" / "vector_add.toml"


@pytest.fixture
def window(qtbot: QtBot, open_program: Open) -> MainWindow:
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    return ready(qtbot, open_program(gpu))


def copied(qtbot: QtBot, window: MainWindow, view: str, action: str = "copy_command") -> str:
    """What is on the clipboard once the view was gone to and the action triggered."""
    QGuiApplication.clipboard().setText("nothing")
    window.actions_by_name[f"go_{view}"].trigger()
    qtbot.waitUntil(lambda: window.copying.view == view, timeout=5_000)
    with qtbot.waitSignal(window.copying.said, timeout=30_000):
        window.actions_by_name[action].trigger()
    return QGuiApplication.clipboard().text()


def refused(qtbot: QtBot, window: MainWindow, view: str) -> str:
    QGuiApplication.clipboard().setText("nothing")
    window.actions_by_name[f"go_{view}"].trigger()
    qtbot.waitUntil(lambda: window.copying.view == view, timeout=5_000)
    with qtbot.waitSignal(window.copying.failed, timeout=30_000) as why:
        window.actions_by_name["copy_command"].trigger()
    assert QGuiApplication.clipboard().text() == "nothing", "nothing wrong is copied"
    return str(why.args[0])


def set_up(qtbot: QtBot, window: MainWindow) -> None:
    tune = window.panels["tune"]
    tune.open(EXAMPLE)
    qtbot.waitUntil(tune.start.isEnabled, timeout=20_000)
    tune.form.strategy.setCurrentIndex(tune.form.strategy.findData("random_sample"))
    tune.form.evaluations.setValue(8)
    tune.form.seed.setValue(17)


def run(qtbot: QtBot, window: MainWindow) -> None:
    set_up(qtbot, window)
    window.panels["tune"].start.click()
    qtbot.waitUntil(lambda: window.panels["tune"].state is SessionState.DONE, timeout=60_000)


def words(line: str) -> list[str]:
    found = shlex.split(line)
    assert found[0] == "wattridge"
    make_parser().parse_args(found[1:])
    return found[1:]


def test_under_tune_it_is_the_session_that_is_set_up(qtbot: QtBot, window: MainWindow) -> None:
    set_up(qtbot, window)
    given = words(copied(qtbot, window, "tune"))
    assert given[:4] == ["tune", str(EXAMPLE), "--gpu", "simulated:a100"]
    assert given[4:] == ["--strategy", "random_sample", "--max-evaluations", "8", "--seed", "17"]
    script = copied(qtbot, window, "tune", "copy_python")
    ast.parse(script)
    assert repr(str(EXAMPLE)) in script


def test_the_views_of_a_result_give_the_commands_for_it(qtbot: QtBot, window: MainWindow) -> None:
    run(qtbot, window)
    result = window.result
    for view in ("front", "analysis"):
        assert words(copied(qtbot, window, view)) == ["analyse", "1"]
    assert words(copied(qtbot, window, "inspector")) == ["export", "1"], "the best is taken without being named"
    result.select(next(index for index in range(8) if index != result.best))
    given = words(copied(qtbot, window, "inspector"))
    assert given[:3] == ["export", "1", "--configuration"]
    assert result.table is not None
    configuration = result.table.measurement(result.index).configuration
    assert given[3] == ",".join(f"{name}={value}" for name, value in configuration.items())


def test_traces_boards_sessions_comparison_fit_roofline_and_queue_have_theirs(qtbot: QtBot, window: MainWindow) -> None:
    assert words(copied(qtbot, window, "traces")) == ["monitor", "--gpu", "simulated:a100", "--duration", "60"]
    assert words(copied(qtbot, window, "boards")) == ["gpus"]
    assert words(copied(qtbot, window, "sessions")) == ["sessions"]
    assert words(copied(qtbot, window, "roofline"))[0] == "roofline"
    run(qtbot, window)
    tune, queue, sessions = (window.panels[name] for name in ("tune", "queue", "sessions"))  # type: ignore[literal-required]
    window.bridge.queue.pause()
    window.bridge.queue.add(variants(tune.plan_as_set_up(), ["brute_force"], [3]))
    queue.table.selectRow(0)
    assert words(copied(qtbot, window, "queue"))[-2:] == ["--seed", "3"]
    window.bridge.queue.clear()
    qtbot.waitUntil(lambda: sessions.model.rowCount() == 1 and not sessions.busy, timeout=20_000)
    sessions.choose({1})
    assert words(copied(qtbot, window, "sessions")) == ["analyse", "1"]
    window.compare_sessions((1,))
    qtbot.waitUntil(lambda: window.panels["compare"].ticked() == [1], timeout=20_000)
    assert words(copied(qtbot, window, "compare")) == ["compare", "1"]
    with qtbot.waitSignal(window.bridge.signal(events.FitFinished), timeout=60_000):
        window.panels["model"].fit_sweep()
    assert words(copied(qtbot, window, "model")) == ["fit", "--gpu", "simulated:a100"]


def test_what_no_command_gives_says_why(qtbot: QtBot, window: MainWindow) -> None:
    assert "nothing is set up" in refused(qtbot, window, "tune")
    assert "there is no result yet" in refused(qtbot, window, "front")
    assert "no command gives what Control shows" in refused(qtbot, window, "control")
    assert window.banner.isVisible()


def test_a_plots_menu_offers_it_too(qtbot: QtBot, window: MainWindow) -> None:
    import pyqtgraph as pg

    assert window.wiring.plot_menus is not None
    window.workspaces.bring("front")
    view = window.panels["front"].findChildren(pg.GraphicsView)[0]
    menu = window.wiring.plot_menus.menu_of(view)
    assert window.actions_by_name["copy_command"] in menu.actions()
    menu.deleteLater()
