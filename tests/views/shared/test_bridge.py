"""Events of the engine's thread arrive as signals in Qt's."""

from __future__ import annotations

import threading
from collections.abc import Callable

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QStatusBar, QWidget
from pytestqt.qtbot import QtBot

from app.base.errors import InputError
from app.engine.session import events
from app.views.shared.bridge import EngineBridge
from app.views.shell.banner import Banner
from app.views.shell.notices import Notices

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
    notices = Notices(lambda: True, line)
    banner = Banner(notices, line, QWidget())
    notices.follow(bridge)
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
