"""Which board measures what so that boards can be compared: shared rows first, and second looks shared out."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from app.engine.measurement import Measurement, State
from app.engine.runner.board_comparison import SHARED, TRIES, BoardComparison
from app.sensors.event_reasons import LIMITING

ROWS = list(range(100, 120))


def reported(board: str, row: int, *, works: bool = True) -> Measurement:
    """Board b takes 2 % longer and draws 4 % more than a."""
    if not works:
        return Measurement(row, {"x": row}, State.RUNTIME, error="launch failed", board=board)
    time_s, power_w = 1e-3 * row * (1.02 if board == "b" else 1.0), 300.0 * (1.04 if board == "b" else 1.0)
    values = {"time_s": time_s, "power_w": power_w, "energy_j": time_s * power_w}
    return Measurement(row, {"x": row}, State.OK, values, board=board)


def compared() -> BoardComparison:
    comparison = BoardComparison(1000)
    comparison.share(ROWS)
    for key, row in comparison.wanted(["a", "b"]):
        comparison.note(reported(key, row))
    return comparison


def test_every_board_measures_the_first_rows_of_the_search_and_is_compared_once_both_have() -> None:
    comparison = BoardComparison(1000)
    comparison.share(ROWS)
    wanted = comparison.wanted(["a", "b"])
    assert sorted(wanted) == [(key, row) for key in "ab" for row in ROWS[:SHARED]]
    assert comparison.reference == "a"
    told = [comparison.note(reported(key, row)) for key, row in wanted]
    assert told == [False] * (2 * SHARED - 1) + [True], "no half of it is fitted"
    assert comparison.offsets["b"].ratios["energy_j"].value == pytest.approx(1.02 * 1.04)
    assert comparison.wanted(["a", "b"]) == [], "nobody is asked twice"


def test_a_board_that_joins_later_measures_what_the_reference_has_measured() -> None:
    comparison = BoardComparison(1000)
    comparison.share(ROWS)
    for key, row in comparison.wanted(["a"]):
        comparison.note(reported(key, row))
    wanted = comparison.wanted(["a", "b"])
    assert sorted(wanted) == [("b", row) for row in ROWS[:SHARED]], "the reference measures nothing for it"


def test_rows_of_which_a_limit_acted_are_replaced_by_what_the_reference_has_measured() -> None:
    comparison = BoardComparison(1000)
    comparison.share(ROWS)
    for key, row in comparison.wanted(["a", "b"]):
        comparison.note(replace(reported(key, row), event_reasons=LIMITING if row < ROWS[3] else 0))
    assert "b" not in comparison.offsets
    assert comparison.wanted(["a", "b"]) == [], "there is nothing to compare by yet, and nothing is measured for it"
    for row in ROWS[SHARED : SHARED + 6]:
        comparison.note(reported("a", row))
    wanted = comparison.wanted(["a", "b"])
    assert {key for key, _ in wanted} == {"b"}
    assert {row for _, row in wanted} < set(ROWS[SHARED : SHARED + 6])
    assert len(wanted) == 3, "as many as showed nothing"
    for key, row in wanted:
        comparison.note(reported(key, row))
    assert comparison.offsets["b"].shared == SHARED


def test_a_board_of_which_nothing_works_measures_rows_that_are_drawn_and_not_for_ever() -> None:
    comparison = BoardComparison(1000)
    comparison.share(ROWS)
    rounds = 0
    while wanted := comparison.wanted(["a", "b"], draw=True):
        rounds += 1
        for key, row in wanted:
            comparison.note(reported(key, row, works=key == "a"))
    assert rounds == 1 + TRIES
    assert "b" not in comparison.offsets


def test_a_reference_that_leaves_before_it_reports_anything_is_none() -> None:
    comparison = BoardComparison(1000)
    comparison.share(ROWS)
    comparison.wanted(["a", "b"])
    comparison.forget_but(["b"])
    comparison.wanted(["b"])
    assert comparison.reference == "b"
    assert comparison.numbers == {"b": 1}


def test_second_looks_settle_on_the_reference_and_keep_both_boards_as_busy() -> None:
    comparison = compared()
    on_a, on_b = ROWS[SHARED : SHARED + 4], ROWS[SHARED + 4 : SHARED + 8]
    for board, rows in (("a", on_a), ("b", on_b)):
        for row in rows:
            comparison.note(reported(board, row))
    looks = comparison.second_looks([*ROWS[:SHARED], *on_a, *on_b], ["a", "b"])
    assert {row for key, row in looks if key == "a"} >= set(on_b), "what is best is settled on one board"
    assert {row for key, row in looks if key == "b"} >= set(on_a), "and shows how the other differs"
    again = [(key, row) for key in "ab" for row in ROWS[:SHARED]]
    assert {*looks} >= {*again}, "shared rows are compared once more, on boards that are warm by now"
    load = Counter(key for key, _ in looks)
    assert abs(load["a"] - load["b"]) <= 1


def test_rows_that_were_chosen_for_what_one_board_reported_say_nothing_of_how_boards_differ() -> None:
    """The best of what b measured is partly luck, which the reference's second look at it does not have."""
    comparison = compared()
    lucky = ROWS[SHARED : SHARED + 4]
    for row in lucky:
        own = reported("b", row)
        comparison.note(replace(own, values={name: 0.97 * value for name, value in own.values.items()}))
    comparison.leave_out(lucky)
    for row in lucky:
        comparison.note(reported("a", row))
    comparison.fit()
    offset = comparison.offsets["b"]
    assert offset.shared == SHARED
    assert offset.ratios["power_w"].value == pytest.approx(1.04)


def test_many_boards_are_compared_by_few_fits_and_none_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison, keys = BoardComparison(1000), [f"board {number}" for number in range(200)]
    comparison.share(ROWS)
    fits, fit = [0], comparison.fit

    def count(*asked: object) -> None:
        fits[0] += 1
        fit()

    monkeypatch.setattr(comparison, "fit", count)
    for key, row in comparison.wanted(keys):
        comparison.note(reported(key, row))
    assert set(comparison.offsets) == set(keys)
    assert fits[0] < 100
