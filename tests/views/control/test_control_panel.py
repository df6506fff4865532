"""Control in the window, without a board: what may be asked for, what is asked for, what is shown of the answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.lab import OBJECTIVE, Lab, filled, grid_space, plan_for, ready
from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication, QLabel, QStatusBar, QWidget
from pytestqt.qtbot import QtBot

from app.base.errors import InputError, WattridgeError
from app.base.paths import data_folder
from app.engine.control import installing
from app.engine.control.client import Asking
from app.engine.control.device_log import Change, keep, log_file
from app.engine.control.helper import policy
from app.engine.control.profiles import delete_profile, profiles_of, save_profile
from app.engine.session import events
from app.engine.store.database import Store
from app.sensors.channel import Reading, channel
from app.sensors.gpu import GpuInfo, PowerLimit, Source
from app.sensors.power_profiles import PowerProfile, PowerProfiles
from app.sensors.trace.trace import Trace
from app.views.control.arming import ControlSwitch
from app.views.control.change_log import COLUMNS
from app.views.control.clock_plot import CLOCK
from app.views.control.confirm_bar import ConfirmBar
from app.views.control.control_panel import ControlPanel
from app.views.control.setting_rows import ClockBox
from app.views.shared import theme
from app.views.shared.watched_boards import beat
from app.views.shell.banner import Banner
from app.views.shell.notices import Notices

CLOCKS = tuple(range(210, 1411, 15))


class Board:
    """A board that says what it can be set to."""

    channels = ()

    def __init__(self, source: Source = "nvml", why_not: dict[str, str] | None = None) -> None:
        self.info = GpuInfo(0, "GPU-1", "Test GPU", source, "580", PowerLimit(150.0, 250.0, 250.0, 225.0), (8, 0))
        self._why_not = why_not or {}

    def why_not_set(self, name: str) -> str | None:
        return self._why_not.get(name)

    def graphics_clocks_mhz(self) -> tuple[int, ...]:
        return CLOCKS

    def memory_clocks_mhz(self) -> tuple[int, ...]:
        return (810, 1215)


class ProfiledBoard(Board):
    """One with workload power profiles, of which one is requested."""

    requested: tuple[int, ...] | None = (5,)

    def power_profiles(self) -> PowerProfiles:
        names = {1: "max_q", 5: "balanced", 6: "llm_inference"}
        return PowerProfiles({at: PowerProfile(name, 0, ()) for at, name in names.items()}, self.requested, ())


def change(what: str, *, asked: str = "", at_s: float = 0.0, by: str = "by hand, ann", uuid: str = "GPU-1") -> Change:
    return Change(at_s, "Test GPU", what, by, "done", uuid, asked)


@pytest.fixture
def panel_of(qtbot: QtBot, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made: list[ControlPanel] = []
    store = Store(tmp_path_factory.mktemp("store") / "store.db")

    def make(board: Board, trace: Trace | None = None) -> tuple[Lab, ControlPanel]:
        lab = Lab(board, store, Trace((), rate_hz=50.0) if trace is None else trace)
        panel = ControlPanel(lab.context)
        qtbot.addWidget(panel)
        made.append(panel)
        qtbot.waitUntil(lambda: panel.rows is not None, timeout=5000)
        panel.show()
        return lab, panel

    yield make
    for panel in made:
        panel.shutdown()
    store.close()


def test_nothing_can_be_applied_while_the_window_is_read_only(panel_of: Any) -> None:
    lab, panel = panel_of(Board())
    panel.rows.boxes["graphics_clock_mhz"].setChecked(True)
    assert not panel.apply.isEnabled()
    assert panel.armed.text() == "Read-only"
    assert "until control is switched on" in panel.state.text()
    panel.switch.click()
    assert lab.engine.commands == [events.Allow("GPU-1")]
    assert panel.armed.text() == "Control: asking for the rights …"
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77, ("A lock cannot be read.",)))
    assert panel.apply.isEnabled()
    assert "A lock cannot be read." in panel.outcome.text()
    lab.engine.tell(events.ControlChanged("GPU-1", False, None))
    assert not panel.apply.isEnabled()


class ReportingBoard(Board):
    """One that reports its power, its limit and its event reasons."""

    channels = tuple(channel(name) for name in ("power_instant_w", "power_limit_w", "event_reasons"))


def ran(trace: Trace, seconds: float, power_w: float, reasons: int = 0) -> None:
    """The board did this from its last reading on."""
    start_ns = max(trace.last_ns, 1_000_000_000)
    for step in range(1, round(20 * seconds) + 1):
        trace.append(Reading(start_ns + 50_000_000 * step, (power_w, 225.0, float(reasons))))


def test_a_limit_that_the_load_cannot_reach_is_said_beside_it(panel_of: Any) -> None:
    lab, panel = panel_of(ReportingBoard(), Trace(ReportingBoard.channels))
    trace, rows = lab.context.boards.current.trace, panel.rows
    facts = rows.facts["power_limit_w"]
    assert facts.text() == "150 to 250 W, by default 250 W"
    height = facts.height()
    ran(trace, 10.0, 180.0)
    rows.limit.setValue(200)
    beat().struck.emit()
    assert "a power limit of 200 W is without effect on this load" in facts.text()
    assert "peak at 180 W" in facts.text()
    assert facts.height() == height, "nothing moves"
    rows.limit.setValue(185)  # what the sensor may be off above the peak
    beat().struck.emit()
    assert "without effect" not in facts.text()
    rows.limit.setValue(200)
    rows.boxes["graphics_clock_mhz"].setChecked(True)  # at another clock the load may draw more
    beat().struck.emit()
    assert "without effect" not in facts.text()
    rows.boxes["graphics_clock_mhz"].setChecked(False)
    ran(trace, 1.0, 224.0, reasons=0x4)
    beat().struck.emit()
    assert "without effect" not in facts.text()


def test_what_is_ticked_is_asked_for_and_has_to_be_confirmed(panel_of: Any) -> None:
    lab, panel = panel_of(Board())
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    rows = panel.rows
    rows.boxes["graphics_clock_mhz"].setChecked(True)
    rows.high.setValue(1200)
    rows.low.setValue(900)
    rows.boxes["power_limit_w"].setChecked(True)
    rows.limit.setValue(200)
    panel.apply.click()
    assert lab.engine.commands == [
        events.Apply("GPU-1", {"graphics_clock_mhz": (900.0, 1200.0), "power_limit_w": 200.0}, confirm_s=10.0)
    ]
    assert not panel.apply.isEnabled()  # until the engine has answered
    observed = {"graphics_clock_mhz": 1200.0}
    lab.engine.tell(
        events.SettingApplied("GPU-1", {}, observed, True, "graphics clock 1200 MHz", {"power_limit_w": 225.0}, 9.0)
    )
    assert panel.apply.isEnabled()
    assert "Graphics clock 1200 MHz. Before: power limit 225 W." in panel.outcome.text()
    panel.restore.click()
    assert lab.engine.commands[-1] == events.Apply("GPU-1", reset=True)


def test_a_simulated_board_is_armed_and_confirmed_as_a_real_one_and_says_what_it_is(panel_of: Any) -> None:
    lab, panel = panel_of(Board("simulated"))
    panel.rows.boxes["memory_clock_mhz"].setChecked(True)
    assert "Simulated: nothing real is set" in panel.state.text()
    assert not panel.apply.isEnabled()
    panel.switch.click()
    lab.engine.tell(events.ControlChanged("GPU-1", True, None))
    assert "Simulated: nothing real is set" in panel.state.text()
    panel.apply.click()
    assert lab.engine.commands == [
        events.Allow("GPU-1"),
        events.Apply("GPU-1", {"memory_clock_mhz": 1215.0}, confirm_s=10.0),
    ]


def test_a_recording_cannot_be_set(panel_of: Any) -> None:
    _, panel = panel_of(Board("recorded"))
    assert not any(box.isEnabled() for box in panel.rows.boxes.values())
    assert not panel.switch.isEnabled()
    assert "recording" in panel.state.text()


def test_a_typed_value_ticks_its_row_at_once_and_counts_before_the_field_is_left(panel_of: Any, qtbot: QtBot) -> None:
    lab, panel = panel_of(Board())
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    rows = panel.rows
    assert rows.settings() == {}
    rows.low.selectAll()
    qtbot.keyClicks(rows.low, "9")
    assert set(rows.settings()) == {"graphics_clock_mhz"}
    assert rows.low.cleanText() == "9", "what is being typed is left alone"
    qtbot.keyClicks(rows.low, "03")
    panel.apply.click()
    assert lab.engine.commands == [events.Apply("GPU-1", {"graphics_clock_mhz": (900.0, 1410.0)}, confirm_s=10.0)]
    rows.boxes["graphics_clock_mhz"].setChecked(False)
    rows.limit.stepUp()
    assert set(rows.settings()) == {"power_limit_w"}


@pytest.mark.parametrize(
    ("field", "name", "words"),
    [
        ("low", "graphics_clock_mhz", "99999 MHz is outside 210 to 1410 MHz"),
        ("high", "graphics_clock_mhz", "99999 MHz is outside 210 to 1410 MHz"),
        ("limit", "power_limit_w", "99999 W is outside 150 to 250 W"),
    ],
)
@pytest.mark.parametrize("leave", [Qt.Key.Key_Tab, Qt.Key.Key_Return, None])
def test_what_is_typed_beyond_the_range_stays_as_typed_in_red_and_cannot_be_applied(
    panel_of: Any, qtbot: QtBot, field: str, name: str, words: str, leave: Qt.Key | None
) -> None:
    lab, panel = panel_of(Board())
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    box, usual = getattr(panel.rows, field), QPalette().color(QPalette.ColorRole.Text)
    qtbot.waitUntil(lambda: box.lineEdit().palette().color(QPalette.ColorRole.Text) == usual)
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, "99999")
    if leave is not None:
        qtbot.keyClick(box, leave)
    assert box.cleanText() == "99999"
    assert box.lineEdit().palette().color(QPalette.ColorRole.Text).name() == theme.colours().vermillion
    assert panel.rows.facts[name].text() == words
    assert f"Nothing can be applied: {words}." in panel.state.text()
    assert not panel.apply.isEnabled()
    assert words in panel.apply.toolTip()
    assert not panel.script.isEnabled()
    assert not panel.save.isEnabled()
    panel.rows.take_typed()
    assert box.cleanText() == "99999"
    assert lab.engine.commands == [], "nothing was asked of the board"
    box.selectAll()
    qtbot.keyClicks(box, "240")
    assert box.lineEdit().palette().color(QPalette.ColorRole.Text) == usual
    assert words not in panel.rows.facts[name].text()
    panel.apply.click()
    assert len(lab.engine.commands) == 1


def test_what_is_dragged_takes_the_place_of_what_cannot_be(panel_of: Any, qtbot: QtBot) -> None:
    lab, panel = panel_of(Board())
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    panel.rows.high.selectAll()
    qtbot.keyClicks(panel.rows.high, "99999")
    panel.plot.dragged.emit(CLOCK, 1410.0)
    assert panel.rows.high.cleanText() == "1410"
    assert panel.apply.isEnabled()


def test_a_value_that_cannot_be_set_is_never_ticked(panel_of: Any) -> None:
    _, panel = panel_of(Board(why_not={"power_limit_w": "fixed"}))
    panel.rows.choose({"power_limit_w": 200.0, "memory_clock_mhz": 810.0})
    assert panel.rows.settings() == {"memory_clock_mhz": 810.0}


def test_what_is_shown_only_says_why(panel_of: Any) -> None:
    _, panel = panel_of(Board())
    said = " ".join(label.text() for label in panel.findChildren(QLabel))
    assert "The fan is shown only: a process that dies would leave it" in said
    assert "Clock offsets are not set: " in said


def test_a_real_board_that_is_read_only_names_what_a_model_takes(panel_of: Any, qtbot: QtBot) -> None:
    lab, panel = panel_of(Board())
    box = panel.prediction
    words = "No model yet. To measure 8 clocks (40 s), switch control on."
    qtbot.waitUntil(lambda: box.words.text() == words, timeout=20_000)
    assert not box.button.isVisible()
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    assert box.button.isVisible()


@pytest.mark.parametrize("width", [360, 900])
@pytest.mark.parametrize("source", ["nvml", "simulated"])
def test_nothing_moves_when_there_is_something_to_say(panel_of: Any, source: Source, width: int) -> None:
    lab, panel = panel_of(Board(source))
    panel.resize(width, 1400)
    for _ in range(5):  # lines that wrap take their room in several turns
        QApplication.processEvents()
    buttons = (panel.switch, panel.apply, panel.restore, panel.keep, panel.back, panel.save, panel.script)
    places = [button.mapTo(panel, button.rect().topLeft()) for button in buttons]
    words = "not obeyed: the clock runs at 900 MHz instead of 1200 (power cap)"
    for event in (
        events.ControlChanged("GPU-1", True, 77, ("Whether clocks are locked cannot be read from a board.",)),
        events.SettingApplied("GPU-1", {}, {}, True, "graphics clock 1200 MHz", {"power_limit_w": 225.0}, 9.7),
        events.SettingApplied("GPU-1", {}, {}, False, words, {}, None),
        events.ControlChanged("GPU-1", False, None),
    ):
        lab.engine.tell(event)
        QApplication.processEvents()
        assert [button.mapTo(panel, button.rect().topLeft()) for button in buttons] == places, event


@pytest.mark.parametrize(("width", "beside"), [(700, False), (1280, True)])
def test_the_form_is_no_wider_than_it_can_be_read_with_the_plot_beside_it_where_there_is_width(
    panel_of: Any, width: int, beside: bool
) -> None:
    _, panel = panel_of(Board())
    panel.resize(width, 1400)
    QApplication.processEvents()
    assert panel.rows.memory.mapTo(panel, panel.rows.memory.rect().topRight()).x() < 570
    plot = panel.plot.mapTo(panel, panel.plot.rect().topLeft())
    assert (plot.x() > 570, plot.y() < 100) == (beside, beside)


def test_the_countdown_runs_beside_apply_and_is_answered_there(panel_of: Any) -> None:
    lab, panel = panel_of(Board())
    assert not panel.keep.isEnabled()
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, "graphics clock 1200 MHz", {}, 9.7))
    assert "Graphics clock 1200 MHz. It returns in 10 s unless you keep it." in panel.outcome.text()
    panel.back.click()
    assert lab.engine.commands == [events.Confirm("GPU-1", keep=False)]
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, "the settings are as they were before", {}, None))
    assert panel.outcome.text() == "The settings are as they were before."
    assert not panel.keep.isEnabled()


def test_what_a_board_lacks_says_why(panel_of: Any) -> None:
    _, panel = panel_of(Board(why_not={"power_limit_w": "this board does not let its power limit be set"}))
    assert not panel.rows.boxes["power_limit_w"].isEnabled()
    assert "does not let" in panel.rows.boxes["power_limit_w"].toolTip()
    assert panel.rows.boxes["graphics_clock_mhz"].isEnabled()


def test_a_workload_power_profile_is_chosen_asked_for_and_shown_as_it_is_then(panel_of: Any, qtbot: QtBot) -> None:
    board = ProfiledBoard()
    lab, panel = panel_of(board)
    rows = panel.rows
    assert [rows.profile.itemText(index) for index in range(rows.profile.count())] == [
        *("none", "max_q (1)", "balanced (5)", "llm_inference (6)")
    ]
    assert rows.profile.currentText() == "balanced (5)"
    assert rows.facts["workload_power_profile"].text().startswith("Requested now: balanced;")
    assert rows.settings() == {}, "what is so already is not ticked"
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    qtbot.keyClick(rows.profile, Qt.Key.Key_Down)
    assert rows.settings() == {"workload_power_profile": 6.0}
    panel.apply.click()
    assert lab.engine.commands == [events.Apply("GPU-1", {"workload_power_profile": 6.0}, confirm_s=10.0)]
    board.requested = (6,)
    words = "workload power profile 6"
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, words, {"workload_power_profile": 5.0}, 9.0))
    qtbot.waitUntil(lambda: "now: llm_inference;" in rows.facts["workload_power_profile"].text(), timeout=5000)
    assert "Workload power profile 6. Before: workload power profile 5." in panel.outcome.text()
    board.requested = (1, 5)
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, "the settings are as they were before", {}, None))
    qtbot.waitUntil(lambda: "now: max_q, balanced;" in rows.facts["workload_power_profile"].text(), timeout=5000)


def test_where_no_profile_is_requested_it_says_so_and_where_that_is_not_known_nothing(panel_of: Any) -> None:
    for requested, words in (((), "Requested now: none;"), (None, "What is chosen")):
        board = ProfiledBoard()
        board.requested = requested
        _, panel = panel_of(board)
        assert panel.rows.facts["workload_power_profile"].text().startswith(words)
        assert panel.rows.profile.currentText() == "none"


def test_a_board_without_workload_power_profiles_says_so(panel_of: Any) -> None:
    _, panel = panel_of(Board())
    assert not panel.rows.profile.isEnabled()
    assert not panel.rows.boxes["workload_power_profile"].isEnabled()
    said = [label.text() for label in panel.findChildren(QLabel)]
    assert "Cannot be set: this board has no workload power profiles" in said


def test_kept_settings_with_a_workload_power_profile_come_back_where_the_board_has_it(panel_of: Any) -> None:
    _, panel = panel_of(ProfiledBoard())
    panel.rows.choose({"workload_power_profile": 1.0, "memory_clock_mhz": 810.0})
    assert panel.rows.settings() == {"workload_power_profile": 1.0, "memory_clock_mhz": 810.0}
    panel.rows.choose({"workload_power_profile": 7.0, "memory_clock_mhz": 810.0})
    assert panel.rows.settings() == {"memory_clock_mhz": 810.0}, "never another profile than the one that was kept"


def test_what_no_script_can_hold_is_said_when_it_is_exported(panel_of: Any, tmp_path: Path, qtbot: QtBot) -> None:
    lab, panel = panel_of(ProfiledBoard())
    said: list[str] = []
    lab.context.bridge.subscribe(events.EngineFault, lambda event: said.append(event.what))
    panel.rows.choose({"workload_power_profile": 1.0})
    panel.write_script(tmp_path / "clocks.sh")
    panel.write_unit(tmp_path / "clocks.service")
    assert not list(tmp_path.iterdir())
    qtbot.waitUntil(lambda: len(said) == 2, timeout=5000)
    assert all("a workload power profile is not written to scripts and units" in what for what in said)


def test_a_session_sets_the_board_itself(panel_of: Any) -> None:
    lab, panel = panel_of(Board())
    lab.engine.tell(events.ControlChanged("GPU-1", True, 77))
    panel.rows.boxes["graphics_clock_mhz"].setChecked(True)
    space = grid_space()
    table = filled(space, 3)
    lab.session(table, plan_for(space, OBJECTIVE, source="nvml"))
    assert not panel.apply.isEnabled()
    assert not panel.restore.isEnabled()
    assert "session is running" in panel.state.text()


def test_the_clock_box_goes_from_one_supported_clock_to_the_next(qtbot: QtBot) -> None:
    box = ClockBox(CLOCKS)
    qtbot.addWidget(box)
    box.setValue(900)
    box.stepBy(1)
    assert box.value() == 915
    box.stepBy(-3)
    assert box.value() == 870
    box.setValue(1203)
    box.editingFinished.emit()
    assert box.value() == 1200
    box.stepBy(1000)
    assert box.value() == 1410


def test_the_ends_of_a_range_never_cross(panel_of: Any) -> None:
    _, panel = panel_of(Board())
    rows = panel.rows
    rows.high.setValue(600)
    rows.low.setValue(900)
    assert rows.high.value() == 900
    rows.high.setValue(450)
    assert rows.low.value() == 450


def test_profiles_have_names_and_come_back(panel_of: Any) -> None:
    _, panel = panel_of(Board())
    panel.rows.boxes["graphics_clock_mhz"].setChecked(True)
    panel.rows.high.setValue(1200)
    panel.rows.low.setValue(1200)
    panel.profiles.setCurrentText("night")
    panel.save.click()
    assert profiles_of("Test GPU") == {"night": {"graphics_clock_mhz": 1200.0}}
    assert profiles_of("Another GPU") == {}
    _, again = panel_of(Board())
    again.profiles.setCurrentIndex(again.profiles.findText("night"))
    again.profiles.activated.emit(again.profiles.currentIndex())
    assert again.rows.settings() == {"graphics_clock_mhz": 1200.0}
    again.delete.click()
    assert profiles_of("Test GPU") == {}


def test_profiles_that_make_no_sense_are_refused() -> None:
    for name in ("", " ", "x" * 61, "a\x00b"):
        with pytest.raises(InputError):
            save_profile("Test GPU", name, {"power_limit_w": 200.0})
    with pytest.raises(InputError):
        save_profile("Test GPU", "empty", {})
    save_profile("Test GPU", "  two   words ", {"power_limit_w": 200.0, "graphics_clock_mhz": (900.0, 1200.0)})
    assert list(profiles_of("Test GPU")) == ["two words"]
    delete_profile("Test GPU", "not there")
    path = data_folder() / "profiles.json"
    document = json.loads(path.read_text())
    for broken in (
        "[]",
        "{",
        json.dumps({**document, "version": 2}),
        json.dumps({**document, "profiles": {"Test GPU": {"x": {"fan": [1, 1]}}}}),
        json.dumps({**document, "profiles": {"Test GPU": {"x": {"power_limit_w": [True, 200]}}}}),
        json.dumps({**document, "profiles": {"Test GPU": {"x": {"power_limit_w": [300, 200]}}}}),
    ):
        path.write_text(broken)
        with pytest.raises(WattridgeError):
            profiles_of("Test GPU")


def test_settings_are_exported_as_script_and_unit(panel_of: Any, tmp_path: Path) -> None:
    _, panel = panel_of(Board())
    assert not panel.script.isEnabled()
    panel.rows.boxes["graphics_clock_mhz"].setChecked(True)
    panel.rows.low.setValue(900)
    panel.write_script(tmp_path / "clocks.sh")
    panel.write_unit(tmp_path / "clocks.service")
    assert "-lgc 900,1410" in (tmp_path / "clocks.sh").read_text()
    assert "ExecStart=/usr/bin/nvidia-smi -i GPU-1 -lgc 900,1410" in (tmp_path / "clocks.service").read_text()


def test_every_change_is_a_row_of_the_log_of_other_days_too(panel_of: Any, qtbot: QtBot) -> None:
    keep(change("graphics clock", asked="1200 MHz"))
    keep(change("graphics clock", asked="600 MHz", uuid="GPU-2"))  # another board of its kind
    lab, panel = panel_of(Board())
    assert COLUMNS == ("Time", "What", "Asked", "Observed", "By", "Result")
    qtbot.waitUntil(lambda: panel.log.by_hand.rowCount() == 1, timeout=5000)
    made = change("power limit", asked="200 W", at_s=5.0)
    lab.engine.tell(events.DeviceChanged(made))
    lab.engine.tell(events.DeviceChanged(replace(made, observed="150 W", outcome="not obeyed")))
    assert [row[1:] for row in panel.log.by_hand.rows()] == [
        ("graphics clock", "1200 MHz", "–", "ann", "done"),
        ("power limit", "200 W", "150 W", "ann", "not obeyed"),
    ]


def test_changes_by_hand_stand_apart_from_those_of_sessions(panel_of: Any) -> None:
    lab, panel = panel_of(Board())
    log = panel.log
    for index in range(3):
        lab.engine.tell(events.DeviceChanged(change("graphics clock", at_s=float(index), by="session, ann")))
    lab.engine.tell(events.DeviceChanged(change("power limit", at_s=7.0)))
    assert [log.tabs.tabText(place) for place in range(2)] == ["By hand: 1", "By sessions: 3"]
    assert log.table.model() is log.by_hand
    log.tabs.setCurrentIndex(1)
    assert {row[4] for row in log.table.model().rows()} == {"session, ann"}


def test_the_newest_change_is_in_sight(panel_of: Any, qtbot: QtBot) -> None:
    for day in range(60):
        keep(
            Change(
                float(day),
                "Test GPU",
                "power limit",
                "by hand, ann",
                "done",
                "GPU-1",
                f"{150 + day} W",
            )
        )
    lab, panel = panel_of(Board())
    panel.resize(380, 800)
    bar = panel.log.table.verticalScrollBar()
    qtbot.waitUntil(lambda: 0 < bar.maximum() == bar.value(), timeout=5000)
    lab.engine.tell(events.DeviceChanged(change("power limit", at_s=100.0)))
    qtbot.waitUntil(lambda: bar.value() == bar.maximum(), timeout=5000)
    before = bar.maximum()
    panel.log.table.setFixedHeight(panel.log.table.height() - 40)  # as when what stands above it needs more room
    qtbot.waitUntil(lambda: before < bar.maximum() == bar.value(), timeout=5000)
    bar.setValue(3)  # somebody reads what was before
    lab.engine.tell(events.DeviceChanged(change("power limit", at_s=101.0)))
    assert bar.value() == 3


def test_where_everything_is_forbidden_nothing_is_offered(
    panel_of: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "1")
    lab, panel = panel_of(Board())
    assert panel.state.text() == "WATTRIDGE_READ_ONLY=1 forbids every setting."
    assert not panel.restore.isEnabled()
    switch = ControlSwitch(lab.context.boards.current, lab.bridge)
    qtbot.addWidget(switch)
    assert "WATTRIDGE_READ_ONLY=1 forbids" in switch.explanation.text()
    assert not switch.button.isEnabled()


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> list[Asking]:
    """The helper is missing until it is installed; how the user was asked for that."""
    asked: list[Asking] = []
    monkeypatch.setattr(installing, "why_install", lambda: "" if asked else "A helper is needed.")

    def install(asking: Asking, _cancel: threading.Event) -> dict[str, list[str]]:
        asked.append(asking)
        return {"done": ["/usr/lib/wattridge: 15 files"], "notes": []}

    monkeypatch.setattr(installing, "install", install)
    return asked


def test_a_missing_helper_is_offered_and_installed_at_a_click(
    not_installed: list[Asking], panel_of: Any, qtbot: QtBot
) -> None:
    _, panel = panel_of(Board())
    qtbot.waitUntil(panel.helper.button.isVisible, timeout=5000)
    assert panel.helper.text.text() == "A helper is needed."
    assert not_installed == []  # nobody is asked for a password unasked
    panel.helper.button.click()
    qtbot.waitUntil(lambda: "is installed" in panel.helper.text.text(), timeout=5000)
    assert not_installed == [Asking.WINDOW]
    assert not panel.helper.button.isVisible()


@pytest.mark.usefixtures("not_installed")
def test_an_installation_that_is_refused_is_reported_and_offered_again(
    panel_of: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_asking: Asking, _cancel: threading.Event) -> dict[str, list[str]]:
        raise WattridgeError("/usr/lib is a symbolic link", "helper install", "see to that")

    monkeypatch.setattr(installing, "install", refuse)
    lab, panel = panel_of(Board())
    qtbot.waitUntil(panel.helper.button.isVisible, timeout=5000)
    with qtbot.waitSignal(lab.bridge.signal(events.EngineFault), timeout=5000) as fault:
        panel.helper.button.click()
    assert "/usr/lib is a symbolic link" in fault.args[0].what
    qtbot.waitUntil(lambda: panel.helper.text.text() == "A helper is needed.", timeout=5000)
    assert panel.helper.button.isEnabled()


@pytest.mark.usefixtures("not_installed")
def test_a_simulated_board_needs_no_helper(panel_of: Any, qtbot: QtBot) -> None:
    _, panel = panel_of(Board("simulated"))
    qtbot.wait(200)
    assert not panel.helper.isVisible()


def test_what_root_s_policy_forbids_is_said_and_putting_back_stays_possible(
    panel_of: Any, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "require", lambda uuid, settings: "/etc/wattridge/policy.conf makes it read-only")
    lab, panel = panel_of(Board())
    assert panel.state.text() == "/etc/wattridge/policy.conf makes it read-only."
    assert panel.restore.isEnabled()
    switch = ControlSwitch(lab.context.boards.current, lab.bridge)
    qtbot.addWidget(switch)
    assert "/etc/wattridge/policy.conf makes it read-only." in switch.explanation.text()
    assert not switch.button.isEnabled()


def test_the_switch_shows_what_the_engine_says_never_what_was_wished(qtbot: QtBot) -> None:
    lab = Lab(Board())
    switch = ControlSwitch(lab.context.boards.current, lab.bridge)
    qtbot.addWidget(switch)
    assert (switch.allowed, switch.text()) == (False, "Read-only")
    assert "password" in switch.explanation.text()
    switch.switch()
    assert lab.engine.commands == [events.Allow("GPU-1")]
    assert not switch.allowed
    assert not switch.button.isEnabled()
    lab.engine.tell(events.ControlChanged("GPU-1", False, None))
    assert switch.button.isEnabled()
    switch.switch()
    lab.engine.tell(events.ControlChanged("GPU-1", True, 4711))
    assert (switch.allowed, switch.text()) == (True, "Control on")
    assert "4711" in switch.explanation.text()
    switch.switch()
    assert lab.engine.commands[-1] == events.Forbid("GPU-1")


def test_the_bar_counts_down_and_asks(qtbot: QtBot) -> None:
    lab = Lab(Board())
    bar = ConfirmBar(lab.boards)
    qtbot.addWidget(bar)
    line = bar.lines["GPU-1"]
    assert bar.isHidden()
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, "graphics clock 1200 MHz", {}, 9.7))
    assert not bar.isHidden()
    assert line.text.text() == "Test GPU · Graphics clock 1200 MHz. It returns in 10 s unless you keep it."
    line.keep.click()
    line.back.click()
    assert lab.engine.commands == [events.Confirm("GPU-1")]
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, "confirmed", {}, None))
    assert bar.isHidden()
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, False, "not obeyed: the clock runs at 900 MHz", {}, 9.7))
    assert "Not obeyed: the clock runs at 900 MHz" in line.text.text()
    line.back.click()
    assert lab.engine.commands[-1] == events.Confirm("GPU-1", keep=False)
    lab.engine.tell(events.EngineFault("the helper has ended"))  # the answer came too late: nothing waits any more
    assert bar.isHidden()


def test_the_bar_stays_away_while_the_countdown_is_in_sight_elsewhere(qtbot: QtBot) -> None:
    lab, elsewhere = Lab(Board()), [True]
    bar = ConfirmBar(lab.boards, lambda _: elsewhere[0])
    qtbot.addWidget(bar)
    lab.engine.tell(events.SettingApplied("GPU-1", {}, {}, True, "graphics clock 1200 MHz", {}, 60.0))
    assert bar.isHidden()
    elsewhere[0] = False
    qtbot.waitUntil(lambda: not bar.isHidden(), timeout=5000)


def test_what_is_left_over_is_put_back_in_one_click(qtbot: QtBot) -> None:
    line, done = QStatusBar(), []
    notices = Notices(lambda: True, line)
    banner = Banner(notices, line, QWidget())
    qtbot.addWidget(line)
    notices.warn("This board was left set.", "Put back", lambda: done.append(1))
    assert not banner.offered.isHidden()
    notices.fail("Something else", "do that")
    assert banner.offered.isHidden()
    notices.dismiss()
    assert not banner.offered.isHidden()
    banner.offered.click()
    assert done == [1]
    assert banner.text == ""


def test_a_simulated_board_in_the_window_is_armed_set_and_put_back(qtbot: QtBot, open_program: Any) -> None:
    window = ready(qtbot, open_program())
    panel, gpu = window.panels["control"], window.board.gpu
    qtbot.waitUntil(lambda: panel.rows is not None, timeout=20_000)
    window.workspaces.bring("control")
    panel.rows.limit.setValue(200)
    assert not panel.apply.isEnabled()
    panel.switch.click()
    qtbot.waitUntil(panel.apply.isEnabled, timeout=20_000)
    assert window.control_switch.text() == "Control on"
    panel.apply.click()
    qtbot.waitUntil(panel.keep.isEnabled, timeout=20_000)
    assert gpu.info.power_limit.current_w == 200
    assert window.confirm_bar.isHidden(), "the panel counts itself"
    panel.back.click()
    qtbot.waitUntil(lambda: gpu.info.power_limit.current_w == 250, timeout=20_000)
    qtbot.waitUntil(lambda: panel.log.by_hand.rowCount() == 2, timeout=20_000)
    assert panel.log.by_hand.rows()[0][1:4] == ("power limit", "200 W", "200 W")
    assert not log_file().exists(), "nothing real was changed"
