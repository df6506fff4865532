"""Where the docks start, and how they share the window's width."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QMainWindow, QWidget
from pytestqt.qtbot import QtBot

from app.views.shell import docks as docks_module
from app.views.shell.docks import Docks
from app.views.shell.panels import PANELS


def shown(qtbot: QtBot, width: int) -> tuple[QMainWindow, Docks]:
    window = QMainWindow()
    qtbot.addWidget(window, before_close_func=lambda _: docks.stop_watching())
    window.setCentralWidget(QWidget())
    window.resize(width, 900)
    docks = Docks(window, PANELS)
    for spec in PANELS:
        docks.put(spec.name, QWidget())
    docks.restore(None)
    window.show()
    qtbot.waitUntil(lambda: bool(docks.columns()), timeout=5_000)
    return window, docks


def docked_share(window: QMainWindow) -> float:
    return 1 - window.centralWidget().width() / window.width()


@pytest.mark.parametrize("wide", [False, True])
def test_docks_keep_their_share_of_a_window_that_grows(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, wide: bool
) -> None:
    monkeypatch.setattr(docks_module, "_WIDE_PX", 100 if wide else 10_000)
    window, docks = shown(qtbot, 1200)
    docks.share(0.5)
    qtbot.waitUntil(lambda: abs(docked_share(window) - 0.5) < 0.02, timeout=5_000)
    for width in (1900, 900, 1500):
        window.resize(width, 900)
        qtbot.waitUntil(lambda: abs(docked_share(window) - 0.5) < 0.03, timeout=5_000)


def test_on_a_wide_screen_the_plots_stand_beside_the_rest(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docks_module, "_WIDE_PX", 100)
    _window, docks = shown(qtbot, 1200)
    docks.bring("tune", "front")
    tune, front = docks.by_name["tune"], docks.by_name["front"]
    qtbot.waitUntil(lambda: front.x() > tune.x() + tune.width() - 2 and front.y() == tune.y(), timeout=5_000)
    assert abs(front.width() - tune.width()) <= 4
    docks.bring("roofline", "sessions")
    assert set(docks.columns()) == {"roofline", "sessions"}
    docks.by_name["sessions"].hide()
    docks.reset()
    qtbot.waitUntil(lambda: not docks.by_name["sessions"].isHidden(), timeout=5_000)
