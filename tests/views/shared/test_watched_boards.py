"""The boards that are watched: each once, opened and closed off Qt's thread, read closely once it was shown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.fakes import FakeGpu, working
from fixtures.lab import Lab
from pytestqt.qtbot import QtBot

from app.base.errors import WattridgeError
from app.engine.session import events
from app.views.shared import watched_boards
from app.views.shared.watched_boards import WatchedBoards


@pytest.fixture
def boards(qtbot: QtBot) -> Iterator[WatchedBoards]:
    lab = Lab()
    made = WatchedBoards(FakeGpu(working), lab.bridge)
    made.lab = lab  # type: ignore[attr-defined]  # the bridge lives as long
    yield made
    made.close()


def test_a_board_is_watched_once_whatever_it_is_called(qtbot: QtBot, boards: WatchedBoards) -> None:
    for selector in ("simulated:a100", "simulated:a100", " simulated:a100"):
        boards.watch(selector)
    boards.watch("simulated:v100")
    qtbot.waitUntil(lambda: boards.find("simulated:v100") is not None, timeout=10_000)
    assert [board.uuid for board in boards.all] == ["fake:0", "simulated:a100", "simulated:v100"]


def test_the_board_that_was_chosen_last_is_shown(qtbot: QtBot, boards: WatchedBoards) -> None:
    shown: list[str] = []
    boards.board_changed.connect(lambda board: shown.append(board.uuid))
    for selector in ("simulated:a100", "simulated:h200", "simulated:v100"):
        boards.show(selector)
    qtbot.waitUntil(lambda: len(boards.all) == 4, timeout=10_000)
    assert shown == ["simulated:v100"]
    assert boards.current is boards.find("simulated:v100")


def test_a_board_is_read_more_often_once_it_was_shown(qtbot: QtBot, boards: WatchedBoards) -> None:
    boards.watch("simulated:a100")
    qtbot.waitUntil(lambda: len(boards.all) == 2, timeout=10_000)
    glance = boards.all[1].sampler.interval_s
    boards.show("simulated:a100")
    closely = boards.all[1].sampler.interval_s
    assert closely < glance
    boards.show("fake:0")
    assert boards.all[1].sampler.interval_s == closely, "its trace has no coarse stretches"


def test_what_the_engine_reports_of_a_board_is_kept_with_it(boards: WatchedBoards) -> None:
    lab: Any = boards.lab  # type: ignore[attr-defined]
    lab.engine.tell(events.ControlChanged("fake:0", True, 4711))
    lab.engine.tell(events.ControlChanged("another", False, None))
    assert (boards.current.allowed, boards.current.holder) == (True, 4711)
    lab.engine.tell(events.ControlChanged("fake:0", False, None))
    assert not boards.current.allowed


def test_the_board_that_is_shown_is_not_forgotten_and_no_guard_is_made_of_an_unknown_one(
    boards: WatchedBoards,
) -> None:
    lab: Any = boards.lab  # type: ignore[attr-defined]
    boards.forget(boards.current)
    assert lab.engine.commands == []
    assert boards.guard_of("fake:0") is boards.current.guard
    with pytest.raises(WattridgeError, match="not watched"):
        boards.guard_of("simulated:a100")


def test_a_board_that_is_still_being_opened_at_the_end_is_closed(
    qtbot: QtBot, boards: WatchedBoards, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, begun, go = FakeGpu(working), threading.Event(), threading.Event()

    def open_late(*_: object, **__: object) -> FakeGpu:
        begun.set()
        assert go.wait(10)
        return late

    monkeypatch.setattr(watched_boards, "watched_gpu", open_late)
    boards.watch("simulated:a100")
    assert begun.wait(10)
    threading.Timer(0.05, go.set).start()
    boards.close()
    assert late.closed
