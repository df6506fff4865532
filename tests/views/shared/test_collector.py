"""Cyclic garbage goes on Qt's thread between two turns of its loop, never in the middle of a call."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.views.shell import app as collector_module
from app.views.shell.app import Collector

_FREEZE, _UNFREEZE = gc.freeze, gc.unfreeze  # before a test of the window has stand-ins for them


@pytest.fixture(autouse=True)
def freezing(no_garbage_collected_inside_qt: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """These tests freeze indeed; what the suite loaded is frozen again after them."""
    monkeypatch.setattr(gc, "freeze", _FREEZE)
    monkeypatch.setattr(gc, "unfreeze", _UNFREEZE)
    yield
    gc.collect()
    _FREEZE()


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


class Frozen:
    """How many objects are left alone. Counting them takes long in a large process: it is done when it changes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._freeze = gc.freeze
        monkeypatch.setattr(gc, "freeze", self.freeze)
        self.count = gc.get_freeze_count()

    def freeze(self) -> None:
        self._freeze()
        self.count = gc.get_freeze_count()


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> Frozen:
    return Frozen(monkeypatch)


def test_a_large_result_is_not_looked_at_and_is_freed_when_it_is_let_go(qtbot: QtBot, frozen: Frozen) -> None:
    collector = Collector()
    collector.settle()
    before = frozen.count
    result = [Many() for _ in range(60_000)]
    last = weakref.ref(result[-1])
    qtbot.waitUntil(lambda: frozen.count >= before + 60_000, timeout=10_000)
    result.clear()
    assert last() is None
    knot = weakref.ref(Knot())  # what comes afterwards is collected as ever
    fresh = [Many() for _ in range(5_000)]
    qtbot.waitUntil(lambda: knot() is None, timeout=10_000)
    assert len(fresh) == 5_000
    collector.stop()
    gc.disable()


def test_garbage_is_not_left_alone_together_with_a_result(qtbot: QtBot, frozen: Frozen) -> None:
    collector = Collector()
    collector.settle()
    knot = Knot()
    gone = weakref.ref(knot)
    gc.collect()  # it has been there for long
    session, before = [], frozen.count
    del knot

    def measured() -> bool:
        session.extend(Many() for _ in range(1_000))
        return frozen.count >= before + 40_000

    qtbot.waitUntil(measured, timeout=20_000)
    assert gone() is None
    collector.stop()
    gc.disable()


def test_what_becomes_garbage_beside_a_result_is_found_once_nobody_looks(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, frozen: Frozen
) -> None:
    monkeypatch.setattr(collector_module, "_ALL_EVERY", 3)
    asked: list[bool] = []

    def unseen() -> bool:
        asked.append(gone() is None)
        return len(asked) > 2

    collector = Collector(unseen=unseen)
    collector.settle()
    knot = Knot()
    gone = weakref.ref(knot)
    before, result = frozen.count, [Many() for _ in range(60_000)]
    qtbot.waitUntil(lambda: frozen.count >= before + 60_000, timeout=10_000)
    del knot
    qtbot.waitUntil(lambda: gone() is None, timeout=10_000)
    assert asked == [False] * 3, "not while somebody looks"
    assert frozen.count >= 60_000, "and the result is left alone again"
    assert len(result) == 60_000
    collector.stop()
    gc.disable()


def test_measurements_that_come_a_few_at_a_time_are_left_alone_as_well(qtbot: QtBot, frozen: Frozen) -> None:
    collector = Collector()
    collector.settle()
    before, session = frozen.count, []

    def measured() -> bool:
        session.extend(Many() for _ in range(3_000))
        return frozen.count >= before + 40_000

    qtbot.waitUntil(measured, timeout=20_000)
    collector.stop()
    gc.disable()
