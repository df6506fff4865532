"""A profiler's pass: on a simulated board, joined by configuration, kept with the session, never made twice."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors
from fixtures.engine_fakes import FakeRunner, grid, plan

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.engine.analysis.session_analysis import analyse
from app.engine.results.measurement import Value
from app.engine.results.state import SessionState
from app.engine.runner.profiling.profiler import SimulatedProfiler
from app.engine.session.load import load_specification
from app.engine.session.opened import stored_session
from app.engine.session.planning import plan_specification
from app.engine.session.profiling import ProfilingResult, Wanted, Which, profile_session
from app.engine.session.run import run_session
from app.engine.space.build import build_space
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.engine.workloads.hardware_counters import COUNTERS, counters_of
from app.engine.workloads.profiled import ProfiledKernel
from app.sensors.gpu import Gpu, Load
from app.sensors.select import open_gpu
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.laws import launch_time_s

EVALUATIONS = 20


@pytest.fixture
def board() -> Iterator[Gpu]:
    gpu = open_gpu("simulated:a100", speed=float("inf"))
    yield gpu
    gpu.close()


def tuned(store: Store, board: Gpu, example: str = "gemm", **options: object) -> int:
    spec = load_specification(resources() / "examples" / f"{example}.toml")
    search = SearchOptions(strategy="random_sample", max_evaluations=EVALUATIONS, seed=3, **options)  # type: ignore[arg-type]
    planned = plan_specification(spec, board, search)
    return run_session(planned, store, lambda event: None, threading.Event()).session


def test_counters_join_the_figures_of_the_configurations_that_were_profiled(store: Store, board: Gpu) -> None:
    session = tuned(store, board)
    steps: list[tuple[int, int]] = []
    result = profile_session(store, session, Wanted(Which.BEST, 5), board, on_progress=lambda *step: steps.append(step))
    assert (result.tool, result.known, result.profiled, dict(result.failed)) == ("simulated", 0, 5, {})
    assert steps[0] == (0, 5)
    assert steps[-1] == (5, 5)
    opened = stored_session(store, session)
    known = np.isfinite(opened.table.values("dram_read_byte"))
    assert set(opened.table.rows()[known].tolist()) == set(result.chosen)
    assert opened.plan.units["dram_read_byte"] == "byte"
    assert set(opened.table.value_names) & set(COUNTERS)


def test_what_has_its_counters_is_not_profiled_again(store: Store, board: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    session = tuned(store, board, device_settings={"graphics_clock_mhz": (1005,)})  # each row is a kernel of its own
    asked: list[int] = []
    profile = SimulatedProfiler.profile

    def noted(self: SimulatedProfiler, rows: Sequence[int], stop: threading.Event) -> Iterator[object]:
        asked.extend(rows)
        return profile(self, rows, stop)

    monkeypatch.setattr(SimulatedProfiler, "profile", noted)
    profile_session(store, session, Wanted(Which.BEST, 3), board)
    again = profile_session(store, session, Wanted(Which.BEST, 5), board)
    assert (again.known, again.profiled) == (3, 2)
    assert len(asked) == len(set(asked)) == 5


def test_a_pass_that_is_stopped_goes_on_where_it_was(store: Store, board: Gpu) -> None:
    session = tuned(store, board)
    stop = threading.Event()
    first = profile_session(
        store,
        session,
        Wanted(Which.RANDOM, 10, seed=5),
        board,
        on_progress=lambda done, _: stop.set() if done == 4 else None,
        stop=stop,
    )
    assert first.profiled == 4
    second = profile_session(store, session, Wanted(Which.RANDOM, 10, seed=5), board)
    assert (second.known, second.profiled) == (4, 6)


def test_the_front_is_the_front_and_the_same_kernel_at_other_clocks_is_profiled_once(store: Store, board: Gpu) -> None:
    session = tuned(store, board, device_settings={"graphics_clock_mhz": (1005, 1410)})
    result = profile_session(store, session, Wanted(Which.FRONT), board)
    opened = stored_session(store, session)
    plane = analyse(opened.table, opened.objective, with_difficulty=False).plane
    assert plane is not None
    assert set(result.chosen) == set(opened.table.rows()[plane.front].tolist())
    by_kernel: dict[tuple[object, ...], set[float]] = {}
    for at in range(len(opened.table)):
        measured = opened.table.measurement(at)
        kernel = tuple(v for name, v in measured.configuration.items() if name != "graphics_clock_mhz")
        if "dram_read_throughput" in measured.values:
            by_kernel.setdefault(kernel, set()).add(measured.values["dram_read_throughput"])
    assert all(len(values) == 1 for values in by_kernel.values())


def test_a_simulated_board_counts_what_its_formulas_charge_for(store: Store, board: Gpu) -> None:
    """Its documented truth: bytes of device memory are the traffic of the cost's formula, of which C is written."""
    session = tuned(store, board)
    result = profile_session(store, session, Wanted(Which.RANDOM, 8), board)
    spec = load_specification(resources() / "examples" / "gemm.toml")
    kernel = ProfiledKernel.of(spec, board.limits)  # type: ignore[attr-defined]
    n = float(spec.constants["n"])
    for row in result.chosen:
        space = store.space(session)
        load, metrics = kernel.prepare(space.configuration(row)), store.metrics(session)[row]
        assert metrics["dram__bytes_read.sum"] + metrics["dram__bytes_write.sum"] == pytest.approx(load.traffic_byte)
        assert metrics["dram__bytes_write.sum"] == pytest.approx(4 * n * n)
        assert metrics["smsp__inst_executed.sum"] > load.work_flop / 2 / 32  # a multiply-add of a warp and more
        assert 0 < metrics["sm__inst_executed.avg.per_cycle_active"] < 4


