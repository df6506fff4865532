"""Events of the engine's thread arrive as signals in Qt's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from PySide6.QtCore import QEventLoop, QObject, QTimer, Slot
from PySide6.QtWidgets import QStatusBar, QWidget
from pytestqt.qtbot import QtBot

from app.base.errors import InputError
from app.engine.results.state import Progress, SessionState
from app.engine.runner.pool.pool import PoolStatus
from app.engine.session import events
from app.views.shared.bridge import EngineBridge
from app.views.shared.current_result import CurrentResult
from app.views.shell.banner import Banner

OnEvent = Callable[[events.Event], None]


class Engine:
    """Answers each command with an event, from a thread of its own, as the tuner does."""

    def __init__(
        self, on_event: Callable[[events.Event], None], answer: Callable[[events.Command], events.Event]
    ) -> None:
        self._on_event = on_event
        self._answer = answer
        self._threads: list[threading.Thread] = []
        self.stopped = False

    def start(self) -> None: ...

    def submit(self, command: events.Command) -> None:
        thread = threading.Thread(target=lambda: self._on_event(self._answer(command)))
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self.stopped = True

    def join(self, timeout: float | None = None) -> None:
        for thread in self._threads:
            thread.join(timeout)


class Listener(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, int]] = []

    @Slot(object)
    def hear(self, event: events.Event) -> None:
        self.heard.append((type(event).__name__, threading.get_ident()))


FIT_STEP = events.FitProgress(3, 10)


def test_an_event_arrives_in_qts_thread_by_the_signal_of_its_kind(qtbot: QtBot) -> None:
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: FIT_STEP))
    listener = Listener()
    bridge.subscribe(events.FitProgress | events.EngineFault, listener.hear)
    bridge.submit(events.Fit())
    qtbot.waitUntil(lambda: bool(listener.heard), timeout=3000)
    assert listener.heard == [("FitProgress", threading.get_ident())]
    bridge.close()


def test_the_engine_is_made_at_the_first_command_and_stopped_once(qtbot: QtBot) -> None:
    made: list[Engine] = []

    def make(on_event: OnEvent) -> Engine:
        made.append(Engine(on_event, lambda _: FIT_STEP))
        return made[-1]

    bridge = EngineBridge(make)
    assert made == []
    for _ in range(3):
        bridge.submit(events.Pause())
    assert len(made) == 1
    bridge.close()
    bridge.close()
    assert made[0].stopped
    bridge.submit(events.Pause())
    assert len(made) == 1, "nothing happens after the end"


def test_nothing_arrives_after_the_end(qtbot: QtBot) -> None:
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: FIT_STEP))
    listener = Listener()
    bridge.subscribe(events.FitProgress, listener.hear)
    bridge.submit(events.Fit())
    bridge.close()
    qtbot.wait(50)
    assert listener.heard == []


def test_an_engine_that_cannot_be_started_is_a_message_not_a_crash(qtbot: QtBot) -> None:
    def refuse(_: OnEvent) -> Engine:
        raise InputError("cannot be written", "/data", "choose another with WATTRIDGE_DATA")

    bridge = EngineBridge(refuse)
    line = QStatusBar()
    qtbot.addWidget(line)
    banner = Banner(line, QWidget())
    bridge.subscribe(events.EngineFault, banner.show_fault)
    bridge.submit(events.Stop())
    qtbot.waitUntil(lambda: banner.text != "", timeout=3000)
    assert banner.text == "/data: cannot be written · choose another with WATTRIDGE_DATA"


def test_events_go_to_those_who_subscribed_to_their_kind() -> None:
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: FIT_STEP))
    faults, several = [], []
    bridge.subscribe(events.EngineFault, faults.append)
    bridge.subscribe(events.EngineFault | events.FitProgress, several.append)
    for event in (FIT_STEP, events.EngineFault("lost"), events.BoardReleased("GPU-1")):
        bridge.deliver(event)
    assert faults == [events.EngineFault("lost")]
    assert several == [FIT_STEP, events.EngineFault("lost")]


def test_the_banner_keeps_messages_until_they_are_dismissed(qtbot: QtBot) -> None:
    line = QStatusBar()
    qtbot.addWidget(line)
    banner = Banner(line, QWidget())
    banner.show_message("the GPU is lost", "check dmesg")
    banner.show_message("the disk is full", "free some space")
    banner.show_message("the GPU is lost", "check dmesg")
    assert banner.text == "the GPU is lost · check dmesg  (+1 more)"
    banner.dismiss()
    assert banner.text == "the disk is full · free some space"
    banner.dismiss()
    assert banner.text == ""
    assert banner.isHidden()


@pytest.mark.parametrize("index", [-1, 0, 7])
def test_nothing_can_be_selected_without_a_session(qtbot: QtBot, index: int) -> None:
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: FIT_STEP))
    result = CurrentResult(bridge)
    result.select(index)
    assert result.index == -1


def added(length: int) -> events.MeasurementsAdded:
    progress = Progress(1, SessionState.RUNNING, length, 0, 1000, 1.0, 1.0, None, None, None)
    return events.MeasurementsAdded(1, length, progress)


def test_a_replay_waits_until_the_window_has_shown_what_came(qtbot: QtBot) -> None:
    handed_over = threading.Event()
    heard: list[int] = []
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: added(0)))
    bridge.subscribe(events.MeasurementsAdded, lambda event: heard.append(event.length))

    def engine(lengths: tuple[int, ...]) -> threading.Thread:
        def run() -> None:
            for length in lengths:
                bridge.send(added(length))
            handed_over.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    thread = engine((1, 2, 3))
    assert handed_over.wait(5.0), "a board's measurements come one by one, and are handed over at once"
    thread.join()
    qtbot.waitUntil(lambda: heard == [3], timeout=5_000)  # the newest says it all
    handed_over.clear()
    begun = time.monotonic()
    thread = engine((1003, 2003))
    assert not handed_over.wait(0.03), "Qt's thread has shown nothing yet"
    qtbot.waitUntil(lambda: heard[-1] == 2003, timeout=5_000)  # on a busy host the engine has waited long enough
    qtbot.waitUntil(handed_over.is_set, timeout=5_000)
    assert time.monotonic() - begun >= 2 * 0.015, "each time until it was painted"
    thread.join()
    bridge.close()


def test_a_window_that_is_held_up_does_not_hold_up_the_engine(qtbot: QtBot) -> None:
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: added(0)))
    thread = threading.Thread(target=lambda: bridge.send(added(1000)))
    begun = time.monotonic()
    thread.start()
    thread.join(10.0)  # Qt's thread delivers nothing meanwhile
    waited = time.monotonic() - begun
    assert not thread.is_alive()
    assert waited >= 0.09, "it did wait"
    bridge.close()


def test_what_the_engine_sends_meanwhile_comes_in_later_turns(qtbot: QtBot) -> None:
    """Else nobody would be answered for as long as the engine is faster than the window."""
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: added(0)))
    heard: list[str] = []

    @Slot(object)
    def hear(event: events.FitProgress) -> None:
        heard.append(f"step {event.done}")
        if event.done < 3:
            bridge.send(events.FitProgress(event.done + 1, 3))
            QTimer.singleShot(0, lambda: heard.append("the user"))

    bridge.subscribe(events.FitProgress, hear)
    bridge.send(events.FitProgress(1, 3))
    qtbot.waitUntil(lambda: len(heard) == 5, timeout=5_000)
    assert heard == ["step 1", "the user", "step 2", "the user", "step 3"]
    bridge.close()


def test_what_measurements_add_up_to_never_overtakes_another_event(qtbot: QtBot) -> None:
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: added(0)))
    heard: list[object] = []
    bridge.subscribe(events.MeasurementsAdded, lambda event: heard.append(event.length))
    bridge.subscribe(events.FitProgress, lambda event: heard.append("fit"))
    bridge.subscribe(events.PoolReported, lambda event: heard.append(event.remark or "status"))
    status, said = events.PoolReported(PoolStatus()), events.PoolReported(PoolStatus(), "a board left")
    for event in (added(1), added(2), FIT_STEP, added(3), FIT_STEP, FIT_STEP, added(4), status, added(5), status):
        bridge.send(event)
    for event in (said, added(6), status, said, added(7)):
        bridge.send(event)
    qtbot.waitUntil(lambda: heard[-1:] == [7], timeout=5_000)
    assert heard == [2, "fit", 3, "fit", "fit", 5, "status", "a board left", 6, "status", "a board left", 7]
    bridge.close()


def test_the_next_event_arrives_while_a_slot_of_the_last_stays_in_a_dialog(qtbot: QtBot) -> None:
    bridge = EngineBridge(lambda on_event: Engine(on_event, lambda _: added(0)))
    heard: list[str] = []
    dialog = QEventLoop()

    @Slot(object)
    def ask(_: object) -> None:
        dialog.exec()
        heard.append("answered")

    bridge.subscribe(events.EngineFault, ask)
    bridge.subscribe(events.FitProgress, lambda _event: (heard.append("fit"), dialog.quit()))
    bridge.report("a question")
    bridge.send(FIT_STEP)
    qtbot.waitUntil(lambda: "answered" in heard, timeout=5_000)
    assert heard == ["fit", "answered"]
    bridge.close()
