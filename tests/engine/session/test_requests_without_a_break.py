"""`Measuring`: rows of several requests go to a runner that never rests, and each is reported under its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from fixtures.compile_sides import Bench, TestMaker
from fixtures.engine_fakes import FakeRunner, FakeTimer, grid, measurement_of
from fixtures.virtual_cuda import VirtualBoard

from app.engine.results.measurement import Depth, Measurement
from app.engine.runner.base import More, no_more
from app.engine.runner.pool.messages import Request, SessionWork, bundle_of, parse_answer, request_line
from app.engine.session.pool.worker import Coming, Measuring

SPACE = grid()
SESSION = "ab" * 16


class OneBehind(FakeRunner):
    """As on a real board, a row is reported once the next one runs. It can be told to stop at a row."""

    def __init__(self, stop_at: int = -1) -> None:
        super().__init__(SPACE)
        self.stop_at = stop_at

    def measure(
        self, rows: Sequence[int], stop: threading.Event, depth: Depth = Depth.ENERGY, more: More = no_more
    ) -> Iterator[Measurement]:
        todo, ran = list(rows), list[int]()
        while todo and not stop.is_set():
            ran.append(todo.pop(0))
            self.measured.append(ran[-1])
            if ran[-1] == self.stop_at:
                stop.set()
            if len(ran) > 1:
                yield measurement_of(self.space, ran.pop(0))
            todo += more()
        yield from (measurement_of(self.space, row) for row in ran)


class Said:
    """What a board says of a request."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()
        self.rows: list[int] = []

    def __call__(self, line: bytes) -> None:
        part = parse_answer(line, "there")
        self.numbers.add(part.number)
        if part.measured is not None:
            self.rows.append(part.measured["row"])


def coming(number: int, *rows: int, depth: Depth = Depth.ENERGY) -> tuple[Coming, Said]:
    said = Said()
    return Coming(Request("measure", SESSION, number, rows, depth), said, list(rows)), said


def test_the_next_request_is_begun_before_the_one_before_is_answered_and_each_has_its_own_rows() -> None:
    (first, of_first), (second, of_second) = coming(1, 10, 11), coming(2, 20, 21)
    waiting = [second]
    runner = OneBehind()
    measuring = Measuring(runner, first, threading.Event(), lambda: [waiting.pop()] if waiting else [])
    assert [each.row for each in measuring.measure(1)] == [10, 11]
    assert runner.measured == [10, 11, 20], "the last of the first is known because the next one runs"
    assert not measuring.is_over
    assert [each.row for each in measuring.measure(2)] == [20, 21]
    assert measuring.is_over
    assert (of_first.rows, of_second.rows) == ([10, 11], [20, 21])
    assert (of_first.numbers, of_second.numbers) == ({1}, {2})


def test_what_was_measured_of_the_next_request_by_a_stop_is_its_answer() -> None:
    (first, _), (second, _) = coming(1, 10, 11), coming(2, 20, 21, 22)
    waiting = [second]
    measuring = Measuring(OneBehind(stop_at=21), first, threading.Event(), lambda: [waiting.pop()] if waiting else [])
    assert [each.row for each in measuring.measure(1)] == [10, 11]
    assert [each.row for each in measuring.measure(2)] == [20, 21]
    assert measuring.is_over


def test_a_row_that_two_requests_ask_for_is_reported_to_each() -> None:
    (first, of_first), (second, of_second) = coming(1, 10), coming(2, 10)
    waiting = [second]
    measuring = Measuring(OneBehind(), first, threading.Event(), lambda: [waiting.pop()] if waiting else [])
    assert len(measuring.measure(1)) == len(measuring.measure(2)) == 1
    assert of_first.rows == of_second.rows == [10]


def test_a_runner_that_takes_no_rows_meanwhile_measures_those_of_its_request() -> None:
    (first, said), (timed, of_timed) = coming(1, 10, 11), coming(2, 12, depth=Depth.TIME)
    measuring = Measuring(FakeRunner(SPACE), first, threading.Event(), list)
    assert [each.row for each in measuring.measure(1)] == said.rows
    measuring = Measuring(FakeTimer(SPACE), timed, threading.Event(), list)
    assert [(each.row, each.depth) for each in measuring.measure(2)] == [(12, Depth.TIME)]
    assert of_timed.rows == [12]


def test_kernels_of_two_requests_run_one_after_the_other_on_one_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, virtual_board: VirtualBoard
) -> None:
    both_there = threading.Event()

    def wait(_defines: dict[str, str]) -> None:
        assert both_there.wait(60)

    bench = Bench(tmp_path, monkeypatch, virtual_board, "launch_ms = [1, 2, 3, 4]", TestMaker(before=wait))
    board, said = bench.board, {2: Said(), 3: Said()}
    work = SessionWork(SESSION, bundle_of(bench.spec), bench.space)
    opened = parse_answer(board.answer(request_line(Request("open", SESSION, 1, work=work)), lambda _: None), "there")
    assert opened.error is None

    def ask(number: int, *rows: int) -> threading.Thread:
        line = request_line(Request("measure", SESSION, number, rows))
        thread = threading.Thread(target=board.answer, args=(line, said[number]))
        thread.start()
        return thread

    threads = [ask(2, 0, 1)]
    until = time.monotonic() + 60
    while board._now is None and time.monotonic() < until:
        time.sleep(0.001)
    threads.append(ask(3, 2, 3))
    while 3 not in board._waiting and time.monotonic() < until:
        time.sleep(0.001)
    both_there.set()
    for thread in threads:
        thread.join(60)
    board.close()
    assert (sorted(said[2].rows), sorted(said[3].rows)) == ([0, 1], [2, 3])
    assert (said[2].numbers, said[3].numbers) == ({2}, {3})
