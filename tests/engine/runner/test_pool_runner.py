"""The pool's runner: rows go to whichever board is free, and whatever becomes of the boards, each comes back once."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice

import pytest
from fixtures.engine_fakes import FakeRunner, InOrder, grid, made_by, plan
from fixtures.fake_pool import FakePool
from fixtures.pool_sides import BUNDLE, MODEL, ScriptedSide, board

from app.base.errors import WattridgeError
from app.engine.results.measurement import Depth, State
from app.engine.results.state import SessionState
from app.engine.runner.pool import runner as pool_runner
from app.engine.runner.pool.messages import BoardBusy, error_line, parse_answer
from app.engine.runner.pool.pool import boards_of_origin
from app.engine.runner.pool.runner import PoolRunner
from app.engine.session.run import run_session
from app.engine.space.search_space import SearchSpace
from app.engine.store.database import Store
from app.sensors.gpu import GpuLost

SPACE = grid()
ROWS = list(range(SPACE.size))


def side(key: str, before: Callable[[int], None] = lambda _: None) -> ScriptedSide:
    return ScriptedSide(key, SPACE, before)


def remarks_to(said: list[str]) -> Callable[[object, str], None]:
    return lambda _, remark: said.append(remark) if remark else None


@contextmanager
def running(*sides: ScriptedSide, space: SearchSpace = SPACE) -> Iterator[tuple[FakePool, PoolRunner, list[str]]]:
    said: list[str] = []
    pool = FakePool(*sides)
    runner = PoolRunner(pool, MODEL, "simulated", space, BUNDLE, report=remarks_to(said))
    try:
        yield pool, runner, said
    finally:
        runner.close()
        pool.close()


def until(event: threading.Event) -> Callable[[int], None]:
    """A board that measures nothing before `event`: the other has its turn however busy the host is."""

    def wait(_row: int) -> None:
        assert event.wait(60)

    return wait


def once_each(rows: list[int]) -> bool:
    return sorted(rows) == ROWS


def once(wanted: Sequence[tuple[str, int]]) -> Callable[[], Sequence[tuple[str, int]]]:
    """All that is wanted, at the first question."""
    left = [wanted]
    return lambda: left.pop() if left else ()


def test_every_row_is_measured_once_by_some_board_and_says_which() -> None:
    sides = [side(key) for key in "abc"]
    with running(*sides) as (_, runner, said):
        found = list(runner.measure(ROWS, threading.Event()))
    assert once_each([each.row for each in found])
    assert all(each.row in next(s for s in sides if s.board.key == each.board).measured for each in found)
    assert {each.configuration["x"] for each in found} == set(range(10)), "configurations follow from the space"
    assert any(each.state is State.RUNTIME and each.error == "launch failed" for each in found)
    assert said == []


def test_no_board_waits_while_there_are_rows_and_the_last_ones_are_shared() -> None:
    both_work = threading.Barrier(2, timeout=20)
    met: Counter[str] = Counter()

    def meet(key: str) -> Callable[[int], None]:
        def before(_row: int) -> None:
            met[key] += 1
            if met[key] <= 30:
                both_work.wait()

        return before

    sides = [side(key, meet(key)) for key in "ab"]
    with running(*sides) as (_, runner, _):
        found = list(runner.measure(ROWS, threading.Event()))
    assert once_each([each.row for each in found])
    first, last = ([len(s.requests[at]) for s in sides] for at in (0, -1))
    assert min(last) == 1 < min(first), "fewer at a time towards the end"


def test_rows_of_a_worker_that_died_are_measured_again_and_none_twice() -> None:
    dies = threading.Event()
    pools: list[FakePool] = []

    def before(row: int) -> None:
        if not dies.is_set() and row > 4:
            dies.set()
            pools[0].kill("b")

    with running(side("a", until(dies)), side("b", before)) as (pool, runner, said):
        pools.append(pool)
        found = list(runner.measure(ROWS, threading.Event()))
    assert once_each([each.row for each in found])
    assert said == [f"{board('b').label} left the pool: its worker died"]


def test_a_row_with_which_two_workers_die_is_a_failed_result() -> None:
    pools: list[FakePool] = []
    sides: dict[str, ScriptedSide] = {}

    def before(key: str) -> Callable[[int], None]:
        def kill(row: int) -> None:
            if row == 42:
                pools[0].kill(key)
                sides[key].forget()
                pools[0].join(sides[key])

        return kill

    sides |= {key: side(key, before(key)) for key in "ab"}
    with running(*sides.values()) as (pool, runner, _):
        pools.append(pool)
        found = {each.row: each for each in runner.measure(ROWS, threading.Event())}
    assert once_each(list(found))
    assert found[42].state is State.RUNTIME
    assert "died 2 times" in found[42].error
    assert found[41].error == "", "those that went with it the first time are measured"


def test_when_all_boards_are_gone_the_session_waits_for_one_that_comes() -> None:
    gone = threading.Event()
    pools: list[FakePool] = []
    first = side("a")

    def before(row: int) -> None:
        if row == 20 and not gone.is_set():
            gone.set()
            pools[0].lose("a")
            first.forget()
            pools[0].join(first)

    first._before = before
    with running(first) as (pool, runner, _):
        pools.append(pool)
        found = list(runner.measure(ROWS, threading.Event()))
    assert gone.is_set()
    assert once_each([each.row for each in found])


def test_without_a_board_for_long_the_session_fails_with_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.runner.pool.runner.PATIENCE_S", 0.1)
    with running(side("a")) as (pool, runner, _):
        pool.lose("a")
        with pytest.raises(WattridgeError, match="no board of the pool") as error:
            list(runner.measure(ROWS, threading.Event()))
    assert "resume" in error.value.remedy


def test_a_board_that_joins_later_takes_part_and_one_of_another_model_does_not() -> None:
    late, other = side("b"), side("c")
    other.board = board("c", "v100")
    go_on = threading.Event()
    first = side("a", lambda row: None if row < 10 else (go_on.wait(20), None)[1])
    with running(first) as (pool, runner, _):
        measuring = runner.measure(ROWS, threading.Event())
        found = list(islice(measuring, 5))
        pool.join(late)
        pool.join(other)
        late._before = lambda _: go_on.set()
        found += list(measuring)
        assert {each.key for each in runner.boards} == {"a", "b"}
    assert once_each([each.row for each in found])
    assert late.measured
    assert not other.verbs


def test_a_board_whose_lines_are_garbled_takes_no_part_and_the_others_do_its_rows() -> None:
    garbled = threading.Event()

    def garble(key: str, line: bytes) -> bytes:
        if key == "a" or b'"ok"' not in line:
            return line
        garbled.set()
        return line.replace(b'"ok"', b'"__import__"')

    with running(side("a", until(garbled)), side("b")) as (pool, runner, said):
        pool.garble = garble
        found = list(runner.measure(ROWS, threading.Event()))
        assert [each.key for each in runner.boards] == ["a"]
    assert once_each([each.row for each in found])
    assert {each.board for each in found if each.state is State.OK} == {"a"}
    assert len(said) == 1
    assert "takes no part: a word that is none of those known" in said[0]


def test_when_a_board_is_lost_beside_its_worker_the_others_do_its_rows() -> None:
    gone = threading.Event()

    def lost(key: str, line: bytes) -> bytes:
        answer = parse_answer(line, "there")
        if key == "b" and answer.answer is not None and "measured" in answer.answer:
            gone.set()
            return error_line(answer.number, GpuLost("the board fell off the bus", "node7"))
        return line

    with running(side("a", until(gone)), side("b")) as (pool, runner, said):
        pool.garble = lost
        found = list(runner.measure(ROWS, threading.Event()))
    assert once_each([each.row for each in found]), "what it reported before stays"
    assert said == [f"{board('b').label} takes no part: the board fell off the bus"]


def test_a_board_that_another_session_has_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.engine.runner.pool.runner.BUSY_S", 0.01)
    busy = [True, True]

    def garble(_: str, line: bytes) -> bytes:
        answer = parse_answer(line, "there")
        if answer.answer is not None and "batch" in answer.answer and busy:
            busy.pop()
            return error_line(answer.number, BoardBusy("it is busy"))
        return line

    pool, said = FakePool(), list[str]()
    pool.garble = garble
    pool.join(side("a"))
    runner = PoolRunner(pool, MODEL, "simulated", SPACE, BUNDLE, report=remarks_to(said))
    assert [each.row for each in runner.measure([3], threading.Event())] == [3]
    assert said == [f"{board('a').label} is busy with another session; it is asked again"]
    runner.close()
    pool.close()


def test_when_no_board_takes_part_any_more_the_session_fails_at_once_with_the_reason() -> None:
    with running(side("a"), side("b")) as (pool, runner, said):
        pool.garble = lambda _, line: line.replace(b'"ok"', b'"fine"')
        with pytest.raises(WattridgeError, match="a word that is none of those known"):
            list(runner.measure(ROWS, threading.Event()))
    assert len(said) == 2


def test_what_was_measured_is_measured_again_on_the_same_board() -> None:
    with running(side("a"), side("b")) as (_, runner, _):
        boards = {each.row: each.board for each in runner.measure(ROWS, threading.Event())}
        again = {each.row: each.board for each in runner.measure(ROWS[:20], threading.Event())}
    assert again == {row: boards[row] for row in ROWS[:20]}


def test_timing_is_at_its_own_depth() -> None:
    with running(side("a"), side("b")) as (_, runner, _):
        found = list(runner.time(ROWS[:9], threading.Event()))
    assert {each.depth for each in found} == {Depth.TIME}
    assert sorted(each.row for each in found) == ROWS[:9]


def test_when_the_session_stops_what_is_measured_by_then_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_runner, "DRAIN_S", 60.0)  # however busy the host is
    stop = threading.Event()

    def before(_row: int) -> None:
        stop.wait(20)

    sides = [side("a", before), side("b", before)]
    with running(*sides) as (_, runner, _):
        measuring = runner.measure(ROWS, stop)
        threading.Timer(0.1, stop.set).start()
        found = list(measuring)
    measured = [row for each in sides for row in each.measured]
    assert sorted(each.row for each in found) == sorted(measured)
    assert 0 < len(measured) < len(ROWS)


def test_after_a_stop_no_board_that_is_silent_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_runner, "DRAIN_S", 0.1)
    monkeypatch.setattr(pool_runner, "STOPPED_S", 0.2)
    monkeypatch.setattr(pool_runner, "CONCLUDE_S", 600.0)
    stop, released = threading.Event(), threading.Event()

    def hang(row: int) -> None:
        if row == 3:
            stop.set()
            released.wait(60)

    with running(side("a", hang)) as (_, runner, _):
        found = list(runner.measure(ROWS, stop))
        assert list(runner.restated(found)) == found, "stated as it was measured"
        runner.conclude()
        assert not released.is_set()
        released.set()


def test_a_session_over_boards_is_stored_with_the_board_of_every_row_and_what_each_board_says() -> None:
    asked = {key: threading.Event() for key in "ab"}

    def other_has_rows(key: str, other: str) -> Callable[[int], None]:
        def wait(_row: int) -> None:
            asked[key].set()
            assert asked[other].wait(60)

        return wait

    pool = FakePool(side("a", other_has_rows("a", "b")), side("b", other_has_rows("b", "a")))
    make = partial(PoolRunner, pool, MODEL, "simulated", SPACE, BUNDLE)
    whole = plan(SPACE, FakeRunner(SPACE), strategy=InOrder.name, boards=made_by(make))
    with Store() as store:
        result = run_session(whole, store, lambda _: None, threading.Event())
        table = store.load(result.session).table
        origin = store.session(result.session).origin
    pool.close()
    assert result.state is SessionState.DONE
    assert once_each(table.rows().tolist())
    assert {table.measurement(index).board for index in range(len(table))} == {"a", "b"}
    boards = boards_of_origin(origin)
    assert boards["a"] == {"label": board("a").label, "host": "host-of-a", "condition": "50 °C"}
    assert boards_of_origin({"boards": "[[["}) == {}
