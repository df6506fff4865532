"""Cyclic garbage goes on Qt's thread between two turns of its loop, never in the middle of a call."""

from __future__ import annotations

import gc
import threading
import weakref

from pytestqt.qtbot import QtBot

from app.views.threads.collector import Collector


class Knot:
    def __init__(self) -> None:
        self.myself = self


def test_garbage_stays_until_the_loop_turns_and_is_collected_on_qts_thread(qtbot: QtBot) -> None:
    gc.enable()
    collector = Collector()
    assert not gc.isenabled()
    where: list[threading.Thread] = []
    seen = weakref.finalize(Knot(), lambda: where.append(threading.current_thread()))
    kept = [[] for _ in range(20_000)]  # far more than the collector of itself would leave alone
    assert seen.alive
    qtbot.waitUntil(lambda: not seen.alive, timeout=10_000)
    assert where == [threading.main_thread()]
    assert len(kept) == 20_000
    collector.stop()
    assert gc.isenabled()
    gc.disable()
