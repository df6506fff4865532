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
    collector.settle()
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


class Many:
    """Something that a collection would look at."""


def test_a_large_result_is_not_looked_at_and_is_freed_when_it_is_let_go(qtbot: QtBot) -> None:
    collector = Collector()
    collector.settle()
    before = gc.get_freeze_count()
    result = [Many() for _ in range(60_000)]
    last = weakref.ref(result[-1])
    qtbot.waitUntil(lambda: gc.get_freeze_count() >= before + 60_000, timeout=10_000)
    result.clear()
    assert last() is None
    knot = weakref.ref(Knot())  # what comes afterwards is collected as ever
    fresh = [Many() for _ in range(5_000)]
    qtbot.waitUntil(lambda: knot() is None, timeout=10_000)
    assert len(fresh) == 5_000
    collector.stop()
    gc.disable()


def test_measurements_that_come_a_few_at_a_time_are_left_alone_as_well(qtbot: QtBot) -> None:
    collector = Collector()
    collector.settle()
    before, session = gc.get_freeze_count(), []

    def measured() -> bool:
        session.extend(Many() for _ in range(3_000))
        return gc.get_freeze_count() >= before + 40_000

    qtbot.waitUntil(measured, timeout=20_000)
    collector.stop()
    gc.disable()
