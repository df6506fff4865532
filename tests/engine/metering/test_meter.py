"""The meter reads the true power of known boards through slow, lagging and averaging sensors."""

from __future__ import annotations

import threading
from dataclasses import replace
from statistics import median

import pytest
from fixtures.fake_board import CLOCKS, HEAVY, IDLE_W, LIGHT, FakeBoard
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import WattridgeError
from app.engine.control.guard import DeviceGuard
from app.engine.metering.characterisation.characterise import characterise, wave_loads
from app.engine.metering.characterisation.store import save_characterisation
from app.engine.metering.confidence import confidence_interval
from app.engine.metering.meter import Meter
from app.engine.metering.power_source import PowerSensor
from app.engine.metering.window import Window
from app.engine.models.sweep import spread_clocks, sweep_clocks
from app.sensors.clock import VirtualClock
from app.sensors.event_reasons import EventReason
from app.sensors.gpu import Load
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.profiles import full_load
from app.sensors.simulated.twin import Twin, load_twin, twin_names
from app.sensors.throttling import mark, shares_between

BOARDS = {
    "buffer": {"buffer": True},
    "hopper and a100, instant": {"refresh_s": 0.1, "averaging_s": 0.025},
    "turing": {"refresh_s": 0.1, "averaging_s": 0.1},
    "volta": {"refresh_s": 0.02, "averaging_s": 0.01},
    "one second average": {"refresh_s": 0.1, "averaging_s": 1.0},
}


@pytest.mark.parametrize("sensor", BOARDS)
def test_power_time_and_energy_are_the_loads_own_whatever_ran_before(sensor: str) -> None:
    board = FakeBoard(**BOARDS[sensor])  # type: ignore[arg-type]
    meter = Meter(board)
    for load in (HEAVY, LIGHT, HEAVY):
        window = meter.measure(load)
        assert window is not None
        true_w = board.power_w(load)
        assert window.power_w == pytest.approx(true_w, rel=1e-3)
        assert window.time_s == pytest.approx(board.time_s(load))
        assert window.energy_j == pytest.approx(true_w * board.time_s(load), rel=1e-3)
        assert window.settled
    assert not board.busy


def test_a_buffer_needs_a_fraction_of_the_time_of_polling() -> None:
    def cost_s(**sensor: object) -> float:
        board = FakeBoard(**sensor)  # type: ignore[arg-type]
        meter = Meter(board)
        meter.measure(HEAVY)
        start = board.clock.now_ns()
        meter.measure(LIGHT)
        return (board.clock.now_ns() - start) / 1e9

    assert cost_s(buffer=True) < 0.6
    assert 1.0 < cost_s() < 1.6


def test_under_a_cap_windows_go_on_until_the_clock_stands_still() -> None:
    board = FakeBoard(buffer=True, cap_clock_mhz=(1400.0, 1300.0, 1250.0, 1240.0, 1240.0))
    window = Meter(board).measure(HEAVY)
    assert window is not None
    assert window.settled
    assert window.observed_clock_mhz == 1240.0
    assert window.power_w == pytest.approx(IDLE_W + 150.0 * 1240 / 1500, rel=1e-3)


def test_a_cap_that_never_comes_to_rest_is_said() -> None:
    wandering = [1000.0 + 100.0 * (i % 2) for i in range(200)]
    window = Meter(FakeBoard(buffer=True, cap_clock_mhz=wandering)).measure(HEAVY)
    assert window is not None
    assert not window.settled


class LateClock(VirtualClock):
    """The program is held up once: at the given look at the clock, so much has passed since what it did before."""

    def __init__(self) -> None:
        super().__init__()
        self.looks, self.late_at, self.late_s = 0, 0, 0.0

    def hold_up(self, at: int, late_s: float) -> None:
        self.looks, self.late_at, self.late_s = 0, at, late_s

    def now_ns(self) -> int:
        self.looks += 1
        if self.looks == self.late_at:
            self.wait(self.late_s)
        return super().now_ns()


SLOW = PowerSensor("characterised", "power_average_w", 0.1, averaging_s=1.0, window_s=0.5)


