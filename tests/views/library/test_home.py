"""Home as the user meets it: what can be done first, what was done last, and what a press of each leads to."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, Lab, grid_space, measured, plan_for, ready
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import example_profile, resources
from app.engine.results.state import Progress, SessionState
from app.engine.session.events import Open, SessionChanged
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.store.database import Store
from app.engine.store.record import Label
from app.sensors.clock import VirtualClock
from app.sensors.gpu import Source
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin, twin_names
from app.views.library.aims import AIMS, Aim, expected_s, places_of
from app.views.library.home_panel import SESSIONS_SHOWN, HomePanel, watch_words
from app.views.shared.settings import Settings
from app.views.shell.window import MainWindow

OpenProgram = Callable[..., Any]
SPACE = grid_space(4, 4)
BOARD = "Fake A100"


def keep(store: Store, title: str, state: SessionState = SessionState.DONE, rows: int = 12, **facts: Any) -> int:
    session = store.create_session(plan_for(SPACE, OBJECTIVE, title=title, **{"gpu": BOARD, **facts}))
    store.append(session, [measured(SPACE, row) for row in range(rows)], elapsed_s=3.0)
    store.finish(session, state)
    return session


@pytest.fixture
def open_home(qtbot: QtBot, store: Store) -> Iterator[Callable[[], HomePanel]]:
    made: list[HomePanel] = []

    def open_it() -> HomePanel:
        panel = HomePanel(Lab(FakeGpu(working), store).context)
        qtbot.addWidget(panel)
        panel.resize(1100, 800)
        panel.show()
        made.append(panel)
        settled(qtbot, panel)
        return panel

    yield open_it
    for panel in made:
        panel.shutdown()


def settled(qtbot: QtBot, panel: HomePanel) -> None:
    qtbot.waitUntil(lambda: not panel.busy, timeout=20_000)


def time_said(sentence: str) -> float:
    """Seconds in 'about 1 min 10 s'."""
    units = {"s": 1.0, "min": 60.0}
    parts = sentence.rpartition("about ")[2].removesuffix(".").split()
    return sum(float(number) * units[unit] for number, unit in zip(parts[::2], parts[1::2], strict=True))


def test_at_the_very_first_start_there_are_the_aims_and_no_past(open_home: Callable[[], HomePanel]) -> None:
    home = open_home()
    assert [card.accessibleName() for card in home.aims.values()] == [
        "A kernel",
        "An operator",
        "A program",
        "A served model",
        "A board",
    ]
    assert all(card.isVisible() for card in home.aims.values())
    assert not home.last.isVisible()
    assert not home.recent.isVisible()
    assert home.files == []


TRIED = [(aim, name) for aim in AIMS for name in twin_names() if aim.example and aim.twin in ("", name)]


@pytest.mark.parametrize(("aim", "name"), TRIED, ids=lambda value: getattr(value, "example", value))
def test_a_try_takes_what_is_promised_within_a_third_on_the_board_s_own_clock(aim: Aim, name: str) -> None:
    """The speed divides it."""
    gpu = SimulatedGpu(load_twin(name), clock=VirtualClock())
    promised_s = expected_s(aim, gpu.info.name)
    plan = plan_specification(load_specification(aim.path), gpu)
    began_ns = gpu.clock.now_ns()
    with Store() as store:
        result = run_session(plan, store, lambda _event: None, threading.Event())
    taken_s = (gpu.clock.now_ns() - began_ns) / 1e9
    assert result.state is SessionState.DONE
    assert promised_s / (4 / 3) < taken_s < promised_s * 4 / 3


def test_no_promise_is_made_for_a_profile_nor_for_a_board_that_nobody_timed() -> None:
    assert [aim.example for aim in AIMS if math.isnan(expected_s(aim, "NVIDIA GeForce RTX 5090"))] == [""]
    assert all(math.isnan(expected_s(aim, "another one")) for aim in AIMS)


def test_a_promise_is_that_of_the_speed_at_which_the_board_will_run(qtbot: QtBot, open_program: OpenProgram) -> None:
    """Started at once it runs ten times as fast as real time, unless another speed was chosen."""
    window = ready(qtbot, open_program())
    home = window.panels["home"]
    model, program = home.aims["quick/served_model.toml"], home.aims[""]
    qtbot.waitUntil(lambda: "about" in model.sentence.text(), timeout=60_000)
    window.boards.set_speed(1.0)
    own_s = time_said(model.sentence.text())
    window.boards.set_speed(10.0)
    assert time_said(model.sentence.text()) == pytest.approx(own_s / 10.0, abs=0.6)
    window.boards.set_speed(200.0)
    assert "some seconds" in model.sentence.text(), "it is this computer's work that counts"
    assert "about" not in program.sentence.text()


def test_each_aim_is_pressed_by_mouse_by_space_and_by_its_mnemonic(
    qtbot: QtBot, open_home: Callable[[], HomePanel], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = open_home()
    tried: list[Aim] = []
    monkeypatch.setattr(home, "try_it", tried.append)
    for card in home.aims.values():
        key = getattr(Qt.Key, f"Key_{card.aim.text.partition('&')[2][0].upper()}")
        assert card.accessibleDescription() == card.sentence.text() != ""
        centre = card.title.mapTo(home, card.title.rect().center())
        qtbot.mouseClick(home.childAt(centre), Qt.MouseButton.LeftButton)
        card.setFocus()
        qtbot.keyClick(card, Qt.Key.Key_Space)
        QTest.keyClick(home, key, Qt.KeyboardModifier.AltModifier)
        qtbot.waitUntil(lambda card=card: tried == [card.aim] * 3, timeout=5_000)  # Qt shows the button pressed
        tried.clear()
        with qtbot.waitSignal(home.action_asked) as asked:
            qtbot.mouseClick(card.own, Qt.MouseButton.LeftButton)
        assert asked.args == [card.aim.action]
        assert not tried, "the button for one's own tries nothing"


def test_the_last_session_comes_first_and_the_others_follow_newest_first(
    qtbot: QtBot, store: Store, open_home: Callable[[], HomePanel]
) -> None:
    sessions = [keep(store, title, source="simulated") for title in ("first", "second", "third")]
    home = open_home()
    assert home.last.session == sessions[-1]
    assert [card.session for card in home.recent.cards] == sessions[-2::-1]
    card = home.recent.cards[0]
    qtbot.waitUntil(lambda: bool(card.front.small), timeout=5_000)
    assert card.name.text() == "second"
    assert "GFLOPS/W" in card.best.text()
    assert card.board.text() == BOARD
    assert card.source.text() == "simulated"
    for words in ("second", BOARD, "simulated", "GFLOPS/W"):
        assert words in card.accessibleName()
    with qtbot.waitSignal(home.session_asked) as asked:
        qtbot.mouseClick(card, Qt.MouseButton.LeftButton)
    assert asked.args == [sessions[-2]]
    with qtbot.waitSignal(home.session_asked) as asked:
        home.last.open.click()
    assert asked.args == [sessions[-1]]
    assert not home.last.resume.isVisible(), "it ended as it should"


def test_an_interrupted_session_is_resumed_on_its_own_board_only(
    qtbot: QtBot, store: Store, open_home: Callable[[], HomePanel]
) -> None:
    here = keep(store, "here", SessionState.INTERRUPTED)
    home = open_home()
    assert home.last.resume.isEnabled()
    assert home.last.state.text() == f"Interrupted: 12 of {SPACE.size} configurations measured"
    with qtbot.waitSignal(home.resume_asked) as asked:
        home.last.resume.click()
    assert asked.args == [here]
    keep(store, "elsewhere", SessionState.INTERRUPTED, gpu="Another")
    home.refresh()
    settled(qtbot, home)
    assert not home.last.resume.isEnabled()
    assert "Another" in home.last.resume.toolTip()


def test_the_list_follows_the_store(qtbot: QtBot, store: Store) -> None:
    first, second = keep(store, "first"), keep(store, "second")
    lab = Lab(FakeGpu(working), store)
    home = HomePanel(lab.context)
    qtbot.addWidget(home)
    home.show()
    settled(qtbot, home)
    third = keep(store, "third")
    lab.engine.tell(
        SessionChanged(Progress(third, SessionState.DONE, 12, 0, SPACE.size, 3.0, 4.0, None, None, None), "")
    )
    qtbot.waitUntil(lambda: home.last.session == third, timeout=5_000)
    store.delete(third)
    store.label(first, Label(name="renamed"))
    home.refresh_soon()
    qtbot.waitUntil(lambda: home.last.session == second, timeout=5_000)
    assert [card.name.text() for card in home.recent.cards] == ["renamed"]
    home.shutdown()


def test_of_a_long_history_only_the_newest_are_listed(store: Store, open_home: Callable[[], HomePanel]) -> None:
    sessions = [keep(store, f"run {place}", rows=1) for place in range(2 * SESSIONS_SHOWN)]
    home = open_home()
    assert home.last.session == sessions[-1]
    assert [card.session for card in home.recent.cards] == sessions[-2 : -SESSIONS_SHOWN - 1 : -1]


def test_what_runs_keeps_a_try_from_being_started(qtbot: QtBot, store: Store) -> None:
    lab = Lab(FakeGpu(working), store)
    home = HomePanel(lab.context)
    qtbot.addWidget(home)
    assert all(card.isEnabled() for card in home.aims.values())
    from app.engine.space.result_table import ResultTable

    lab.session(ResultTable(SPACE), plan_for(SPACE, OBJECTIVE))
    qtbot.waitUntil(lambda: not any(card.isEnabled() for card in home.aims.values()), timeout=5_000)
    assert "gemm" in home.aims["gemm.toml"].toolTip()
    assert all(card.own.isEnabled() for card in home.aims.values()), "what is one's own can be begun meanwhile"
    home.shutdown()


def test_files_opened_last_are_one_press_away(qtbot: QtBot, open_home: Callable[[], HomePanel]) -> None:
    path = resources() / "examples" / "copy.toml"
    Settings().add_recent(path)
    home = open_home()
    assert [button.text() for button in home.files] == ["copy.toml"]
    with qtbot.waitSignal(home.recent_file_asked) as asked:
        home.files[0].click()
    assert asked.args == [path]


TWINS = [
    ("GPU-1", "0: NVIDIA H200"),
    ("simulated:h200", "NVIDIA H200 (simulated)"),
    ("simulated:a100", "A100 (simulated)"),
    ("simulated:rtx5090", "RTX 5090 (simulated)"),
]


@pytest.mark.parametrize(
    ("source", "name", "selector"),
    [
        ("simulated", "A100", "its own"),
        ("nvml", "NVIDIA H200", "simulated:h200"),
        ("recorded", "NVIDIA H200", "simulated:h200"),
        ("recorded", "Unknown", "simulated:a100"),
    ],
)
def test_a_try_runs_on_a_simulated_board(source: Source, name: str, selector: str) -> None:
    gpu = FakeGpu(working, source=source, name=name)
    places = places_of(gpu, TWINS)
    assert places["gemm.toml"][0] == (gpu.info.uuid if selector == "its own" else selector)
    assert places["quick/served_model.toml"] == ("simulated:rtx5090", "RTX 5090"), "which alone models a service"


def test_watching_names_the_board_that_is_there() -> None:
    real, simulated = FakeGpu(working, source="nvml", name="NVIDIA H200"), FakeGpu(working)
    assert "NVIDIA H200 and 3 more" in watch_words(real.info, ["NVIDIA H200"] * 4)
    assert "No NVIDIA GPU" in watch_words(simulated.info, [])
    recorded = FakeGpu(working, source="recorded", name="NVIDIA H200")
    assert watch_words(recorded.info, []) == "Shown now is the recorded NVIDIA H200."
    assert "NVIDIA H200 is there" in watch_words(simulated.info, ["NVIDIA H200"])


def press(qtbot: QtBot, window: MainWindow, pressed: QWidget) -> None:
    """A click as of a mouse: on what lies there, which must be in sight."""
    place = pressed.mapTo(window, QPoint(min(20, pressed.width() // 2), pressed.height() // 2))
    seen = window.childAt(place)
    assert seen is not None
    assert seen is pressed or pressed.isAncestorOf(seen), "nothing covers it"
    qtbot.mouseClick(seen, Qt.MouseButton.LeftButton)


@pytest.mark.parametrize("aim", [aim for aim in AIMS if aim.example], ids=lambda aim: aim.text)
def test_from_home_every_try_is_two_clicks_from_an_export(
    aim: Aim, qtbot: QtBot, open_program: OpenProgram, own_data_folder: Path
) -> None:
    window = ready(qtbot, open_program(speed=200.0))
    window.resize(1366, 768)
    home = window.panels["home"]
    assert window.workspaces.current.spec.name == "home"
    qtbot.waitUntil(lambda: home.aims[aim.example].isVisible(), timeout=20_000)
    clicks = 0
    press(qtbot, window, home.aims[aim.example])
    clicks += 1
    qtbot.waitUntil(lambda: window.result.best is not None and not window.bridge.activity.busy, timeout=120_000)
    assert window.board.gpu.info.source == "simulated"
    export = window.panels["inspector"].answer.export
    qtbot.waitUntil(export.isEnabled, timeout=20_000)
    press(qtbot, window, export)
    clicks += 1
    exports = own_data_folder / "exports"
    qtbot.waitUntil(lambda: any(path.name == "receipt.json" for path in exports.rglob("*")), timeout=60_000)
    assert clicks <= (2 if aim.example == "gemm.toml" else 3)


def test_from_home_one_click_shows_where_the_joules_of_a_recorded_program_went(
    qtbot: QtBot, open_program: OpenProgram
) -> None:
    window = ready(qtbot, open_program())
    home = window.panels["home"]
    qtbot.waitUntil(lambda: home.aims[""].isVisible(), timeout=20_000)
    press(qtbot, window, home.aims[""])
    qtbot.waitUntil(lambda: window.panels["program"].opened is not None, timeout=60_000)
    assert window.workspaces.current.spec.name == "program"
    assert window.panels["program"].opened.path == example_profile()
    assert window.panels["program"].timeline.isVisible()


@pytest.mark.parametrize("aim", AIMS, ids=lambda aim: aim.text)
def test_one_click_leads_to_the_user_s_own(aim: Aim, qtbot: QtBot, open_program: OpenProgram) -> None:
    window = ready(qtbot, open_program(FakeGpu(working)))
    home = window.panels["home"]
    qtbot.waitUntil(lambda: home.isVisible() and not home.busy, timeout=60_000)
    press(qtbot, window, home.aims[aim.example].own)
    if aim.action.startswith("workspace_"):
        assert aim.action == f"workspace_{window.workspaces.current.spec.name}"
        return
    qtbot.waitUntil(lambda: "editor" in window.side_windows.by_name, timeout=20_000)
    editor = window.side_windows.by_name["editor"]
    qtbot.waitUntil(lambda: editor.new_window is not None and editor.new_window.isVisible(), timeout=20_000)
    wizard = editor.new_window
    way = {"new_specification": wizard.kernel}.get(aim.action, wizard.example)
    assert wizard.ways.currentWidget() is way
    if way is wizard.example:
        table = "[operator]" if aim.action == "new_operator" else "[service]"
        assert table in wizard.example.text.toPlainText()
    editor.new_window.close()
    editor.close()


def test_the_program_starts_at_home_wherever_it_was_closed(qtbot: QtBot, open_program: OpenProgram) -> None:
    window = open_program(FakeGpu(working)).window
    window.workspaces.show_workspace("library")
    window.close()
    assert open_program(FakeGpu(working)).window.workspaces.current.spec.name == "home"


def test_from_a_recording_a_try_goes_to_its_simulated_board(qtbot: QtBot, open_program: OpenProgram) -> None:
    window = ready(qtbot, open_program(FakeGpu(working, source="recorded"), speed=100.0))
    home = window.panels["home"]
    qtbot.waitUntil(lambda: home.isVisible() and not home.busy, timeout=60_000)
    home.aims["gemm.toml"].click()
    qtbot.waitUntil(lambda: window.result.plan is not None, timeout=60_000)
    assert window.board.gpu.info.source == "simulated"
    assert window.result.plan is not None
    assert window.result.plan.origin["gpu"] == window.board.uuid


def test_a_file_is_opened_where_its_kind_is_shown(
    qtbot: QtBot, open_program: OpenProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = ready(qtbot, open_program())
    tuned, fitted = window.panels["tune"], window.panels["model"]
    with qtbot.waitSignal(tuned.file_opened, timeout=20_000) as opened:
        window.panels["home"].recent_file_asked.emit(resources() / "examples" / "gemm.toml")
    assert opened.args[0].name == "gemm.toml"
    log = tmp_path / "clocks.csv"
    log.write_text("graphics_clock_mhz,power_w\n" + "".join(f"{c},{60 + c / 10}\n" for c in range(300, 1500, 100)))
    asked: list[Path] = []
    monkeypatch.setattr(fitted.add, "open", asked.append)
    window.panels["home"].recent_file_asked.emit(log)
    qtbot.waitUntil(lambda: asked == [log], timeout=20_000)


def test_a_session_chosen_at_home_is_opened(qtbot: QtBot, open_program: OpenProgram) -> None:
    with Store() as store:
        session = keep(store, "kept")
    window = ready(qtbot, open_program(FakeGpu(working)))
    home = window.panels["home"]
    qtbot.waitUntil(lambda: home.last.session == session, timeout=20_000)
    submitted: list[object] = []
    window.bridge.submit = submitted.append  # type: ignore[method-assign]
    home.last.open.click()
    assert submitted == [Open(session)]
