"""What the built-in kernels' configurations ask of a board: sensible, rugged, and refused where a board would."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.analysis.pareto import front
from app.errors import InputError
from app.sensors.load import Load
from app.sensors.simulated import laws
from app.sensors.simulated.profiles import PROFILES, LaunchRefused, full_load, load_of
from app.sensors.simulated.twin import Twin, load_twin

GEMM = {"block_size_x": 16, "block_size_y": 16, "tile_size_x": 4, "tile_size_y": 4}
A100 = load_twin("a100")


def gemm(**changes: object) -> Load:
    return load_of("gemm", {**GEMM, **changes}, {"n": 4096}, A100.limits)


def gemm_space() -> Iterator[dict[str, int]]:
    for x, y, tile_x, tile_y in itertools.product([16, 32, 64], [1, 2, 4, 8, 16, 32], [1, 2, 4, 8], [1, 2, 4, 8]):
        if 32 <= x * y <= 1024 and tile_x * tile_y <= 32:
            yield {"block_size_x": x, "block_size_y": y, "tile_size_x": tile_x, "tile_size_y": tile_y}


def speed_and_efficiency(twin: Twin, load: Load, clock: int) -> tuple[float, float]:
    """(GFLOP/s, GFLOPS/W)"""
    point, power, _ = laws.settled_under_limits(
        twin, load, clock, twin.clocks.memory_mhz[-1], twin.power.limit_default_w
    )
    rate = load.work_flop / point.launch_s / 1e9
    return rate, rate / power


@pytest.mark.parametrize("name", ["a100", "a4000", "h200", "v100", "titan_rtx", "k20x"])
def test_the_gemm_space_spreads_tenfold_and_its_front_trades_speed_for_efficiency_along_the_clock(name: str) -> None:
    twin = load_twin(name)
    clocks = [int(c) for c in twin.clocks.graphics_mhz[:: max(1, len(twin.clocks.graphics_mhz) // 12)]]
    loads = []
    for configuration in gemm_space():
        try:
            loads.append(load_of("gemm", configuration, {"n": 4096}, twin.limits))
        except LaunchRefused:
            continue
    points = np.array([speed_and_efficiency(twin, load, clock) for clock in clocks for load in loads])
    clock_of = np.repeat(clocks, len(loads))
    at_top = points[clock_of == clocks[-1]]
    assert len(loads) > 150
    assert at_top[:, 0].max() > 10 * at_top[:, 0].min()
    best = front(points, [True, True])
    assert len(best) >= 3
    assert len(set(clock_of[best])) >= 2
    fastest, efficient = points[:, 0].argmax(), points[:, 1].argmax()
    assert clock_of[fastest] > clock_of[efficient]
    assert points[efficient, 1] > points[fastest, 1]


def test_bigger_tiles_reuse_more_and_need_less_traffic() -> None:
    small, big = gemm(tile_size_x=1, tile_size_y=1), gemm(tile_size_x=8, tile_size_y=8)
    assert small.work_flop == big.work_flop == 2 * 4096**3
    assert big.traffic_byte < small.traffic_byte
    assert big.onchip_byte < small.onchip_byte / 3
    assert big.traffic_byte >= 3 * 4096**2 * 4  # each matrix at least once
    assert big.occupancy < small.occupancy


def test_spilled_registers_are_slow_but_not_refused() -> None:
    # 1024 threads leave 64 registers each, and 8 x 8 outputs need more
    tile = {"tile_size_x": 8, "tile_size_y": 8, "tile_size_k": 8}
    fits, spills = gemm(**tile), gemm(**tile, block_size_x=32, block_size_y=32)
    assert spills.onchip_byte > 1.5 * fits.onchip_byte
    assert spills.issue_efficiency < fits.issue_efficiency


@pytest.mark.parametrize(
    ("changes", "state", "told"),
    [
        ({"block_size_x": 64, "block_size_y": 32}, "compile", "shared memory"),
        (
            {"block_size_x": 64, "block_size_y": 32, "tile_size_k": 8, "tile_size_x": 1, "tile_size_y": 1},
            "runtime",
            "2048",
        ),
        ({"tile_size_x": 3}, "compile", "multiple"),
    ],
)
def test_what_a_board_would_refuse_is_refused_with_its_state(changes: dict[str, int], state: str, told: str) -> None:
    with pytest.raises(LaunchRefused, match=told) as caught:
        gemm(**changes)
    assert caught.value.state == state


def test_precision_and_optional_parameters_matter() -> None:
    plain = gemm()
    assert gemm(precision="fp64").precision == "fp64"
    assert gemm(precision="fp64").traffic_byte > 1.5 * plain.traffic_byte
    assert gemm(vector_width=4).onchip_byte < plain.onchip_byte
    assert gemm(use_shared_memory=0).issue_efficiency < plain.issue_efficiency
    assert gemm(unroll=1).issue_efficiency < plain.issue_efficiency
    assert gemm(colour="red") == plain  # unknown names have no effect


def test_padding_removes_the_bank_conflicts_of_a_convolution() -> None:
    # rows of 18 + 14 = 32 words: the two rows that a warp of 16 x 2 reads meet in the same banks
    configuration = {"block_size_x": 2, "block_size_y": 32, "tile_size_x": 9, "tile_size_y": 1}
    plain = load_of("convolution", {**configuration, "use_padding": 0}, {}, A100.limits)
    padded = load_of("convolution", {**configuration, "use_padding": 1}, {}, A100.limits)
    assert padded.onchip_byte < plain.onchip_byte / 3
    assert plain.work_flop == padded.work_flop == 2 * 4096**2 * 15**2


def test_streams_move_their_bytes_and_wider_vectors_help_few_threads() -> None:
    clock, memory = 1410, 1215
    times = {}
    for vector in (1, 4):
        load = load_of(
            "copy", {"block_size_x": 32, "vector_width": vector, "items_per_thread": 4}, {"n": 2**26}, A100.limits
        )
        assert load.traffic_byte == 2 * 4 * 2**26
        times[vector] = laws.launch_time_s(A100, load, clock, memory)[0]
    assert times[4] < 0.9 * times[1]
    dot = load_of("dot", {"block_size_x": 256}, {"n": 2**20}, A100.limits)
    assert dot.work_flop == 2 * 2**20
    with pytest.raises(LaunchRefused, match="multiple"):
        load_of("copy", {"vector_width": 4, "items_per_thread": 6}, {}, A100.limits)
    with pytest.raises(LaunchRefused, match="warps"):
        load_of("dot", {"block_size_x": 48}, {}, A100.limits)


def test_the_full_load_keeps_every_unit_busy() -> None:
    load = full_load()
    rate = load.work_flop / laws.launch_time_s(A100, load, 1410, 1215)[0]
    assert rate == pytest.approx(0.97 * 6912 * 2 * 1410e6, rel=0.001)


def test_an_unknown_profile_or_a_senseless_value_is_told() -> None:
    with pytest.raises(InputError, match="gemm, convolution, dot, copy"):
        load_of("fft", {}, {}, A100.limits)
    for value in (0, -4, 2.5, "16", float("nan"), 10**9, True, None):
        with pytest.raises(InputError, match="block_size_x"):
            gemm(block_size_x=value)
    with pytest.raises(InputError, match="precision"):
        gemm(precision="fp12")


@settings(max_examples=150, deadline=None)
@given(
    profile=st.sampled_from(PROFILES),
    values=st.dictionaries(
        st.sampled_from(
            ["block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "vector_width", "items_per_thread", "unroll"]
        ),
        st.sampled_from([1, 2, 3, 4, 5, 7, 8, 16]),
    ),
    n=st.sampled_from([64, 100, 1024, 4096]),
    board=st.sampled_from(["a100", "k20x", "titan_rtx"]),
)
def test_every_configuration_is_costed_or_refused(profile: str, values: dict[str, int], n: int, board: str) -> None:
    twin = load_twin(board)
    try:
        load = load_of(profile, values, {"n": n}, twin.limits)
    except LaunchRefused:
        return
    assert 0 < load.occupancy <= 1
    assert 0 < load.issue_efficiency <= 1
    assert load.traffic_byte > 0
    assert load.onchip_byte >= 0
    point = laws.under_load(twin, load, twin.clocks.graphics_mhz[-1], twin.clocks.memory_mhz[-1])
    assert 0 < point.launch_s < 1e4
    assert 0 <= point.memory_busy <= 1
    assert laws.settled(twin, point)[0] < 2000
