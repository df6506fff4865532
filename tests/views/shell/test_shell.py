"""What is around the views: first steps, settings, about and diagnostics, the log."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import ready
from PySide6.QtCore import QPoint, QRect, QSize, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QToolBar, QWidget
from pytestqt.qtbot import QtBot

from app import __version__
from app.base.paths import resources
from app.engine.analysis.tradeoff import Load
from app.sensors.select import open_gpu
from app.views.shared import theme
from app.views.shared.widgets import lies_behind
from app.views.shell.about import LICENCES, diagnostics, nameless
from app.views.shell.log import Log, last_lines
from app.views.shell.tour import place_beside

Open = Callable[..., Any]
DIRECT = Qt.FindChildOption.FindDirectChildrenOnly
UUID = "GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


def test_the_first_start_shows_the_steps_once(qtbot: QtBot, open_program: Open) -> None:
    program = open_program()
    program.offer_tour()
    window = ready(qtbot, program)
    tour = window.tour
    assert tour is not None
    assert tour.target is window.monitor
    assert tour.step == 0
    assert tour.next.hasFocus() or not window.isActiveWindow()
    assert "Watch" in tour.next.accessibleDescription(), "it is read out with the focus"
    window.actions_by_name["hold"].trigger()
    assert not window.monitor.view.window_of_time.live, "nothing waits for the tour"

    qtbot.keyClick(tour, Qt.Key.Key_Right)
    assert (tour.step, tour.place.text()) == (1, "2 of 6")
    assert window.workspaces.current.spec.name == "tune"
    qtbot.keyClick(tour, Qt.Key.Key_Left)
    assert tour.step == 0
    assert window.workspaces.current.spec.name == "watch"
    qtbot.keyClick(tour, Qt.Key.Key_Escape)
    assert tour.step is None
    window.actions_by_name["tour"].trigger()
    assert tour.step == 0, "and again from the menu"
    window.close()
    again = open_program(FakeGpu(working))
    again.offer_tour()
    ready(qtbot, again)
    assert again.window.tour is None


def test_who_skips_the_first_steps_goes_on_where_they_began(qtbot: QtBot, open_program: Open) -> None:
    program = open_program()
    program.offer_tour()
    window = ready(qtbot, program)
    qtbot.waitUntil(lambda: window.panels.has("home"))
    tour = window.tour
    assert window.workspaces.current.spec.name == "watch"
    qtbot.keyClick(tour.next, Qt.Key.Key_Return)
    assert (tour.step, window.workspaces.current.spec.name) == (1, "tune"), "Return presses the button"
    tour.skip.click()
    assert tour.step is None
    assert window.workspaces.current.spec.name == "home"
    qtbot.waitUntil(lambda: window.panels["home"].isAncestorOf(window.focusWidget()), timeout=5_000)


def test_tab_reaches_export_from_the_set_up_and_nothing_that_is_out_of_sight(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    window.resize(1280, 720)
    window.tune_example()
    qtbot.waitUntil(
        lambda: window.result.best is not None and window.actions_by_name["export"].isEnabled(), timeout=60_000
    )
    window.bridge.activity.stop()
    qtbot.waitUntil(lambda: not window.bridge.activity.busy, timeout=20_000)
    export = window.bring_button("export")
    qtbot.waitUntil(lambda: window.panels.has("table"))
    window.workspaces.go_to("tune")
    passed = []
    while window.focusWidget() is not export and len(passed) < 120:
        window.focusNextPrevChild(True)
        passed.append(window.focusWidget())
    assert window.focusWidget() is export
    assert not [each.accessibleName() for each in passed if lies_behind(each)]


def test_the_last_steps_tune_the_example_up_to_an_exported_configuration_by_keyboard(
    qtbot: QtBot, open_program: Open, own_data_folder: Path
) -> None:
    window = ready(qtbot, open_program(speed=60.0))
    window.actions_by_name["tour"].trigger()
    tour = window.tour
    for _ in range(4):
        qtbot.keyClick(tour.next, Qt.Key.Key_Right)
    assert tour.offer.text().replace("&", "") == "Tune the example"
    qtbot.keyClick(tour.offer, Qt.Key.Key_Space)
    assert tour.step == 5
    assert tour.target.isVisible(), "the button that exports"
    assert window.workspaces.current.spec.name == "tune"
    qtbot.waitUntil(lambda: window.result.best is not None and tour.offer.isEnabled(), timeout=60_000)
    assert window.focusWidget() is tour.offer, "the next key exports"
    qtbot.keyClick(window.focusWidget(), Qt.Key.Key_Return)
    exports = own_data_folder / "exports"
    qtbot.waitUntil(lambda: any(path.is_file() for path in exports.rglob("*")), timeout=20_000)
    assert tour.step is None
    window.bridge.activity.stop()
    qtbot.waitUntil(lambda: not window.bridge.activity.busy, timeout=30_000)


@pytest.mark.parametrize("target", [(0, 100, 80, 56), (300, 600, 800, 110), (1200, 500, 70, 22), (600, 300, 40, 40)])
@pytest.mark.parametrize("size", [(1280, 720), (1366, 768), (1920, 1080), (3840, 2160)])
def test_a_card_lies_in_the_window_and_covers_nothing_of_what_it_points_at(
    target: tuple[int, int, int, int], size: tuple[int, int]
) -> None:
    room, card = QRect(12, 60, size[0] - 24, size[1] - 72), QSize(340, 170)
    at = QRect(place_beside(QRect(*target), card, room), card)
    assert room.contains(at)
    assert not at.intersects(QRect(*target))


def on_top(window: QWidget, card: QWidget) -> bool:
    """Nothing covers a card that floats over the window."""
    rect = card.geometry()
    seen = [window.childAt(corner) for corner in (rect.center(), rect.topLeft() + QPoint(12, 12))]
    return all(each is not None and (each is card or card.isAncestorOf(each)) for each in seen)


def test_the_tour_ends_where_the_user_goes_to_another_page(qtbot: QtBot, open_program: Open) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    window.actions_by_name["tour"].trigger()
    assert window.tour.step == 0
    window.workspaces.show_workspace("library")
    qtbot.waitUntil(lambda: window.tour.step is None, timeout=5_000)
    window.actions_by_name["tour"].trigger()
    window.tour.go_on()
    assert window.tour.step == 1, "its own steps change the page"
    qtbot.wait(50)
    assert window.tour.step == 1


def test_the_tour_stays_above_what_comes_to_the_front_below_the_menus_and_off_its_target(
    qtbot: QtBot, open_program: Open
) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    for width, height in ((1920, 1080), (1280, 720), (700, 240)):
        window.resize(width, height)
        window.actions_by_name["wide_docks"].trigger()
        window.actions_by_name["tour"].trigger()
        tour = window.tour
        for step in range(6):
            assert tour.step == step
            qtbot.wait(20)
            assert window.rect().contains(tour.geometry())
            assert tour.y() > max(bar.geometry().bottom() for bar in window.findChildren(QToolBar, options=DIRECT))
            if height >= 720:
                assert not tour.geometry().intersects(tour.frame), tour.title.text()
                target = QRect(tour.target.mapTo(window, QPoint()), tour.target.size())
                assert not tour.frame.isEmpty()
                assert target.contains(tour.frame), "around what is seen of it"
            for name in ("tune", "front", "front", "sessions"):  # once it is in front already
                window.workspaces.go_to(name)
                qtbot.waitUntil(lambda: on_top(window, window.tour), timeout=5_000)
            tour.go_on()


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