@pytest.mark.parametrize(("sensor", "late_s"), [("buffer", 3.0), ("buffer", 12.0), ("polled", 12.0)])
def test_a_program_that_is_held_up_anywhere_still_reads_the_power(
    sensor: str, late_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a board that runs 200 times as fast, 60 ms of waiting for the processor are 12 s of its time."""
    at = 1
    while True:
        board = FakeBoard(buffer=True) if sensor == "buffer" else FakeBoard(refresh_s=0.1, averaging_s=1.0)
        clock = board.clock = LateClock()
        if sensor == "polled":
            monkeypatch.setattr("app.engine.metering.meter.find_sensor", lambda *_, **__: SLOW)
        meter = Meter(board)
        meter.measure(HEAVY)
        clock.hold_up(at, late_s)
        window = meter.measure(LIGHT)
        assert window is not None
        assert window.power_w == pytest.approx(board.power_w(LIGHT), rel=2e-3), f"held up at look {at}"
        if clock.looks < at:
            break
        at += 1 if sensor == "buffer" else 23  # it is looked at ten times as often
    assert at > 20, "looks from the first to the last were held up"


def test_a_sweep_of_a_simulated_board_survives_a_program_that_is_held_up_again_and_again() -> None:
    """The H200's driver keeps 2.4 s of samples, and the window's are asked for after its end."""

    class Often(LateClock):
        def now_ns(self) -> int:
            if self.looks == 7:
                self.hold_up(1, 3.0)
            return super().now_ns()

    twin = load_twin("h200")  # without leakage: a board that waits cools down, and truly draws less
    twin = replace(twin, power=replace(twin.power, leakage_share=0.0))
    board, punctual = SimulatedGpu(twin, clock=Often()), SimulatedGpu(twin, clock=VirtualClock())
    known, sweep = (sweep_clocks(gpu, DeviceGuard(gpu), points=4) for gpu in (punctual, board))
    assert sweep.points.power_w == pytest.approx(known.points.power_w, rel=3e-3)


def test_stopping_leaves_the_board_idle_and_no_figure() -> None:
    stop = threading.Event()
    stop.set()
    board = FakeBoard()
    assert Meter(board).measure(HEAVY, stop=stop) is None
    assert not board.busy


def test_a_board_that_reports_no_power_is_one_clear_line() -> None:
    board = FakeBoard()
    board.channels = tuple(
        replace(c, unavailable="not reported") if c.name == "power_instant_w" else c for c in board.channels
    )
    with pytest.raises(WattridgeError, match="reports no power"):
        Meter(board).measure(HEAVY)


def test_a_sweep_tells_power_and_speed_at_observed_clocks_and_restores() -> None:
    board = FakeBoard(buffer=True)
    board.lock_graphics_clock(700)
    steps: list[tuple[int, int]] = []
    load = Load("known", "fp32", 2e11, 1e9)
    sweep = sweep_clocks(board, DeviceGuard(board), load=load, points=6, on_progress=lambda *at: steps.append(at))
    points = sweep.points
    assert points.requested_mhz is not None
    assert points.clock_mhz.tolist() == points.requested_mhz.tolist() == spread_clocks(CLOCKS, 6)
    assert points.power_w == pytest.approx(IDLE_W + 50.0 * points.clock_mhz / 1500.0, rel=1e-3)
    assert points.rate == pytest.approx(2e11 / sweep.time_s / 1e9)
    assert steps == [(i, 6) for i in range(1, 7)]
    assert points.limited is not None
    assert not points.limited.any()
    assert board.clock_mhz == 700


def test_a_stopped_sweep_keeps_what_it_has() -> None:
    stop = threading.Event()
    board = FakeBoard(buffer=True)
    sweep = sweep_clocks(
        board, DeviceGuard(board), load=HEAVY, stop=stop, on_progress=lambda done, _: stop.set() if done == 2 else None
    )
    assert len(sweep) == 2
    assert board.clock_mhz == 1500.0


@given(st.lists(st.integers(100, 3000), min_size=1, max_size=80, unique=True), st.integers(2, 20))
@settings(max_examples=50, deadline=None)
def test_spread_clocks_are_supported_ascending_and_reach_the_top(supported: list[int], points: int) -> None:
    chosen = spread_clocks(supported, points)
    assert set(chosen) <= set(supported)
    assert chosen == sorted(set(chosen))
    assert chosen[-1] == max(supported)
    assert 1 <= len(chosen) <= points


def test_the_interval_is_students() -> None:
    low, high = confidence_interval([10.0, 12.0, 11.0, 13.0], 4) or (0.0, 0.0)
    assert (low + high) / 2 == pytest.approx(11.5)
    assert high - low == pytest.approx(2 * 3.1824463 * 1.2909944 / 2, rel=1e-6)  # t(0.975, 3), s, sqrt(4)
    assert confidence_interval([10.0], 1) is None


# --- boards without a buffer: polled values are attributed by their averaging, and give the true power ---

LOADS = [  # of spread power, none at a limit on any of the boards
    replace(full_load(), issue_efficiency=rate, occupancy=occupancy)
    for rate, occupancy in ((0.3, 1.0), (0.05, 1.0), (0.2, 0.05), (0.3, 0.2), (0.1, 1.0))
]


def simulated(twin: Twin, seed: int = 0) -> SimulatedGpu:
    return SimulatedGpu(twin, seed=seed, clock=VirtualClock())


def characterised(twin: Twin) -> None:
    gpu = simulated(twin, seed=99)
    found = characterise(gpu, wave_loads(gpu), patience_s=20.0)
    assert found is not None
    save_characterisation(found)


def average_only(name: str) -> Twin:
    twin = load_twin(name)
    return replace(twin, name=f"{name} that averages", sensors=replace(twin.sensors, instant=None, buffer=None))


def errors_and_costs(twin: Twin, loads: list[Load], pause_s: float = 0.05) -> tuple[list[float], list[float]]:
    """Of each load measured: relative error of the mean power, by the physics itself, and seconds it took."""
    gpu = simulated(twin, seed=1)
    meter = Meter(gpu)
    errors, costs = [], []
    for load in loads:
        start_ns = gpu.clock.now_ns()
        window = meter.measure(load)
        assert window is not None
        errors.append(abs(window.power_w / true_power_w(gpu, window) - 1))
        costs.append((gpu.clock.now_ns() - start_ns) / 1e9)
        gpu.clock.wait(pause_s)
    return errors, costs[1:]  # the first one warms up


def true_power_w(gpu: SimulatedGpu, window: Window) -> float:
    return gpu._physics.history.means(*window.window_ns)[0]  # what no sensor tells


@pytest.mark.parametrize("known", [False, True], ids=["not characterised", "characterised"])
@pytest.mark.parametrize("name", twin_names())
def test_measured_power_is_the_true_one(name: str, known: bool) -> None:
    twin = load_twin(name)
    if known:
        characterised(twin)
    errors, _ = errors_and_costs(twin, LOADS * 4)
    assert median(errors) <= 0.003  # the sensors scatter by 0.4 %, and a window holds about ten values
    assert max(errors) <= 0.01


def test_what_is_characterised_needs_less_time() -> None:
    twin = load_twin("v100")  # a new value every 20 ms
    before = median(errors_and_costs(twin, LOADS)[1])
    characterised(twin)
    assert median(errors_and_costs(twin, LOADS)[1]) < 0.5 * before


@pytest.mark.parametrize("pause_s", [0.0, 0.3, 1.5])
def test_a_slow_average_is_freed_of_what_ran_before(pause_s: float) -> None:
    twin = average_only("h200")
    _, before = errors_and_costs(twin, LOADS, pause_s)
    characterised(twin)
    errors, costs = errors_and_costs(twin, LOADS * 3, pause_s)
    assert median(errors) <= 0.005
    assert max(errors) <= 0.02
    assert median(costs) < 0.85 * median(before)


class CountingBoard(SimulatedGpu):
    """A simulated A100 whose temperature holds it back for a share of the time, as only its counters tell."""

    share, asked = 0.3, 0

    def throttled_ns(self) -> dict[str, int]:
        self.asked += 1
        return {"power": 0, "thermal": round(self.share * self.clock.now_ns())}


def test_the_share_of_a_window_is_counted_at_its_two_ends() -> None:
    board = CountingBoard(load_twin("a100"), clock=VirtualClock())
    window = Meter(board).measure(full_load())
    assert window is not None
    assert window.throttled == {"power": 0.0, "thermal": pytest.approx(0.3, abs=1e-3)}
    assert window.event_reasons & EventReason.SOFTWARE_THERMAL, "which no sample showed"
    assert board.asked <= 8, "once for each end of a window, however many samples it has"


@pytest.mark.parametrize("limit_w", [250.0, 175.0, 150.0])
def test_the_share_of_a_window_is_that_of_the_time_in_which_the_limit_acted(limit_w: float) -> None:
    """At its limit the board's controller goes to and fro: samples show that it acts, the counter for how long."""
    board = SimulatedGpu(load_twin("a100"), clock=VirtualClock())
    board.set_power_limit(limit_w)
    place = [channel.name for channel in board.channels].index("event_reasons")
    board.begin(full_load())
    board.clock.wait(2.0)
    begun, acted = mark(board), 0
    for _ in range(2000):
        board.clock.wait(1e-3)
        acted += bool(int(board.read().values[place]) & EventReason.POWER_CAP)
    share = shares_between(begun, mark(board))["power"]
    board.end()
    assert share == pytest.approx(acted / 2000, abs=0.01)
    assert (share > 0.0) == (limit_w == 150.0)
    window = Meter(board).measure(full_load())
    assert window is not None
    assert window.throttled["power"] == pytest.approx(share, abs=0.1)
    assert window.limited == (share > 0)


def test_a_counter_that_stands_still_while_samples_show_its_reason_is_not_believed() -> None:
    board = CountingBoard(load_twin("a100"), clock=VirtualClock())
    board.share = 0.0
    board.set_power_limit(150.0)
    window = Meter(board).measure(full_load())
    assert window is not None
    assert window.event_reasons & EventReason.POWER_CAP, "as sampled"
    assert window.throttled == {"thermal": 0.0}