def simulated_counters(
    board: SimulatedGpu, profile: str, constants: dict[str, int], parameters: dict[str, Value]
) -> tuple[Load, dict[str, float]]:
    """Of one configuration, as `counters` has them."""
    kernel = ProfiledKernel(profile, constants, board.limits)
    space = build_space({name: (value,) for name, value in parameters.items()}, (), {}, board.limits)
    (profiled,) = SimulatedProfiler(board, kernel, space).profile([0], threading.Event())
    assert not profiled.error
    return kernel.prepare(parameters), counters_of(profiled.metrics)


TILED: dict[str, Value] = {"block_size_x": 16, "block_size_y": 16, "tile_size_x": 4, "tile_size_y": 4}


@pytest.mark.parametrize(
    ("profile", "constants", "parameters", "loaded_byte", "stored_byte"),
    [  # what a block reads of A and B, all blocks together, C once more where it is read; and what is written
        ("gemm", {"n": 4096}, TILED | {"tile_size_k": 32}, 2 * 4096**3 / 64 * 4, 4096**2 * 4),
        ("blocked_gemm", {"n": 4096}, {"blk_m": 64, "blk_n": 64}, 2 * 4096**3 / 64 * 4 + 4096**2 * 4, 4096**2 * 4),
        ("mm", {"M": 1024, "N": 1024, "K": 1024}, {"block_m": 64, "block_n": 64}, 2 * 1024**3 / 64 * 4, 1024**2 * 4),
    ],
)
def test_loads_and_stores_of_a_simulated_board_are_those_of_its_traffic_and_time(
    board: SimulatedGpu,
    profile: str,
    constants: dict[str, int],
    parameters: dict[str, Value],
    loaded_byte: float,
    stored_byte: float,
) -> None:
    load, counters = simulated_counters(board, profile, constants, parameters)
    time_s = counters["dram_read_byte"] / counters["dram_read_throughput"]
    assert counters["gst_transactions"] == counters["dram_write_byte"] / 32 == stored_byte / 32
    assert counters["gst_requested_throughput"] == pytest.approx(stored_byte / time_s)
    assert counters["gld_requested_throughput"] == pytest.approx(loaded_byte / time_s)
    assert counters["gld_transactions"] == pytest.approx(counters["l2_read_transactions"])
    assert counters["gld_transactions"] >= loaded_byte / 32 * (1 - 1e-9)
    words_of_warps = (loaded_byte + stored_byte) / 4 / 32
    assert words_of_warps / 4 < counters["ldst_executed"] < counters["inst_executed"] - load.work_flop / 2 / 32


