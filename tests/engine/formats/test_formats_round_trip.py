"""Any session, written in any format and read back, is the same session; any of them can be gone on with."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.formats.csv_table import write_csv
from app.engine.formats.kernel_tuner import write_cache
from app.engine.formats.own import About
from app.engine.formats.read import read_recording
from app.engine.formats.recording import Recording
from app.engine.formats.t4 import write_t4
from app.engine.report.export import export_session
from app.engine.results.measurement import Measurement, State, Value
from app.engine.results.objectives import Goal, Limit, Objective
from app.engine.session.follow import with_recording
from app.engine.session.live_session import SessionResult
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_replay, plan_specification
from app.engine.session.run import run_session
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table
from app.engine.specification.plan import SearchOptions, SessionPlan
from app.engine.store.database import Store
from app.sensors.clock import VirtualClock
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

Write = Callable[..., Path]
WRITERS: dict[str, Write] = {"cache.json": write_cache, "t4.json": write_t4, "session.csv": write_csv}

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
ODD_NAMES = [
    "state",
    "error",
    "gpu",
    "time",
    "time_s",
    "x [J]",
    '"q"',
    "a (95 % low)",
    "timestamp",
    "b]",
    "compile_time",
]
NAMES = st.sampled_from(ODD_NAMES) | TEXT.filter(lambda text: text and text != "wattridge")
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
POSITIVE = st.floats(0, 1e12, allow_nan=False)
VALUES: st.SearchStrategy[Value] = st.integers(-(2**50), 2**50) | st.booleans() | NUMBERS | TEXT


@st.composite
def sessions(draw: st.DrawFn) -> tuple[ResultTable, About]:
    """Up to a dozen measurements of odd parameters, some failed, with everything that may be known of them."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    columns = [draw(st.lists(VALUES, min_size=1, max_size=4, unique_by=lambda v: (v, type(v) is str))) for _ in names]
    rows = draw(
        st.lists(st.tuples(*(st.sampled_from(column) for column in columns)), min_size=1, max_size=12, unique=True)
    )
    space = space_of_table(dict.fromkeys(names, ()), rows)
    figures = draw(st.lists(NAMES.filter(lambda name: name not in names), min_size=1, max_size=4, unique=True))
    table = ResultTable(space)
    for row in rows:
        configuration = dict(zip(names, row, strict=True))
        at = space.row_of(configuration)
        assert at is not None
        table.append(draw(measurements(at, space.configuration(at), figures)))
    goals = [
        Goal(name, draw(st.booleans())) for name in draw(st.lists(st.sampled_from(figures), min_size=1, unique=True))
    ]
    bounds = draw(st.lists(st.builds(Limit, TEXT.filter(bool), st.booleans(), NUMBERS), max_size=2))
    front = tuple(goals) if len(goals) > 1 else ()
    objective = Objective(goals[0], front, tuple(bounds), draw(st.booleans()) if front else True)
    return table, About(
        draw(TEXT) or "a board",
        draw(TEXT) or "a kernel",
        objective,
        "simulated",
        draw(TEXT | st.sampled_from(["4096", "4096, 16"])),
    )


@st.composite
def measurements(draw: st.DrawFn, row: int, configuration: dict[str, Value], figures: list[str]) -> Measurement:
    state = draw(st.sampled_from(State))
    ok = state is State.OK
    values = draw(st.dictionaries(st.sampled_from(figures), NUMBERS, min_size=int(ok)))
    values = {name: abs(value) or 1.0 if name == "time_s" else value for name, value in values.items()}
    ends = {
        name: st.tuples(
            st.floats(max_value=value, allow_infinity=False), st.floats(min_value=value, allow_infinity=False)
        )
        for name, value in values.items()
    }
    return Measurement(
        row=row,
        configuration=configuration,
        state=state,
        values=values,
        intervals={name: draw(ends[name]) for name in values if draw(st.booleans())},
        error="" if ok else draw(TEXT),
        message=draw(TEXT),
        window_ns=draw(st.none() | st.tuples(st.integers(0, 2**62), st.integers(0, 2**62))),
        observed_clock_mhz=draw(POSITIVE | st.just(math.nan)),
        event_reasons=draw(st.integers(0, 2**40)),
        power_source=draw(TEXT),
        source=draw(st.sampled_from(["nvml", "simulated", "recorded"])),
        timestamp_s=draw(st.floats(0, 4e9) | st.just(math.nan)),
        cost_s=draw(POSITIVE),
        board=draw(TEXT),
    )


def facts_of(measurement: Measurement) -> dict[str, Any]:
    """What a session must give back, NaN as None: all but the row, and what was measured where others are stated."""
    facts = dataclasses.asdict(measurement) | {"row": None, "as_measured": None}
    return {name: None if value != value else value for name, value in facts.items()}


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(session=sessions())
@pytest.mark.parametrize("name", WRITERS)
def test_any_session_comes_back_whole(name: str, session: tuple[ResultTable, About]) -> None:
    table, about = session
    with tempfile.TemporaryDirectory() as folder:
        path = WRITERS[name](table, Path(folder) / name, about)
        again = read_recording(path)
    assert_same(again, table, about)


@pytest.mark.parametrize("name", ["{a", "[a", " {a", "\ufeff{a", '"a'])
def test_a_session_as_csv_is_not_taken_for_json(name: str, tmp_path: Path) -> None:
    table = ResultTable(space_of_table({name: ()}, [(1,)]))
    table.append(Measurement(0, {name: 1}, State.OK, {"time_s": 0.5}, source="recorded"))
    about = About("board", "kernel", Objective(Goal("time_s", False)), "recorded")
    assert_same(read_recording(write_csv(table, tmp_path / "session.csv", about)), table, about)


