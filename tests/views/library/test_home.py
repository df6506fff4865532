"""Home as the user meets it: what can be done first, what was done last, and what a press of each leads to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import OBJECTIVE, Lab, grid_space, measured, plan_for, ready
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.base.paths import resources
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
from app.views.library.home_panel import (
    SESSIONS_SHOWN,
    Example,
    Facts,
    HomePanel,
    example_on,
    example_words,
    watch_words,
)
from app.views.shared.settings import Settings
from app.views.shell.window import EXAMPLE

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


def test_at_the_very_first_start_there_are_three_cards_and_nothing_else(open_home: Callable[[], HomePanel]) -> None:
    home = open_home()
    assert home.watch.isVisible()
    assert home.example.isVisible()
    assert home.file.isVisible()
    assert not home.last.isVisible()
    assert not home.recent.isVisible()
    assert home.files == []
    assert "simulated" in home.watch.sentence.text()
    assert "about 6 min" in home.example.sentence.text(), "at real time"


def test_the_example_s_time_is_that_at_the_speed_at_which_it_will_run(qtbot: QtBot, open_program: OpenProgram) -> None:
    """Started at once it runs ten times as fast as real time, unless another speed was chosen, here or with --speed."""
    window = ready(qtbot, open_program())
    window.workspaces.show_workspace("home")
    home = window.panels["home"]
    qtbot.waitUntil(lambda: home.isVisible() and not home.busy, timeout=20_000)
    assert window.board.gpu.clock.speed == 1.0
    assert "about 36 s" in home.example.sentence.text()
    for speed, said in ((1.0, "about 6 min"), (60.0, "some seconds"), (10.0, "about 36 s")):
        window.boards.set_speed(speed)
        assert said in home.example.sentence.text()
    window.boards.speed_up_example()
    assert window.board.gpu.clock.speed == 10.0


@pytest.mark.parametrize("name", twin_names())
def test_the_example_takes_what_is_promised_within_a_half(name: str) -> None:
    """On the board's own clock; the speed divides it. Twice what is promised at most, on boards of 100 s to 20 min."""
    gpu = SimulatedGpu(load_twin(name), clock=VirtualClock())
    plan = plan_specification(load_specification(resources() / "examples" / EXAMPLE), gpu)
    began_ns = gpu.clock.now_ns()
    with Store() as store:
        result = run_session(plan, store, lambda _event: None, threading.Event())
    taken_s = (gpu.clock.now_ns() - began_ns) / 1e9
    assert result.progress.evaluated == 250, "as the card says"
    promised = example_words(gpu.info, 1.0, Example(None)).rpartition("about ")[2].removesuffix(".")
    units = {"s": 1.0, "min": 60.0}
    parts = promised.split()
    promised_s = sum(float(number) * units[unit] for number, unit in zip(parts[::2], parts[1::2], strict=True))
    assert promised_s / 1.5 < taken_s < promised_s * 1.5


def test_each_card_is_pressed_by_mouse_by_space_and_by_its_mnemonic(
    qtbot: QtBot, open_home: Callable[[], HomePanel]
) -> None:
    home = open_home()
    for card, asked, key in (
        (home.watch, home.watch_asked, Qt.Key.Key_W),
        (home.example, home.example_asked, Qt.Key.Key_U),
        (home.file, home.file_asked, Qt.Key.Key_P),
    ):
        assert card.accessibleName()
        assert card.accessibleDescription() == card.sentence.text() != ""
        assert card.height() >= 60
        with qtbot.waitSignal(asked):
            qtbot.mouseClick(home.childAt(card.mapTo(home, card.rect().center())), Qt.MouseButton.LeftButton)
        card.setFocus()
        with qtbot.waitSignal(asked):
            qtbot.keyClick(card, Qt.Key.Key_Space)
        with qtbot.waitSignal(asked):
            QTest.keyClick(home, key, Qt.KeyboardModifier.AltModifier)


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


def test_what_runs_keeps_the_example_from_being_started(qtbot: QtBot, store: Store) -> None:
    lab = Lab(FakeGpu(working), store)
    home = HomePanel(lab.context)
    qtbot.addWidget(home)
    assert home.example.isEnabled()
    from app.engine.space.result_table import ResultTable

    lab.session(ResultTable(SPACE), plan_for(SPACE, OBJECTIVE))
    qtbot.waitUntil(lambda: not home.example.isEnabled(), timeout=5_000)
    assert "gemm" in home.example.toolTip()
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
]


@pytest.mark.parametrize(
    ("source", "name", "selector"),
    [
        ("simulated", "A100", None),
        ("recorded", "NVIDIA H200", "simulated:h200"),
        ("recorded", "Unknown", "simulated:a100"),
    ],
)
def test_the_example_runs_where_it_can(source: Source, name: str, selector: str | None) -> None:
    gpu = FakeGpu(working, source=source, name=name)
    example = example_on(gpu, TWINS)
    assert example.selector == selector
    said = example_words(gpu.info, 10.0, example)
    assert ("about 36 s" if selector is None else f"simulated {selector.partition(':')[2].upper()}") in said


def test_a_real_board_runs_the_example_only_where_kernels_can_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.base.errors import WattridgeError
    from app.engine.runner.cuda import language as cuda

    gpu = FakeGpu(working, source="nvml", name="NVIDIA H200")

    def missing(_gpu: object) -> None:
        raise WattridgeError("PyCUDA is not installed", "here", "install it")

    monkeypatch.setattr(cuda, "require_cuda", missing)
    example = example_on(gpu, TWINS)
    assert example.selector == "simulated:h200"
    assert "PyCUDA is not installed" in example_words(gpu.info, 1.0, example)
    monkeypatch.setattr(cuda, "require_cuda", lambda _gpu: None)
    example = example_on(gpu, TWINS)
    assert example.selector is None
    assert "on NVIDIA H200 itself" in example_words(gpu.info, 1.0, example)


def test_watching_names_the_board_that_is_there() -> None:
    real, simulated = FakeGpu(working, source="nvml", name="NVIDIA H200"), FakeGpu(working)
    assert "NVIDIA H200 and 3 more" in watch_words(real.info, ["NVIDIA H200"] * 4)
    assert "No NVIDIA GPU" in watch_words(simulated.info, [])
    assert "NVIDIA H200 is there" in watch_words(simulated.info, ["NVIDIA H200"])
    assert Facts([], [], [], example_on(simulated, TWINS)).example.why == ""


def test_from_home_the_example_is_measured_in_the_window(qtbot: QtBot, open_program: OpenProgram) -> None:
    window = ready(qtbot, open_program(speed=100.0))
    home = window.panels["home"]
    qtbot.waitUntil(lambda: home.example.isVisible() or not home.busy, timeout=20_000)
    home.example.click()
    qtbot.waitUntil(lambda: window.result.table is not None and len(window.result.table) > 0, timeout=60_000)
    assert window.result.plan is not None
    assert window.result.plan.title == "sgemm"
    qtbot.waitUntil(lambda: home.last.session == window.result.session, timeout=20_000)


def test_from_a_recording_the_example_goes_to_its_simulated_board(qtbot: QtBot, open_program: OpenProgram) -> None:
    window = ready(qtbot, open_program(FakeGpu(working, source="recorded"), speed=100.0))
    home = window.panels["home"]
    qtbot.waitUntil(lambda: "recording runs no kernels" in home.example.sentence.text(), timeout=20_000)
    home.example.click()
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
