"""What the built-in kernels' configurations ask of a board: sensible, rugged, and refused where a board would."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.results.pareto import front
from app.sensors.gpu import Load
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


@pytest.mark.parametrize("name", ["a100", "a4000", "a6000", "h200", "v100", "titan_rtx", "k20x"])
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
    ("changes", "state", "words"),
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
def test_what_a_board_would_refuse_is_refused_with_its_state(changes: dict[str, int], state: str, words: str) -> None:
    with pytest.raises(LaunchRefused, match=words) as caught:
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


PUBLISHED_DGEMM = {  # (dim_m, dim_n, blk_m, blk_n, blk_k, blk_m_a, blk_n_a, blk_m_b, blk_n_b): (GFLOP/s, GFLOPS/W)
    (16, 16, 64, 96, 16, 64, 4, 16, 16): (904, 4.4867),
    (32, 16, 128, 128, 16, 32, 16, 8, 64): (782, 4.5849),
    (16, 16, 128, 128, 8, 64, 4, 8, 32): (703, 4.5754),
    (16, 16, 128, 128, 8, 32, 8, 4, 64): (656, 4.4415),
    (16, 16, 64, 256, 8, 32, 8, 4, 64): (516, 3.8891),
    (16, 16, 128, 128, 2, 128, 2, 2, 128): (389, 3.2539),
    (16, 16, 64, 128, 4, 64, 4, 2, 128): (345, 2.8617),
    (48, 16, 48, 96, 16, 48, 16, 8, 96): (308, 2.3473),
    (64, 16, 64, 64, 16, 64, 16, 16, 64): (311, 2.3488),
    (16, 48, 96, 48, 16, 48, 16, 16, 48): (318, 2.3590),
    (64, 16, 64, 64, 48, 64, 16, 16, 64): (355, 2.4323),
    (32, 16, 64, 64, 24, 64, 8, 8, 64): (633, 3.2919),
    (16, 16, 64, 80, 16, 32, 8, 16, 16): (843, 4.0591),
    (16, 16, 80, 80, 16, 16, 16, 16, 16): (901, 4.4317),
}


def test_the_k20x_orders_the_published_dgemm_kernels_much_as_they_were_measured() -> None:
    # Anzt et al. (2015), table II, at 732 MHz
    names = ("dim_m", "dim_n", "blk_m", "blk_n", "blk_k", "blk_m_a", "blk_n_a", "blk_m_b", "blk_n_b")
    board, constants = load_twin("k20x"), {"n": 4096, "real": "double"}
    found = np.array(
        [
            speed_and_efficiency(
                board,
                load_of("blocked_gemm", dict(zip(names, shape, strict=True)), constants, board.limits),
                732,
            )
            for shape in PUBLISHED_DGEMM
        ]
    )
    measured = np.array(list(PUBLISHED_DGEMM.values()))
    for column in (0, 1):
        assert np.corrcoef(found[:, column], measured[:, column])[0, 1] > 0.8
        assert np.median(np.abs(found[:, column] / measured[:, column] - 1)) < 0.25
    assert found[:, 0].max() == pytest.approx(904, rel=0.15)


def test_the_way_a_blocked_product_reads_its_stripes_matters() -> None:
    tile = {"dim_m": 16, "dim_n": 16, "blk_m": 64, "blk_n": 128, "blk_k": 16, "real": "double"}
    shape = {**tile, "blk_m_a": 32, "blk_n_a": 8, "blk_m_b": 8, "blk_n_b": 32}

    def product(**changes: object) -> Load:
        return load_of("blocked_gemm", {**shape, **changes}, {"n": 4096}, A100.limits)

    plain = product()
    assert plain.precision == "fp64"
    assert plain.work_flop == 2 * 4096**3
    assert product(simd=1).issue_efficiency > plain.issue_efficiency
    assert product(blk_m_b=2, blk_n_b=128).traffic_byte > plain.traffic_byte  # half sectors
    assert product(real="float").traffic_byte < 0.6 * plain.traffic_byte
    uneven = product(blk_m=96)
    assert uneven.work_flop == plain.work_flop  # what the last tiles do beyond the edges is no work
    for wrong in ({"blk_m": 40}, {"blk_m_a": 8}, {"blk_n_a": 32, "blk_m_a": 8}):
        with pytest.raises(LaunchRefused, match="threads"):
            product(**wrong)


def test_a_transpose_through_unpadded_shared_memory_meets_its_banks() -> None:
    def turned(**changes: object) -> Load:
        shape = {"tile_dim": 32, "block_size_x": 32, "block_size_y": 8, "use_padding": 1, **changes}
        return load_of("transpose", shape, {"width": 8192, "height": 8192}, A100.limits)

    padded = turned()
    assert padded.work_flop == 0
    assert padded.traffic_byte == 2 * 8192**2 * 4
    assert turned(use_padding=0).onchip_byte > 10 * padded.onchip_byte
    naive = turned(use_shared_memory=0)
    assert naive.traffic_byte > padded.traffic_byte
    assert naive.onchip_byte > 3 * padded.onchip_byte
    with pytest.raises(LaunchRefused, match="divide"):
        turned(block_size_x=24)


def test_a_stencil_reads_less_the_more_planes_a_block_walks_through() -> None:
    def step(**changes: object) -> Load:
        return load_of("stencil", {"block_size_x": 32, "block_size_y": 8, **changes}, {"n": 256}, A100.limits)

    traffic = [step(tile_size_z=planes).traffic_byte for planes in (1, 4, 16, 64)]
    assert traffic == sorted(traffic, reverse=True)
    assert traffic[-1] > 2 * 256**3 * 4  # each point is read and written at least once
    assert step(keep_planes=1, tile_size_z=16).onchip_byte < step(tile_size_z=16).onchip_byte
    assert step(block_size_x=128, block_size_y=2).traffic_byte > step(block_size_x=32, block_size_y=8).traffic_byte


def test_bodies_shared_by_a_block_are_read_less_and_exact_roots_cost_time() -> None:
    def pulled(**changes: object) -> Load:
        return load_of("n_body", {"block_size_x": 128, "tile_size_x": 2, **changes}, {"n": 65536}, A100.limits)

    plain = pulled()
    assert plain.work_flop == 20 * 65536**2
    assert pulled(tile_size_x=4).onchip_byte < 0.6 * plain.onchip_byte
    assert pulled(vector_width=1).onchip_byte > 3 * plain.onchip_byte
    assert pulled(use_shared_memory=0).onchip_byte > 1.5 * plain.onchip_byte
    assert pulled(use_rsqrt=0).issue_efficiency < 0.7 * plain.issue_efficiency
    few_blocks = pulled(block_size_x=1024, tile_size_x=8)
    assert few_blocks.issue_efficiency <= 8 / A100.limits.multiprocessors


def test_a_reduction_by_few_blocks_cannot_fill_the_memory_bus() -> None:
    def summed(**changes: object) -> Load:
        return load_of("reduction", {"block_size_x": 128, "vector_width": 4, **changes}, {"n": 2**26}, A100.limits)

    one, many = summed(blocks_per_multiprocessor=1), summed(blocks_per_multiprocessor=16)
    assert one.occupancy < 0.25 < many.occupancy
    assert laws.launch_time_s(A100, one, 1410, 1215)[0] > 1.2 * laws.launch_time_s(A100, many, 1410, 1215)[0]
    assert summed(use_shuffle=0).issue_efficiency < summed(use_shuffle=1).issue_efficiency
    added = load_of("vector_add", {"block_size_x": 128}, {"n": 2**20}, A100.limits)
    assert (added.work_flop, added.traffic_byte) == (2**20, 3 * 4 * 2**20)


def test_the_full_load_keeps_every_unit_busy() -> None:
    load = full_load()
    rate = load.work_flop / laws.launch_time_s(A100, load, 1410, 1215)[0]
    assert rate == pytest.approx(0.97 * 6912 * 2 * 1410e6, rel=0.001)


def test_an_unknown_profile_or_a_senseless_value_is_refused() -> None:
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
    except LaunchRefused as error:
        refusal: LaunchRefused | None = error
    else:
        refusal = None
    if refusal is not None:
        assert refusal.state in ("compile", "runtime", "constraints")
    else:
        assert 0 < load.occupancy <= 1
        assert 0 < load.issue_efficiency <= 1
        assert load.traffic_byte > 0
        assert load.onchip_byte >= 0
        point = laws.under_load(twin, load, twin.clocks.graphics_mhz[-1], twin.clocks.memory_mhz[-1])
        assert 0 < point.launch_s < 1e4
        assert 0 <= point.memory_busy <= 1
        assert laws.settled(twin, point)[0] < 2000
