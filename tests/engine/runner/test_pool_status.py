"""What a pool's boards do is reported while a session runs: by the runner, as events, and at its end in the session."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from fixtures.engine_fakes import grid
from fixtures.fake_pool import FakePool
from fixtures.pool_sides import BUNDLE, MODEL, ScriptedSide, board
from hypothesis import given
from hypothesis import strategies as st

from app.base.records import as_json
from app.engine.runner.pool.messages import BoardBusy, error_line
from app.engine.runner.pool.pool import (
    STATUS,
    BoardStatus,
    Doing,
    Ledger,
    PoolStatus,
    status_of_origin,
)
from app.engine.runner.pool.runner import PoolRunner
from app.engine.session.describe_session import describe_board_work

SPACE = grid()
ROWS = list(range(SPACE.size))
BOARD = board("a")


def of(status: PoolStatus, key: str) -> BoardStatus:
    return next(each for each in status.boards if each.key == key)


def test_a_board_s_share_is_the_part_of_its_time_with_rows_and_what_it_did_before_it_left_counts() -> None:
    now = [0.0]
    ledger = Ledger(lambda: now[0])
    ledger.joined(BOARD)
    now[0] = 2.0
    ledger.ready("a")
    ledger.begun("a", 1, [7, 8])
    now[0] = 5.0
    ledger.measured("a", 1, 7, failed=True)
    assert of(ledger.status(), "a").row == 8
    assert of(ledger.status(), "a").share == 3 / 5
    ledger.prepared("a", 1.5)
    now[0] = 8.0
    ledger.left("a", "its worker died")
    now[0] = 100.0
    found = of(ledger.status(), "a")
    assert (found.doing, found.reason, found.row) == (Doing.LEFT, "its worker died", None)
    assert (found.measured, found.failed, found.lost, found.worked_s, found.there_s) == (1, 1, 1, 6.0, 8.0)
    assert (found.opening_s, found.preparing_s, found.waited_s, found.first_s) == (2.0, 1.5, 0.0, 5.0)
    ledger.joined(BOARD)
    now[0] = 102.0
    found = of(ledger.status(), "a")
    assert (found.doing, found.measured, found.lost, found.there_s) == (Doing.PREPARING, 1, 1, 10.0)
    assert (found.opening_s, found.first_s) == (4.0, 5.0), "it gets ready again"
    now[0] = 103.0
    ledger.ready("a")
    now[0] = 106.0
    assert of(ledger.status(), "a").waited_s == 3.0


@given(st.lists(st.tuples(st.sampled_from("jrbmolfu"), st.integers(0, 3), st.floats(0, 10)), max_size=30))
def test_no_order_of_what_happens_makes_a_share_beyond_all_of_the_time(steps: list[tuple[str, int, float]]) -> None:
    now = [0.0]
    ledger = Ledger(lambda: now[0])
    ledger.joined(BOARD)
    for what, number, later in steps:
        now[0] += later
        match what:
            case "j":
                ledger.joined(BOARD)
            case "r":
                ledger.ready("a")
            case "b":
                ledger.begun("a", number, [number, 9])
            case "m":
                ledger.measured("a", number, number, failed=number % 2 == 0)
            case "o":
                ledger.over("a", number)
            case "l":
                ledger.left("a", "gone")
            case "f":
                ledger.refused("a", "no")
            case "u":
                ledger.busy("a")
        found = of(ledger.status(), "a")
        assert 0 <= found.failed <= found.measured
        assert found.worked_s >= 0
        assert found.there or found.row is None


def test_the_runner_reports_each_board_what_it_measures_and_when_it_is_lost() -> None:
    dies, seen, heard = threading.Event(), threading.Event(), list[tuple[PoolStatus, str]]()
    pools: list[FakePool] = []

    def before(key: str) -> Callable[[int], None]:
        def at(row: int) -> None:
            if key == "b" and not dies.is_set() and row > 4:
                dies.set()
                pools[0].kill("b")
            assert key == "b" or (dies.wait(60) and seen.wait(60))

        return at

    pool = FakePool(*(ScriptedSide(key, SPACE, before(key)) for key in "ab"))
    pools.append(pool)

    def hear(status: PoolStatus, remark: str) -> None:
        heard.append((status, remark))
        if any(each.key == "a" and each.row in range(SPACE.size) for each in status.boards):
            assert of(status, "a").doing is Doing.MEASURING
            seen.set()

    runner = PoolRunner(pool, MODEL, "simulated", SPACE, BUNDLE, report=hear)
    assert {each.doing for each in heard[0][0].boards} <= {Doing.PREPARING, Doing.WAITING}
    found = list(runner.measure(ROWS, threading.Event()))
    stored = status_of_origin(runner.conclude())
    runner.close()
    pool.close()
    assert stored is not None
    for last in (heard[-1][0], stored):
        a, b = of(last, "a"), of(last, "b")
        assert a.measured + b.measured == len(found) == SPACE.size
        assert a.failed + b.failed == sum(bool(each.error) for each in found)
        assert (b.doing, b.reason, b.lost, a.lost) == (Doing.LEFT, "its worker died", 1, 0)
        assert 0 < a.share <= 1
        assert (last.measured, last.lost, last.there) == (SPACE.size, 1, 1)
    at_left = next(status for status, remark in heard if "left the pool" in remark)
    assert of(at_left, "b").doing is Doing.LEFT, "what is said agrees with what is shown"


def test_a_board_that_another_session_has_is_reported_as_such_before_the_session_begins() -> None:
    heard: list[PoolStatus] = []
    free, reported = threading.Event(), threading.Event()

    def hear(status: PoolStatus, remark: str) -> None:
        if remark:  # with the status before
            return
        heard.append(status)
        if any(each.doing is Doing.BUSY for each in status.boards):
            reported.set()

    def wait(_row: int) -> None:
        assert reported.wait(60), "while the other board works"

    class Busy(ScriptedSide):
        def answer(self, line: bytes, say: Callable[[bytes], None]) -> bytes:
            number = json.loads(line)["number"]
            if not free.is_set():
                free.set()
                return error_line(number, BoardBusy("it is busy with another session"))
            return super().answer(line, say)

    pool = FakePool(Busy("a", SPACE), ScriptedSide("b", SPACE, wait))
    runner = PoolRunner(pool, MODEL, "simulated", SPACE, BUNDLE, report=hear)
    list(runner.measure(ROWS[:3], threading.Event()))
    runner.close()
    pool.close()
    assert of(next(each for each in heard if of(each, "a").doing is Doing.BUSY), "b").doing is not Doing.BUSY
    assert of(heard[-1], "a").share == 0.0


def test_what_each_board_did_is_described_where_there_were_several() -> None:
    both = (
        BoardStatus("a", "H200 a", "n1", Doing.WAITING, measured=40, failed=2, worked_s=9.0, there_s=10.0),
        BoardStatus("b", "H200 b", "n1", Doing.LEFT, "its worker died", measured=3, lost=1),
    )
    (listing,) = describe_board_work({STATUS: json.dumps(as_json(both))})
    assert listing.rows == [["H200 a", 40, 2, "90 %", 0], ["H200 b", 3, 0, "–", 1]]
    alone = {STATUS: json.dumps(as_json(both[:1]))}
    assert not list(describe_board_work(alone))
    assert not list(describe_board_work({}))


def test_what_a_damaged_origin_says_of_its_boards_is_nothing() -> None:
    for text in ("", "{}", "[1]", '[{"board": 1}]', "[[]]", "null", "[" * 5000, '[{"board":"a","label":"a"'):
        assert status_of_origin({STATUS: text}) is None
    assert status_of_origin({}) is None
