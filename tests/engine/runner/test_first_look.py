"""A board's first session begins with a quick look at its power sensor; the second finds it; no failure stops it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.cuda_bench import Bench
from fixtures.engine_fakes import FakeRunner, Listener, grid, made_by, plan
from fixtures.virtual_cuda import ProcessOfNone, VirtualBoard

from app.base.conversation import Message
from app.base.paths import data_folder
from app.engine.metering.characterisation.store import one_look, save_characterisation, stored_characterisation
from app.engine.results.measurement import State
from app.engine.results.state import SessionState
from app.engine.runner.base import OnPreparation
from app.engine.runner.kernels.compiler import Compiled
from app.engine.runner.kernels.process import KernelFailed
from app.engine.session.events import EngineFault, Event, MeasurementsAdded, Preparing
from app.engine.session.live_session import SessionResult
from app.engine.session.run import SessionRun, run_session
from app.engine.store.database import Store
from app.engine.workloads.source_kernel import Build


def honest(steps: Sequence[Preparing]) -> None:
    """What is done never goes back, and what there is to do never grows."""
    totals = [step.total_s for step in steps]
    assert totals == sorted(totals, reverse=True)
    shares = [step.done_s / step.total_s for step in steps]
    assert shares == sorted(shares)
    assert all(0.0 <= share <= 1.0 for share in shares)
    assert all(step.what for step in steps)


def run(one: Bench, listener: Callable[[Event], None], stop: threading.Event | None = None) -> SessionResult:
    runner = FakeRunner(one.space)  # stands in the plan until it is replaced
    made = replace(plan(one.space, runner), boards=made_by(lambda: one.runner))
    with Store() as store:
        return run_session(made, store, listener, stop or threading.Event())


def test_the_first_session_looks_at_the_sensor_and_the_second_does_not(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    first = Listener()
    prepared_s: list[float] = []

    def hear(event: Event) -> None:
        if isinstance(event, Preparing):
            prepared_s.append(time.monotonic())
        first(event)

    began = time.monotonic()
    result = run(bench("draws_w = [200, 400]", sensors=virtual_board), hear)
    took_s = time.monotonic() - began
    assert result.state is SessionState.DONE
    steps = first.of(Preparing)
    assert len(steps) > 8
    assert "once for this GPU and driver" in steps[-1].what
    honest(steps)
    assert first.events.index(steps[-1]) < first.events.index(first.of(MeasurementsAdded)[0])
    assert not first.of(EngineFault)
    look_s = prepared_s[-1] - prepared_s[0]
    assert result.progress.elapsed_s <= took_s - look_s, "it is no part of the session's time"
    kept = stored_characterisation(virtual_board.info)
    assert kept is not None
    assert kept.chosen == "buffer"
    assert kept.parts == ("quick look",)
    assert kept.seconds <= 8.0
    for index in range(2):
        measurement = result.table.measurement(index)
        assert measurement.power_source == kept.words
        assert measurement.values["power_w"] == pytest.approx(
            float(str(measurement.configuration["draws_w"])), rel=0.01
        )

    second = Listener()
    assert run(bench("draws_w = [200, 400]", sensors=virtual_board), second).state is SessionState.DONE
    assert not second.of(Preparing)
    assert second.of(MeasurementsAdded)


def test_a_board_that_cannot_be_characterised_is_measured_with_defaults_and_reported(
    bench: type[Bench], virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = bench("draws_w = [200, 400]", sensors=virtual_board)

    class Refused(ProcessOfNone):
        def request(self, *_: object, **__: object) -> dict[str, object]:
            raise KernelFailed(State.RUNTIME, "the device is in exclusive use", lost=True)

    monkeypatch.setattr("app.engine.runner.kernels.gpu.RunnerProcess", lambda *_: Refused(virtual_board))
    heard = Listener()
    result = run(one, heard)
    assert result.state is SessionState.DONE
    [fault] = heard.of(EngineFault)
    assert "the device is in exclusive use" in fault.what
    assert "defaults" in fault.what
    assert "wattridge characterise" in fault.remedy
    assert stored_characterisation(virtual_board.info) is None
    assert [result.table.measurement(index).state for index in range(2)] == [State.OK, State.OK]


def test_what_cannot_be_kept_stops_no_session(
    bench: type[Bench], virtual_board: VirtualBoard, own_data_folder: Path
) -> None:
    own_data_folder.mkdir(exist_ok=True)
    (own_data_folder / "characterisations").write_text("in the way")
    heard = Listener()
    assert run(bench("draws_w = [200]", sensors=virtual_board), heard).state is SessionState.DONE
    assert "could not be looked at" in heard.of(EngineFault)[0].what


def test_a_person_who_stops_meanwhile_is_heeded(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    stop = threading.Event()

    def stop_at_the_third(event: Event) -> None:
        heard(event)
        if len(heard.of(Preparing)) == 3:
            stop.set()

    heard = Listener()
    result = run(bench("draws_w = [200, 400]", sensors=virtual_board), stop_at_the_third, stop)
    assert (result.state, len(result.table)) == (SessionState.STOPPED, 0)
    assert len(heard.of(Preparing)) == 3
    assert stored_characterisation(virtual_board.info) is None


def test_a_pause_meanwhile_is_attended_to_and_then_it_is_done(virtual_board: VirtualBoard) -> None:
    space, stop = grid(), threading.Event()

    class Twice(FakeRunner):
        asked = 0

        def prepare(self, rows: Sequence[int], stop: threading.Event, on_progress: OnPreparation) -> None:
            self.asked += 1
            on_progress("once", 1.0, 2.0)
            time.sleep(0.05)
            if self.asked == 1:
                stop.set()

    def attend(run: SessionRun) -> bool:
        stop.clear()
        run.pause()
        run.resume()
        return True

    runner, heard = Twice(space), Listener()
    with Store() as store:
        result = run_session(plan(space, runner, max_evaluations=5), store, heard, stop, attend)
    assert (runner.asked, result.state, len(result.table)) == (2, SessionState.DONE, 5)
    assert len(heard.of(Preparing)) == 2


def test_the_first_rows_compile_while_the_sensor_is_looked_at(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    one = bench("draws_w = [200, 300, 400]", sensors=virtual_board)
    steps: list[Preparing] = []
    one.runner.prepare([0, 1], threading.Event(), lambda *step: steps.append(Preparing(*step)))
    honest(steps)
    deadline = time.monotonic() + 60.0
    while one.runner.compiled < 4 and time.monotonic() < deadline:  # two rows, the comparer, and the load of the look
        time.sleep(0.01)
    assert one.runner.compiled == 4
    assert [measured.state for measured in one.rows()] == [State.OK] * 3
    assert one.runner.compiled == 5, "only the third was left to compile"


def test_rows_that_may_be_asked_for_compile_on_half_of_the_cores(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    one = bench("draws_w = [250, 350]", sensors=virtual_board)  # two compile at once
    compiler = one.runner._compiler
    submit, submitted = compiler.submit, list[Build]()

    def noted(build: Build) -> Future[Compiled]:
        submitted.append(build)
        return submit(build)

    compiler.submit = noted  # type: ignore[method-assign]
    one.runner.expect([1, 0])
    assert len(submitted) == 1, "one at a time"
    one.runner._ahead[1][1].result()
    one.runner.expect([1, 0])
    assert len(submitted) == 2, "the other now, and the first no more"
    assert [measured.state for measured in one.rows()] == [State.OK] * 2
    assert len(submitted) == 2, "nothing that was compiled ahead is asked for again"


def test_arguments_references_and_the_spare_process_are_there_when_the_look_is_done(
    bench: type[Bench], virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []

    class Noting(ProcessOfNone):
        def __init__(self, board: VirtualBoard) -> None:
            super().__init__(board)
            did.append("start")

        def post(self, message: Message, blocks: Sequence[bytes] = ()) -> None:
            did.append(message["do"])
            super().post(message, blocks)

        def request(self, message: Message, blocks: Sequence[bytes] = (), **how: object) -> Message:
            did.append(message["do"])
            return super().request(message, blocks, **how)

    monkeypatch.setattr("app.engine.runner.kernels.gpu.RunnerProcess", lambda *_: Noting(virtual_board))
    one = bench("draws_w = [200, 300]", sensors=virtual_board)
    one.runner.prepare([0, 1], threading.Event(), lambda *_: None)
    look = did.index("begin")  # the first launches
    assert did[:look].count("start") == 3, (
        "the session's, the spare one, that of the look: none opens its context later"
    )
    assert did[:look].count("comparer") >= 1
    did.clear()
    assert [measured.state for measured in one.rows()] == [State.OK] * 2
    assert not {"start", "arguments", "comparer"} & set(did)


def test_where_another_process_looks_its_look_is_awaited(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    one = bench("draws_w = [200]", sensors=virtual_board)
    one.runner.prepare([], threading.Event(), lambda *_: None)
    found = stored_characterisation(virtual_board.info)
    assert found is not None
    for file in (data_folder() / "characterisations").glob("*.json"):
        file.unlink()
    steps: list[Preparing] = []

    def note(what: str, done_s: float, total_s: float) -> None:
        steps.append(Preparing(what, done_s, total_s))
        if len(steps) == 4:  # the other one is done
            save_characterisation(found)

    with one_look(virtual_board.info):
        one.runner.prepare([], threading.Event(), note)
    honest(steps)
    assert "another process" in steps[0].what
    kept = stored_characterisation(virtual_board.info)
    assert kept is not None
    assert kept.timestamp_s == found.timestamp_s


def test_another_process_that_looks_for_ever_stops_no_session(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    heard = Listener()
    with one_look(virtual_board.info):
        result = run(bench("draws_w = [200]", sensors=virtual_board), heard)
    assert result.state is SessionState.DONE
    [fault] = heard.of(EngineFault)
    assert "another process looks at it" in fault.what
