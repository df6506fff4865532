"""The far side of a pool: a board that answers requests with the runner that a session on it would have."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.fake_pool import FakePool

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.control.guard import DeviceGuard
from app.engine.results.measurement import State
from app.engine.results.pareto import BEST, FRONT
from app.engine.results.state import SessionState
from app.engine.runner.pool import messages
from app.engine.runner.pool.messages import Bundle, Request, SessionWork, bundle_of
from app.engine.runner.pool.pool import boards_of_origin
from app.engine.runner.pool.pooled_gpu import PooledGpu
from app.engine.session.load import load_specification
from app.engine.session.on_board import limits_on
from app.engine.session.planning import plan_resume, plan_specification, space_of
from app.engine.session.pool import worker
from app.engine.session.pool.worker import BoardWork
from app.engine.session.run import AGAIN, run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

EXAMPLE = resources() / "examples" / "gemm.toml"
SESSION = "ab" * 16


def side(number: int = 0) -> BoardWork:
    gpu = SimulatedGpu(load_twin("a100"), seed=number, clock=VirtualClock())
    return BoardWork(gpu, DeviceGuard(gpu), host="here", key=f"sim-{number}")


@contextmanager
def pooled(*sides: BoardWork) -> Iterator[PooledGpu]:
    pool = FakePool(*sides, all_open_first=True)
    try:
        yield PooledGpu(pool, pool.boards())
    finally:
        pool.close()
        for each in sides:
            each.close()


def work(text: str | None = None) -> SessionWork:
    specification = load_specification(EXAMPLE)
    bundle = bundle_of(specification)
    if text is not None:
        bundle = Bundle("k.toml", {"k.toml": text.encode(), "k.c": b"float k(void) { return 1; }"})
    return SessionWork(SESSION, bundle, space_of(specification, side()._gpu))


def ask(board: BoardWork, request: Request) -> messages.Answer:
    return messages.parse_answer(board.answer(messages.request_line(request), lambda _: None), "there")


def test_a_session_on_two_simulated_boards_finds_what_one_board_finds() -> None:
    options = SearchOptions(max_evaluations=40, strategy="random_sample", seed=3)
    specification = load_specification(EXAMPLE)
    alone = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    with Store() as store, pooled(side(0), side(1)) as gpu:
        on_one = run_session(
            plan_specification(specification, alone, options), store, lambda _: None, threading.Event()
        )
        on_two = run_session(plan_specification(specification, gpu, options), store, lambda _: None, threading.Event())
        stored = store.load(on_two.session)
    assert on_two.state is SessionState.DONE, on_two.reason
    assert len(stored.table) == len(on_one.table) == 40
    *drawn, own = stored.table.rows().tolist()
    assert sorted(drawn) == sorted(on_one.table.rows()[:-1].tolist())
    assert stored.table.measurement(39).configuration["graphics_clock_mhz"] == "untouched", "the best as reported"
    times = {m.row: m.values["time_s"] for m in map(on_one.table.measurement, range(40)) if m.state is State.OK}
    for measurement in map(stored.table.measurement, range(40)):
        assert measurement.board in ("sim-0", "sim-1")
        if measurement.state is State.OK and (measurement.row != own or own in times):
            assert measurement.values["time_s"] == pytest.approx(times[measurement.row], rel=0.05)
    assert stored.record.origin["gpu"] == "pool"
    said = boards_of_origin(stored.record.origin)
    assert set(said) == {"sim-0", "sim-1"}
    assert all({"label", "condition", "thermal_model"} <= set(each) for each in said.values())


def test_a_board_that_begins_late_keeps_no_other_waiting_and_few_rows_are_measured_twice() -> None:
    first, late = side(0), side(1)
    nearly_all = threading.Event()
    measure, verbs = first._measure, late._verbs

    def count(*asked: Any) -> dict[str, Any]:
        answer = measure(*asked)
        if first.measured >= 24:
            nearly_all.set()
        return answer

    def look_first(*asked: Any) -> dict[str, Any]:
        assert nearly_all.wait(60), "the first board waits for the second"
        return late._measure(*asked)

    first._verbs = {**first._verbs, "measure": count}
    late._verbs = {**verbs, "measure": look_first}
    options = SearchOptions(max_evaluations=40, strategy="random_sample", seed=3)
    with Store() as store, pooled(first, late) as gpu:
        plan = plan_specification(load_specification(EXAMPLE), gpu, options)
        result = run_session(plan, store, lambda _: None, threading.Event())
    assert result.state is SessionState.DONE, result.reason
    assert len(set(result.table.rows().tolist())) == len(result.table) == 40
    assert result.table.decided_on == "sim-0", "it measured most of the session"
    assert late.measured > 0, "it has its part all the same"
    assert first.measured + late.measured <= 40 + AGAIN + BEST + FRONT


def test_a_board_goes_on_with_the_rows_of_the_next_request_before_that_has_its_turn() -> None:
    board = side()
    assert ask(board, Request("open", SESSION, 1, work=work())).answer is not None
    second_waits = threading.Event()
    said: dict[int, list[messages.Answer]] = {2: [], 3: []}
    order: list[tuple[int, int]] = []
    answers: dict[int, messages.Answer] = {}

    def say(number: int) -> Callable[[bytes], None]:
        def hear(line: bytes) -> None:
            part = messages.parse_answer(line, "there")
            said[number].append(part)
            if part.measured is not None:
                order.append((part.number, part.measured["row"]))
            if number == 2 and part.begun:
                assert second_waits.wait(60)

        return hear

    def request(number: int, *rows: int) -> None:
        line = messages.request_line(Request("measure", SESSION, number, rows))
        answers[number] = messages.parse_answer(board.answer(line, say(number)), "there")

    first = threading.Thread(target=request, args=(2, 10, 11, 12))
    first.start()
    next_one = threading.Thread(target=request, args=(3, 20, 21))
    next_one.start()
    until = time.monotonic() + 60
    while 3 not in board._waiting and time.monotonic() < until:
        time.sleep(0.001)
    handed: list[int] = []
    session = board._session
    assert session is not None
    measure = session.runner.measure
    session.runner.measure = lambda *how: handed.append(1) or measure(*how)  # type: ignore
    second_waits.set()
    first.join(60)
    next_one.join(60)
    board.close()
    assert handed == [1], "the runner never came to an end between the two"
    assert {number: {row for of, row in order if of == number} for number in (2, 3)} == {2: {10, 11, 12}, 3: {20, 21}}
    assert len(order) == 5, "each once"
    for number, rows in ((2, {10, 11, 12}), (3, {20, 21})):
        assert {part.number for part in said[number]} == {number}, "each under the number of its own request"
        answer = answers[number].answer
        assert answer is not None
        assert {each["row"] for each in answer["measured"]} == rows


def test_what_is_ended_ends_with_the_rows_of_the_requests_that_wait() -> None:
    board = side()
    ask(board, Request("open", SESSION, 1, work=work()))
    board.end_until(SESSION, 3)
    for number in (2, 3):
        ended = ask(board, Request("measure", SESSION, number, tuple(range(20))))
        assert ended.answer is not None
        assert ended.answer["measured"] == []
    later = ask(board, Request("measure", SESSION, 4, (5,)))
    assert later.answer is not None
    assert [each["row"] for each in later.answer["measured"]] == [5]
    board.close()


def test_a_session_is_resumed_on_other_boards_of_the_model() -> None:
    options = SearchOptions(max_evaluations=10, strategy="random_sample")
    with Store() as store, pooled(side(0)) as gpu:
        plan = plan_specification(load_specification(EXAMPLE), gpu, options)
        first = run_session(plan, store, lambda _: None, threading.Event())
    with Store() as store, pooled(side(5), side(6)) as gpu:
        again = plan_resume(store, first.session, SearchOptions(max_evaluations=30), gpu=gpu)
        second = run_session(again, store, lambda _: None, threading.Event())
        table = store.load(second.session).table
    boards = [table.measurement(at).board for at in range(len(table))]
    assert len(set(table.rows().tolist())) == 30
    assert set(boards[10:]) == {"sim-5", "sim-6"}
    assert second.table.decided_on in ("sim-5", "sim-6"), "the other one is no longer there"
    assert second.table.decided_on in boards[:10], "it measured the finalists of that, too"


def test_what_a_pool_cannot_run_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text('[command]\nrun = "./bench"\n[parameters]\nn = [1]\n[objective]\nminimise = "time_s"\n')
    with pooled(side()) as gpu:
        with pytest.raises(InputError, match="a pool measures kernels, not programs"):
            plan_specification(load_specification(path), gpu)
        with pytest.raises(InputError, match="meters stand beside one board"):
            gpu.require_runnable(replace(load_specification(EXAMPLE), meters=_some_meter()))
        assert isinstance(gpu.pool, FakePool)
        assert gpu.pool.sent == []


def _some_meter() -> object:
    from app.engine.metering.external_meters import MeterChoice

    return MeterChoice(("rapl",))


@pytest.mark.parametrize(
    "text",
    [
        '[command]\nrun = "touch it"\n[parameters]\nn = [1]\n[objective]\nminimise = "time_s"\n',
        '[kernel]\nname = "k"\nsource = "k.c"\nlanguage = "C"\nproblem_size = ["1"]\n'
        '[parameters]\nn = [1]\n[objective]\nminimise = "time_s"\n',
    ],
)
def test_a_worker_starts_no_programs_whatever_it_is_sent(text: str) -> None:
    board = side()
    error = ask(board, Request("open", SESSION, 1, work=work(text))).error
    assert error is not None
    assert "a pool starts no programs" in error.what
    board.close()


def test_one_session_has_the_board_until_it_ends_or_asks_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    board, other = side(), "cd" * 16
    assert ask(board, Request("open", SESSION, 1, work=work())).answer is not None
    busy = ask(board, Request("open", other, 2, work=replace(work(), session=other))).error
    assert busy is not None
    assert isinstance(busy, messages.BoardBusy)
    monkeypatch.setattr(worker, "IDLE_S", -1.0)
    assert ask(board, Request("open", other, 3, work=replace(work(), session=other))).answer is not None
    unknown = ask(board, Request("measure", SESSION, 4, (1,))).error
    assert isinstance(unknown, messages.UnknownSession)
    board.let_go_where_idle()
    assert isinstance(ask(board, Request("measure", other, 5, (1,))).error, messages.UnknownSession)
    board.close()


def test_a_new_session_of_the_same_client_ends_the_one_before() -> None:
    board, other = side(), "cd" * 16
    for number, session in enumerate((SESSION, other), 1):
        line = messages.request_line(Request("open", session, number, work=replace(work(), session=session)))
        assert messages.parse_answer(board.answer(line, lambda _: None, "client-1"), "there").answer is not None
    line = messages.request_line(Request("open", SESSION, 3, work=work()))
    for _ in range(2):
        refused = messages.parse_answer(board.answer(line, lambda _: None, "client-2"), "there").error
        assert isinstance(refused, messages.BoardBusy)
    board.close()


def test_a_client_that_asks_again_and_again_gets_the_board_of_one_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE_S", 0.2)
    board, other = side(), "cd" * 16
    ask(board, Request("open", SESSION, 1, work=work()))
    again, until = Request("open", other, 2, work=replace(work(), session=other)), time.monotonic() + 60
    while ask(board, again).error is not None:
        assert time.monotonic() < until
    board.close()


def test_settings_come_back_when_the_session_ends() -> None:
    gpu = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    guard = DeviceGuard(gpu)
    board = BoardWork(gpu, guard, host="here", key="sim")
    opened = work()
    assert ask(board, Request("open", SESSION, 1, work=opened)).answer is not None
    assert any(each.device_setting for each in opened.space.parameters)
    assert ask(board, Request("measure", SESSION, 2, (0, 1))).answer is not None
    asked = gpu.channels.index(next(each for each in gpu.channels if each.name == "requested_graphics_clock_mhz"))
    assert gpu.read().values[asked] == float(opened.space.configuration(1)["graphics_clock_mhz"])
    assert ask(board, Request("close", SESSION, 3)).answer is not None
    assert math.isnan(gpu.read().values[asked])
    board.close()


def test_what_is_measured_ends_early_when_nobody_waits_for_it() -> None:
    board = side()
    ask(board, Request("open", SESSION, 1, work=work()))
    board.end_until(SESSION, 7)
    told = ask(board, Request("measure", SESSION, 7, tuple(range(20)))).answer
    assert told is not None
    assert told["measured"] == []
    told = ask(board, Request("measure", SESSION, 8, (3,))).answer
    assert told is not None
    assert len(told["measured"]) == 1
    board.close()


def test_a_board_answers_malformed_requests_with_one_line_and_goes_on() -> None:
    board, rng = side(), random.Random(5)
    ask(board, Request("open", SESSION, 1, work=work()))
    lines = [messages.request_line(Request(do, SESSION, 2, (1,))) for do in ("measure", "features")]
    lines += [messages.request_line(Request("measure", SESSION, 3, (10**9,)))]
    lines += [messages.request_line(Request("restate", SESSION, 4, measurements=({"row": -1},)))]
    for turn in range(200):
        line = bytearray(lines[turn % 4])
        if turn >= 4:
            line[rng.randrange(len(line))] = rng.randrange(256)
        said = messages.parse_answer(board.answer(bytes(line), lambda _: None), "there")
        assert said.error is None or said.error.what.isprintable()
    assert ask(board, Request("measure", SESSION, 9, (1,))).answer is not None
    board.close()


def test_a_boards_limits_are_what_the_session_is_planned_with() -> None:
    with pooled(side(0), side(1)) as gpu:
        alone = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
        assert gpu.limits == limits_on(alone)
        assert list(gpu.graphics_clocks_mhz()) == list(alone.graphics_clocks_mhz())
        assert gpu.info.label == alone.info.label
