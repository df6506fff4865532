"""What is around the views: settings, about and diagnostics, the log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import ready
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog
from pytestqt.qtbot import QtBot

from app import __version__
from app.base.paths import resources
from app.engine.analysis.tradeoff import Load
from app.sensors.select import open_gpu
from app.views.shared import theme
from app.views.shared.widgets import lies_behind
from app.views.shell.about import LICENCES, diagnostics, nameless
from app.views.shell.log import Log, last_lines

Open = Callable[..., Any]
UUID = "GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def test_tab_reaches_export_from_the_set_up_and_nothing_that_is_out_of_sight(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    window.resize(1280, 720)
    window.tune_example()
    qtbot.waitUntil(
        lambda: window.result.best is not None and window.actions_by_name["export"].isEnabled(), timeout=60_000
    )
    window.bridge.activity.stop()
    qtbot.waitUntil(lambda: not window.bridge.activity.busy, timeout=20_000)
    export = window.panels["inspector"].answer.export
    qtbot.waitUntil(lambda: window.panels.has("table"))
    window.workspaces.go_to("tune")
    passed = []
    while window.focusWidget() is not export and len(passed) < 120:
        window.focusNextPrevChild(True)
        passed.append(window.focusWidget())
    assert window.focusWidget() is export
    assert not [each.accessibleName() for each in passed if lies_behind(each)]


def test_settings_take_effect_are_kept_and_go_back(qtbot: QtBot, open_program: Open, own_data_folder: Path) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    window.actions_by_name["settings"].trigger()
    shown = window.side_windows.by_name["settings"]
    assert isinstance(shown, QDialog)
    assert not shown.isModal()
    shown.colours.setCurrentIndex(shown.colours.findData("dark"))
    shown.colours.activated.emit(0)
    assert theme.colours() is theme.DARK
    shown.load.price.setValue(0.4)
    shown.load.carbon.setValue(45)
    shown.load.boards.setValue(3)
    shown.load.currency.setText("CHF")
    shown.load.currency.editingFinished.emit()
    window.workspaces.docks["tune"].close()
    window.close()

    again = ready(qtbot, open_program(FakeGpu(working)))
    assert again.settings.theme == "dark"
    assert again.settings.load == Load(4000.0, 3, 0.4, "CHF", 45.0)
    again.settings.add_recent(resources() / "examples" / "gemm.toml")
    again.actions_by_name["settings"].trigger()
    shown = again.side_windows.by_name["settings"]
    assert shown.load.price.value() == 0.4
    shown.reset.click()
    assert again.settings.theme == "system"
    assert shown.load.price.value() == again.settings.load.price_per_kwh == 0.25
    assert (shown.load.boards.value(), shown.load.currency.text()) == (1, "EUR")
    assert again.settings.recent == []
    assert not again.workspaces.docks["tune"].isHidden()
    theme.set_mode("system")


def test_a_settings_file_that_was_edited_by_hand_does_no_harm(own_data_folder: Path, open_program: Open) -> None:
    own_data_folder.mkdir(parents=True, exist_ok=True)
    (own_data_folder / "window.ini").write_text(
        "[General]\ntheme=green\nrecent=@Invalid()\n[energy]\nprice_per_kwh=cheap\nboards=-3\nload_hours_per_year=nan\n[window]\nlayout=@ByteArray(zz)\n"
    )
    window = open_program(FakeGpu(working)).window
    assert window.settings.theme == "system"
    assert window.settings.load == Load(4000.0, 1, 0.25, "EUR", 300.0)
    assert window.settings.recent == []
    assert not window.workspaces.docks["channels"].isHidden()


def test_diagnostics_have_versions_and_board_but_identify_neither_board_nor_user(open_program: Open) -> None:
    gpu = FakeGpu(working, source="nvml", name="Board X")
    object.__setattr__(gpu.info, "uuid", UUID)
    window = open_program(gpu).window
    window.notices.fail(f"{UUID} was lost", f"look into {Path.home()}/x")
    window.actions_by_name["diagnostics"].trigger()
    text = QGuiApplication.clipboard().text()
    assert "Board X" in text
    assert __version__ in text
    assert "core_voltage_mv: nvidia-smi" in text, "what is not available, and why"
    assert "0f1e2d3c" not in text
    window.actions_by_name["about"].trigger()
    about = window.side_windows.by_name["about"]
    about.copy.click()
    assert about.copy.text() == "Copied"
    assert "Board X" in about.text.toPlainText()
    assert "0f1e2d3c" not in about.text.toPlainText() + QGuiApplication.clipboard().text()
    about.text.anchorClicked.emit(QUrl(LICENCES))
    guide = window.side_windows.by_name["help"]
    assert "PySide6-Essentials" in guide.text.toPlainText()
    assert guide.text.textCursor().block().text() == "Licences"
    guide.close()


@pytest.mark.parametrize(
    "line",
    [f"lost {UUID}", f"({UUID.upper()})", "MIG-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/3/0", f"{Path.home()}/data"],
    ids=["plain", "capitals", "mig", "home"],
)
def test_names_are_removed_from_lines(line: str) -> None:
    text = nameless(line)
    assert "0f1e2d3c" not in text.lower()
    assert str(Path.home()) not in text


def test_the_simulated_board_says_so_in_diagnostics(qtbot: QtBot) -> None:
    gpu = open_gpu("simulated:a100")
    assert "(simulated)" in diagnostics(gpu)


def test_what_the_banner_shows_and_what_breaks_is_in_the_log(qtbot: QtBot, open_program: Open) -> None:
    program = open_program(FakeGpu(working))  # its panels are not waited for
    log = Log(program.show_fault)
    try:
        program.window.notices.fail("the fan fell off", "put it back")
        assert any("the fan fell off · put it back" in line for line in last_lines(5))

        def break_down() -> None:
            raise RuntimeError("out of steam")

        thread = threading.Thread(target=break_down)
        thread.start()
        thread.join()
        qtbot.waitUntil(lambda: "out of steam" in program.window.banner.text, timeout=3000)
        assert any("break_down" in line for line in last_lines(20)), "with its traceback"
    finally:
        log.close()


def test_the_edit_menu_undoes_what_is_set_up(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program())
    undo, redo = window.actions_by_name["undo"], window.actions_by_name["redo"]
    assert not undo.isEnabled()
    window.open_specification(resources() / "examples" / "gemm.toml", start=False)
    form = window.panels["tune"].form
    with qtbot.waitSignal(form.draft_shown, timeout=20_000):
        pass
    before = form.seed.value()
    form.seed.setValue(41)
    undo.trigger()
    assert form.seed.value() == before
    redo.trigger()
    assert form.seed.value() == 41