def assert_same(again: Recording, table: ResultTable, about: About) -> None:
    assert again.space().names == table.space.names
    read = [facts_of(m) for m in again.in_file_order()]
    assert read == [facts_of(table.measurement(index)) for index in range(len(table))]
    assert again.objective == about.objective
    assert (again.device, again.kernel, again.problem_size) == (about.device, about.kernel, about.problem_size)
    assert again.value_names == tuple(n for n in table.value_names if n in again.value_names)
    for row in range(len(again)):
        assert again.space().row_of(again.measurement(row).configuration) == row


# --- real sessions ----------------------------------------------------------------------------------------------------


def gemm_plan(evaluations: int) -> tuple[SessionPlan, SimulatedGpu]:
    gpu = SimulatedGpu(load_twin("a100"), seed=3, clock=VirtualClock())
    spec = load_specification(resources() / "examples" / "gemm.toml")
    return plan_specification(
        spec, gpu, SearchOptions(strategy="genetic_algorithm", max_evaluations=evaluations, seed=5)
    ), gpu


def run(plan: SessionPlan, folder: Path) -> SessionResult:
    with Store(folder / "s.sqlite") as store:
        return run_session(plan, store, lambda event: None, threading.Event())


@pytest.mark.parametrize("kind", ["csv", "cache", "t4"])
def test_a_session_goes_on_from_any_format(kind: str, tmp_path: Path) -> None:
    spec = load_specification(resources() / "examples" / "gemm.toml")
    plan, gpu = gemm_plan(30)
    first = run(plan, tmp_path)
    file, _ = export_session(plan, first.table, 1, None, tmp_path, [kind])
    assert plan_replay(file).objective == plan.objective
    recording = read_recording(file)
    assert [facts_of(m) for m in recording.in_file_order()] == [
        facts_of(first.table.measurement(index)) for index in range(len(first.table))
    ]
    plan, gpu = gemm_plan(45)
    plan = with_recording(plan, spec, recording)
    assert plan.space.notes[-1] == f"30 of 30 measurements taken over from {file.name}"
    again = run(plan, tmp_path)
    gpu.close()
    assert len(again.table) == 45
    assert [facts_of(again.table.measurement(i)) for i in range(30)] == [
        facts_of(first.table.measurement(i)) for i in range(30)
    ]
    rows = [again.table.measurement(i).row for i in range(45)]
    assert len(set(rows)) == 45, "what was taken over is not measured again"
    with Store(tmp_path / "s.sqlite") as store:
        assert len(store.load(again.session).table) == 45, "and is kept with the session"


def test_what_is_not_in_the_space_is_said_in_one_line(tmp_path: Path) -> None:
    spec = load_specification(resources() / "examples" / "gemm.toml")
    plan, gpu = gemm_plan(12)
    result = run(plan, tmp_path)
    file, _ = export_session(plan, result.table, 1, None, tmp_path, ["cache"])
    clocks = gpu.graphics_clocks_mhz()
    narrow = plan_specification(spec, gpu, SearchOptions(device_settings={"graphics_clock_mhz": (1005, min(clocks))}))
    taken = with_recording(narrow, spec, read_recording(file))
    kept = (1005, min(clocks), "untouched")
    inside = [m for m in read_recording(file).measurements() if m.configuration["graphics_clock_mhz"] in kept]
    assert len(taken.known) == len(inside) < 12
    note = taken.space.notes[-1]
    assert f"{len(inside)} of 12 measurements taken over" in note
    assert f"{12 - len(inside)} are of no configuration in this space" in note
    gpu.close()


def test_a_file_of_another_board_is_refused(tmp_path: Path) -> None:
    spec = load_specification(resources() / "examples" / "gemm.toml")
    plan, gpu = gemm_plan(5)
    file, _ = export_session(plan, run(plan, tmp_path).table, 1, None, tmp_path, ["cache"])
    other = dataclasses.replace(plan, gpu="NVIDIA RTX A4000")
    with pytest.raises(InputError, match="another board, NVIDIA A100"):
        with_recording(other, spec, read_recording(file))
    real = dataclasses.replace(plan, source="nvml")
    with pytest.raises(InputError, match="simulated board"):
        with_recording(real, spec, read_recording(file))
    gpu.close()


def test_names_and_constants_of_other_tuners_are_understood(tmp_path: Path) -> None:
    """Clocks under Kernel Tuner's names, a constant as a parameter of one value, metrics calculated from the time."""
    spec = load_specification(resources() / "examples" / "gemm.toml")
    plan, gpu = gemm_plan(5)
    configuration = plan.space.configuration(7)
    names = {"graphics_clock_mhz": "nvml_gr_clock"}
    entry = {names.get(name, name): value for name, value in configuration.items()} | {"n": 4096}
    space = space_of_table(dict.fromkeys(entry, ()), [tuple(entry.values())])
    table = ResultTable(space)
    table.append(Measurement(0, entry, State.OK, {"time_s": 0.5, "energy_j": 100.0}, source="recorded"))
    about = About("NVIDIA A100-PCIE-40GB", "sgemm", Objective(Goal("time_s", False)))
    taken = with_recording(plan, spec, read_recording(write_cache(table, tmp_path / "c.json", about)))
    (measurement,) = taken.known
    assert measurement.row == 7
    assert measurement.values["GFLOPS/W"] == pytest.approx(2 * 4096**3 / 100.0 / 1e9)
    gpu.close()