def test_what_a_profile_does_not_know_is_not_counted(board: SimulatedGpu) -> None:
    """Loads through the L1 cache alone or by asynchronous copies; fetches; most of other kernels."""
    _, unshared = simulated_counters(board, "gemm", {"n": 1024}, TILED | {"use_shared_memory": 0})
    _, copied = simulated_counters(board, "mm", {"M": 1024, "N": 1024, "K": 1024}, {"copy_async": 1, "stages": 2})
    for counters in (unshared, copied):
        assert counters.keys() >= {"gst_transactions", "gst_requested_throughput", "ldst_executed"}
        assert not counters.keys() & {"gld_transactions", "gld_requested_throughput", "stall_inst_fetch"}
    _, others = simulated_counters(board, "n_body", {"n": 4096}, {"block_size_x": 256})
    assert not [name for name in others if name.startswith(("gld", "gst", "ldst", "dram_read"))]
    assert 0 <= others["stall_memory_dependency"] < 1
    assert "stall_memory_dependency" not in simulated_counters(board, "copy", {"n": 2**24}, {"block_size_x": 256})[1]


def test_the_stall_for_device_memory_is_the_time_that_the_boards_law_adds_for_its_traffic(board: SimulatedGpu) -> None:
    """At a lower clock the same traffic takes a smaller share of the time."""
    load, counters = simulated_counters(board, "vector_add", {"n": 2**26}, {"block_size_x": 256})
    assert 90 < counters["stall_memory_dependency"] <= 100
    shares = []
    for clock_mhz in (1410, 705):
        board.lock_graphics_clock(clock_mhz)
        load, counters = simulated_counters(board, "gemm", {"n": 2048}, TILED)
        time_s = counters["dram_read_byte"] / counters["dram_read_throughput"]
        memory_mhz = board.twin.clocks.memory_mhz[-1]
        alone, _ = launch_time_s(board.twin, replace(load, traffic_byte=0.0), clock_mhz, memory_mhz)
        alone -= board.twin.rate.launch_overhead_us * 1e-6
        shares.append(counters["stall_memory_dependency"] / 100)
        assert time_s * (1 - shares[-1]) == pytest.approx(alone, rel=1e-6)
    assert shares[0] > shares[1] > 0


def test_restating_and_copies_leave_counters_where_they_are(store: Store, board: Gpu) -> None:
    session = tuned(store, board)
    result = profile_session(store, session, Wanted(Which.BEST, 2), board)
    loaded = store.load(session)
    store.restate(session, [loaded.table.measurement(at) for at in range(len(loaded.table))], loaded.record.origin)
    with closing(sqlite3.connect(store.path)) as db, db:
        texts = [text for (text,) in db.execute("SELECT measured FROM measurements WHERE session = ?", (session,))]
    assert not any("dram_read_byte" in text for text in texts)
    copy = store.duplicate(session)
    assert store.metrics(copy).keys() == set(result.chosen)
    store.delete(copy)
    store.purge(older_than_s=-1.0)
    assert store.metrics(copy) == {}


def test_a_store_without_the_table_gets_it_and_a_read_only_one_needs_none(store: Store, board: Gpu) -> None:
    session = tuned(store, board)
    store.close()
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute("DROP TABLE counters")
    with Store(store.path) as again:
        assert again.metrics(session) == {}
        again.keep_counters(session, {0: {"dram__bytes_read.sum": 1.0}}, "test")
        assert again.metrics(session) == {0: {"dram__bytes_read.sum": 1.0}}
    with closing(sqlite3.connect(store.path)) as db, db:
        db.execute('UPDATE counters SET metrics = \'{"x": "damaged"}\'')
    with Store(store.path) as again:
        assert again.metrics(session) == {}


def test_nothing_is_profiled_while_a_session_runs_on_the_same_real_board(store: Store) -> None:
    space, board = grid(), SteadySensors()
    real = {"gpu": "Fake board", "source": "nvml", "origin": {"kind": "specification", "gpu": board.info.uuid}}
    ended = store.create_session(plan(space, FakeRunner(space), **real))
    store.finish(ended, SessionState.DONE)
    running = store.create_session(plan(space, FakeRunner(space), **real))
    with pytest.raises(WattridgeError, match=f"session {running} runs on this GPU"):
        profile_session(store, ended, Wanted(Which.FRONT), board)
    store.finish(running, SessionState.DONE)
    with pytest.raises(InputError, match="no such configuration"):
        profile_session(store, ended, Wanted(Which.FRONT), board)


def test_what_cannot_be_profiled_says_why(store: Store, board: Gpu) -> None:
    session = tuned(store, board)
    other = open_gpu("simulated:h200", speed=float("inf"))
    with pytest.raises(InputError, match="another board"):
        profile_session(store, session, Wanted(Which.BEST, 2), other)
    other.close()
    assert isinstance(profile_session(store, session, Wanted(Which.BEST, 2), board), ProfilingResult)
