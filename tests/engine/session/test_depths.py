"""Sessions at two depths: some configurations are only timed, others measured in full."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fixtures.engine_fakes import FakeRunner, FakeTimer, Listener, grid, measurement_of, plan

from app.engine.analysis.session_analysis import analyse
from app.engine.formats.csv_table import write_csv
from app.engine.formats.kernel_tuner import write_cache
from app.engine.formats.own import About
from app.engine.formats.read import read_recording
from app.engine.formats.t4 import write_t4
from app.engine.results.measurement import Depth, Measurement, State
from app.engine.results.objectives import Goal, Objective
from app.engine.results.state import SessionState
from app.engine.runner.stating import seen_again
from app.engine.session.describe_session import describe_session
from app.engine.session.live_session import SessionResult
from app.engine.session.planning import plan_replay
from app.engine.session.run import run_session
from app.engine.session.stored import import_recording
from app.engine.session.summary import session_summary
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import SearchSpace
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.engine.strategies import base
from app.engine.strategies.base import Search, Strategy

SPACE = grid(10, 6)
LEAST_ENERGY = Objective(Goal("energy_j", maximise=False))
ABOUT = About("Fake GPU", "fake", Objective(Goal("energy_j", maximise=False)))
FASTEST = Objective(Goal("time_s", maximise=False))


def made(runner: FakeRunner, **changes: object) -> SessionPlan:
    return plan(SPACE, runner, **{"strategy": "test_time_then_measure", "objective": LEAST_ENERGY, **changes})


def run(store: Store, runner: FakeRunner, **changes: object) -> SessionResult:
    return run_session(made(runner, **changes), store, Listener(), threading.Event())


def test_rows_are_timed_and_some_of_them_measured_and_both_are_counted() -> None:
    runner = FakeTimer(SPACE)
    with Store() as store:
        result = run(store, runner)
        record = store.session(result.session)
    failed = [row for row in range(60) if row % 7 == 3]
    fastest = [start + 9 if start + 9 not in failed else start + 8 for start in range(0, 60, 10)]
    assert sorted(runner.only_timed) == list(range(60))
    assert runner.measured == fastest
    assert (result.progress.evaluated, result.progress.timed, result.progress.failed) == (6, 54, len(failed))
    assert (record.evaluated, record.timed) == (6, 54)
    table = result.table
    assert len(table) == 60
    assert sorted(table.rows()[~table.timed()]) == fastest
    timed = np.isin(table.rows(), failed) | table.timed()
    assert np.isnan(table.values("energy_j")[timed]).all()
    assert np.isfinite(table.values("energy_j")[~timed]).all()


def test_a_third_of_those_measured_are_measured_again_at_the_end_however_many_were_timed() -> None:
    class Stating(FakeTimer):
        def finish(
            self,
            measurements: Sequence[Measurement],
            again: Sequence[int],
            objective: Objective,
            stop: threading.Event,
        ) -> Sequence[Measurement]:
            return seen_again(self, measurements, again, stop)

    runner = Stating(SPACE)
    with Store() as store:
        result = run(store, runner)
    assert (result.progress.evaluated, result.progress.timed) == (6, 54)
    assert runner.measured[6:] == runner.measured[:2]


class Foresees(Strategy, name="test_foresees", label="Foresees"):
    """Says what it asks for next."""

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: object) -> Search:
        yield base.Batch([0, 1], depth=Depth.TIME, likely=[2, 5])
        yield base.Batch([2])


def test_a_runner_that_compiles_ahead_hears_what_is_likely_before_it_times() -> None:
    did: list[object] = []

    class Ahead(FakeTimer):
        def expect(self, rows: Sequence[int]) -> None:
            did.append(("likely", *rows))

    with Store() as store:
        run(store, Ahead(SPACE, before=did.append), strategy="test_foresees")
    assert did == [("likely", 2, 5), 0, 1, 2]


def test_the_best_is_one_that_was_measured() -> None:
    with Store() as store:
        result = run(store, FakeTimer(SPACE))
    best = result.table.measurement(result.progress.best_index)
    assert best.depth is Depth.ENERGY
    assert result.progress.best_value == best.values["energy_j"] == 2.0 + 9


@pytest.mark.parametrize(
    ("runner", "objective"), [(FakeRunner, LEAST_ENERGY), (FakeTimer, FASTEST)], ids=["cannot", "needs none"]
)
def test_where_timing_saves_nothing_everything_is_measured_at_once(
    runner: type[FakeRunner], objective: Objective
) -> None:
    chosen = runner(SPACE)
    with Store() as store:
        result = run(store, chosen, objective=objective)
    assert chosen.measured == list(range(60))
    assert not getattr(chosen, "only_timed", [])
    assert (result.progress.evaluated, result.progress.timed) == (60, 0)


def test_a_front_with_energy_needs_energy_though_the_objective_does_not() -> None:
    runner = FakeTimer(SPACE)
    with Store() as store:
        run(store, runner, objective=Objective(FASTEST.goal, (FASTEST.goal, LEAST_ENERGY.goal)))
    assert runner.only_timed


def test_a_budget_counts_what_is_measured_and_bounds_what_is_timed() -> None:
    runner = FakeTimer(SPACE)
    with Store() as store:
        result = run(store, runner, max_evaluations=4, strategy_options={"chunk": 30})
    assert result.reason == "the budget is used up"
    assert result.progress.evaluated == 4 == len(runner.measured)
    # the first chunk is timed only up to the room there is; then what was to be timed is measured, which is more
    assert len(runner.only_timed) == 4 * Strategy.timed_for_one


def test_a_compile_error_counts_once_and_is_never_tried_again() -> None:
    class Asks(base.Strategy, name="test_asks_again", label="Asks again"):
        """Times a row that fails, and asks for its energy all the same."""

        def search(self, space, rng, batch, options):  # type: ignore[no-untyped-def]
            heard = yield base.Batch([3, 4], depth=Depth.TIME)
            assert [outcome.state for outcome in heard] == [State.RUNTIME, State.OK]
            [outcome] = yield [3]
            assert outcome.cost == np.inf

    runner = FakeTimer(SPACE)
    with Store() as store:
        result = run(store, runner, strategy="test_asks_again")
    assert result.state is SessionState.DONE, result.reason
    assert (runner.only_timed, runner.measured) == ([3, 4], [])
    assert (result.progress.evaluated, result.progress.timed, result.progress.failed) == (0, 2, 1)


def test_a_timed_row_that_fails_when_it_is_measured_is_a_failure() -> None:
    class Fails(FakeTimer):
        def answer(self, row: int, depth: Depth) -> Measurement:
            found = super().answer(row, depth)
            failed = replace(found, state=State.RUNTIME, values={}, error="the board fell off")
            return failed if depth is Depth.ENERGY and row == 9 else found

    with Store() as store:
        result = run(store, Fails(SPACE))
        again = store.load(result.session).table
    for table in (result.table, again):
        at = table.rows().tolist().index(9)
        assert (table.measurement(at).state, bool(table.timed()[at])) == (State.RUNTIME, False)
        assert np.isnan(table.values("time_s")[at])


def test_an_entry_is_deepened_in_its_place_and_who_reads_an_older_state_keeps_it() -> None:
    table = ResultTable(SPACE)
    whole = measurement_of(SPACE, 9)
    table.append(replace(whole, values={"time_s": 0.1}, depth=Depth.TIME))
    before = table.so_far()
    table.append(whole)
    assert (len(before), len(table)) == (1, 1)
    assert (before.timed()[0], table.timed()[0]) == (True, False)
    assert (before.values("time_s")[0], table.values("time_s")[0]) == (0.1, whole.values["time_s"])
    assert np.isnan(before.values("energy_j")[0])
    assert (before.deepened, table.deepened) == (0, 1)
    assert (before.measurement(0).depth, table.measurement(0)) == (Depth.TIME, whole)


def test_evaluations_come_in_the_order_in_which_they_were_measured_also_from_the_store() -> None:
    """Six rows are timed, the third and then the first of them measured: live, stated again, and read back."""
    measured = [measurement_of(SPACE, row) for row in (4, 5, 6, 7, 8, 9)]
    looks = [replace(each, depth=Depth.TIME, values={"time_s": each.values["time_s"]}) for each in measured]
    looks += [measured[2], measured[0]]
    table = ResultTable(SPACE)
    for look in looks:
        before = table.so_far()
        table.append(look)
    assert table.evaluated().tolist() == [2, 0]
    assert before.evaluated().tolist() == [2], "who reads an older state keeps it"
    again = table.restated([table.measurement(at) for at in range(len(table))], {})
    assert again.evaluated().tolist() == [2, 0]
    with Store() as store:
        session = store.create_session(made(FakeTimer(SPACE)))
        for look in looks:
            store.append(session, [look])
        kept = store.load(session).table
        assert kept.rows()[kept.evaluated()].tolist() == [6, 4]
        curve = analyse(kept, LEAST_ENERGY).best_so_far
    energies_j = [measured[at].values["energy_j"] for at in (2, 0)]
    assert curve.tolist() == [energies_j[0], min(energies_j)]


@pytest.mark.parametrize("stop_after", [1, 5, 10, 11, 30])
def test_a_resumed_session_knows_both_and_repeats_neither(stop_after: int, tmp_path: Path) -> None:
    whole = FakeTimer(SPACE)
    stop, seen = threading.Event(), [0]

    def count(row: int) -> None:
        seen[0] += 1
        if seen[0] > stop_after:
            stop.set()

    cut, rest = FakeTimer(SPACE, before=count), FakeTimer(SPACE)
    with Store() as store:
        uncut = run(store, whole)
        first = run_session(made(cut), store, Listener(), stop)
        assert first.state is SessionState.STOPPED
        result = run(store, rest, resume=first.session)
    assert cut.only_timed + rest.only_timed == whole.only_timed
    assert cut.measured + rest.measured == whole.measured
    assert (result.progress.evaluated, result.progress.timed) == (uncut.progress.evaluated, uncut.progress.timed)
    assert sorted(result.table.rows()) == sorted(uncut.table.rows())


def test_time_ends_a_session_between_two_timings() -> None:
    with Store() as store:
        slow = FakeTimer(SPACE, before=lambda row: threading.Event().wait(0.01))
        result = run(store, slow, max_seconds=0.15)
    assert result.reason == "the time is used up"
    assert 0 < len(slow.only_timed) + len(slow.measured) < 40


@pytest.mark.parametrize("stop_after", [3, 12, 17, 40])
def test_auto_is_resumed_as_if_it_had_never_stopped(stop_after: int) -> None:
    """Here the slowest row needs the least energy."""
    auto = {"strategy": "auto", "max_evaluations": 16}
    whole, stop, seen = FakeTimer(SPACE), threading.Event(), [0]

    def count(row: int) -> None:
        seen[0] += 1
        if seen[0] > stop_after:
            stop.set()

    cut, rest = FakeTimer(SPACE, before=count), FakeTimer(SPACE)
    with Store() as store:
        uncut = run(store, whole, **auto)
        first = run_session(made(cut, **auto), store, Listener(), stop)
        result = run(store, rest, resume=first.session, **auto)
    assert uncut.progress.timed > 0
    assert uncut.progress.best_value == 2.0, "row 0"
    assert not set(cut.measured) & set(rest.measured)
    assert not set(cut.only_timed) & set(rest.only_timed)
    assert result.progress.best_value == uncut.progress.best_value
    assert sorted(cut.measured + rest.measured) == sorted(whole.measured)


@pytest.mark.parametrize("write", [write_csv, write_cache, write_t4])
def test_exported_and_read_back_each_row_has_its_depth(write: Callable[..., Path], tmp_path: Path) -> None:
    with Store() as store:
        table = run(store, FakeTimer(SPACE)).table
        path = write(table, tmp_path / ("session.csv" if write is write_csv else "session.json"), ABOUT)
        recording = read_recording(path)
        depth_of = {tuple(m.configuration.values()): m.depth for m in recording.measurements()}
        whole = [table.measurement(index) for index in range(len(table))]
        assert depth_of == {tuple(m.configuration.values()): m.depth for m in whole}
        assert {*depth_of.values()} == {Depth.TIME, Depth.ENERGY}
        # replayed, what was only timed has no energy to show, and the replay comes to an end all the same
        replayed = plan_replay(path, SearchOptions(strategy="brute_force", objective=LEAST_ENERGY.goal))
        result = run_session(replayed, store, Listener(), threading.Event())
        assert len(result.table) == len(table)
        assert result.progress.best_value == 2.0 + 9
        kept = store.load(import_recording(store, recording)).table
        assert int(kept.timed().sum()) == int(table.timed().sum())


def test_analyses_and_summaries_count_them_apart() -> None:
    with Store() as store:
        result = run(store, FakeTimer(SPACE), objective=Objective(LEAST_ENERGY.goal, (FASTEST.goal, LEAST_ENERGY.goal)))
        summary = session_summary(result.table, result.plan)
        words = {figure.label: str(figure.value) for figure in describe_session(result.plan, result.table).figures}
    assert (summary["evaluated"], summary["timed"]) == (6, 54)
    assert words["Measured"].startswith("6 ")
    assert words["Only timed"] == "54"
    assert summary["best"]["values"].keys() == {"time_s", "energy_j"}
    on_front = [point["values"] for point in summary["front"]]
    assert on_front
    assert all("energy_j" in values for values in on_front)
