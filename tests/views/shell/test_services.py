"""What the panels of a window share is made once."""

from __future__ import annotations

import threading
import time

import pytest
from pytestqt.qtbot import QtBot

from app.engine.store import database
from app.sensors.select import open_gpu
from app.views.shell.services import Services


def test_threads_that_ask_for_the_store_at_once_are_given_the_same_one(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[database.Store] = []

    class Slow(database.Store):
        def __init__(self) -> None:
            opened.append(self)
            time.sleep(0.2)  # long enough for another thread to ask
            super().__init__()

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
