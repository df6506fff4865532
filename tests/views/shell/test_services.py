"""What the panels of a window share is made once."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from fixtures.engine_fakes import FakeRunner, grid, plan
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.engine.store import database
from app.sensors.select import open_gpu
from app.views.shared.settings import Settings
from app.views.shell.notices import Notices
from app.views.shell.services import Services
from app.views.shell.settings_window import SettingsWindow
from app.views.shell.side_windows import SideWindows


def test_threads_that_ask_for_the_store_at_once_are_given_the_same_one(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[database.Store] = []

    class Slow(database.Store):
        def __init__(self, **options: Any) -> None:
            opened.append(self)
            time.sleep(0.2)  # long enough for another thread to ask
            super().__init__(**options)

    monkeypatch.setattr(database, "Store", Slow)
    services = Services(open_gpu("simulated:a100"))
    given: list[object] = []
    threads = [threading.Thread(target=lambda: given.append(services.store)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    services.close()
    assert len(opened) == 1
    assert given == [opened[0], opened[0]]


def test_the_settings_say_how_many_samples_the_next_session_keeps(qtbot: QtBot) -> None:
    def begun(services: Services) -> int | None:
        space = grid()
        return services.store.session(services.store.create_session(plan(space, FakeRunner(space)))).evidence_byte

    services, window = Services(open_gpu("simulated:a100")), QWidget()
    qtbot.addWidget(window)
    assert begun(services) == 64 << 20
    beside = SideWindows(window, services, Settings(), Notices(lambda: True, window))
    beside.show_settings()
    settings = beside.by_name["settings"]
    assert isinstance(settings, SettingsWindow)
    settings.samples.setValue(0)
    assert settings.samples.text() == "none"
    assert begun(services) == 0
    services.close()
    later = Services(open_gpu("simulated:a100"))
    assert begun(later) == 0, "it is remembered"
    later.close()
