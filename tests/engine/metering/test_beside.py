"""What meters beside a board say of a window: exact energies, why one is not known, and each opened once for all."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from app.base.errors import InputError
from app.engine.metering import external_meters
from app.engine.metering.external_meters import Beside, MeterChoice, energy_of, meters_beside, put_beside, shared_meter
from app.engine.metering.meter import Meter
from app.engine.metering.stopwatch import Stopwatch
from app.engine.metering.window import Window
from app.sensors.gpu import Gpu, SensorError
from app.sensors.meters.meter import MeterInfo, MeterLost, Samples, meter_channels, nothing
from app.sensors.meters.sampled import SampledMeter
from app.sensors.select import open_gpu
from app.sensors.simulated.profiles import full_load
from app.sensors.unmetered import this_processor

PERIOD_NS = 50_000


class FakeMeter:
    """A meter at 20 kHz that reports what `power` gives for seconds of the host's clock, or is pulled."""

    def __init__(
        self, power: Callable[[np.ndarray], np.ndarray], *, least_s: float = 0.0, period_ns: int = PERIOD_NS
    ) -> None:
        self.power, self.period_ns = power, period_ns
        self.pulled = self.closed = False
        self.missed = 0
        self.channels = meter_channels("fake", "Fake", ())
        self.info = MeterInfo(
            "fake", "a fake meter", "board", self.period_ns / 1e9, self.period_ns / 1e9, 0.005, least_s=least_s
        )
        self._last_ns = (
            time.monotonic_ns() // self.period_ns * self.period_ns - 2_000_000_000
        )  # as if it had run before

    def read(self) -> Samples:
        if self.pulled:
            raise MeterLost("the meter is gone", "fake")
        due = (time.monotonic_ns() - self._last_ns) // self.period_ns
        if due < 1:
            return nothing(1)
        stamps = self._last_ns + self.period_ns * np.arange(1, due + 1, dtype=np.int64)
        self._last_ns = int(stamps[-1])
        return Samples(stamps, self.power(stamps / 1e9 - self.period_ns / 2e9)[:, None])

    def reopen(self) -> None:
        if self.pulled:
            raise SensorError("not back", "fake")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeMeter]]:
    """What `open_meter` opened; a selector is the watts it reports."""
    made: list[FakeMeter] = []

    def open_fake(selector: str, gpu: Gpu, *_: object, **__: object) -> FakeMeter:
        watts = float(selector.rpartition(":")[2])
        made.append(FakeMeter(lambda t: np.full(len(t), watts)))
        return made[-1]

    monkeypatch.setattr(external_meters, "open_meter", open_fake)
    yield made
    assert all(meter.closed for meter in made)


def sampled(power: Callable[[np.ndarray], np.ndarray]) -> SampledMeter:
    meter = SampledMeter(FakeMeter(power))
    assert meter.wait_until(time.monotonic_ns(), 5.0)
    return meter


def test_the_energy_of_any_window_is_the_integral_of_what_the_meter_saw() -> None:
    meter = sampled(lambda t: 200.0 + 100.0 * np.sin(2 * np.pi * 7.0 * t))
    try:
        end_ns = time.monotonic_ns()
        for length_s in (0.0333, 0.25, 1.0):
            start_ns = end_ns - round(length_s * 1e9)
            t = np.linspace(start_ns / 1e9, end_ns / 1e9, 20_001)
            power_w = 200.0 + 100.0 * np.sin(2 * np.pi * 7.0 * t)
            truth_j = float((power_w[1:] + power_w[:-1]) / 2 @ np.diff(t))
            found = energy_of(meter, start_ns, end_ns, steady=False)
            assert not found.unknown
            assert found.energy_j == pytest.approx(truth_j, rel=0.01 if length_s < 0.1 else 0.003)
    finally:
        meter.close()


def test_a_steady_window_has_a_mean_with_an_interval() -> None:
    random = np.random.default_rng(3)
    meter = sampled(lambda t: 150.0 + 5.0 * random.standard_normal(len(t)))
    try:
        end_ns = time.monotonic_ns()
        found = energy_of(meter, end_ns - 300_000_000, end_ns, steady=True)
        assert found.mean_power_w == pytest.approx(150.0, abs=0.5)
        assert found.power_interval_w is not None
        low, high = found.power_interval_w
        assert low < 150.0 < high or high - low < 0.5
    finally:
        meter.close()


@pytest.mark.parametrize("steady", [True, False])
def test_a_window_may_end_between_two_values_of_a_slow_meter(steady: bool) -> None:
    """As RAPL's, every 50 ms: the value after the window's end is of its last part."""
    period_ns = 50_000_000
    meter = SampledMeter(FakeMeter(lambda t: np.full(len(t), 100.0), period_ns=period_ns))
    try:
        assert meter.wait_until(time.monotonic_ns(), 5.0)
        start_ns = (time.monotonic_ns() // period_ns - 20) * period_ns
        found = energy_of(meter, start_ns, start_ns + 11 * period_ns - 1_000_000, steady=steady)
        assert not found.unknown
        assert found.mean_power_w == pytest.approx(100.0)
    finally:
        meter.close()


def test_no_energy_is_stated_of_a_window_that_the_meter_missed() -> None:
    meter = sampled(lambda t: np.full(len(t), 100.0))
    try:
        fake = meter.meter
        assert isinstance(fake, FakeMeter)
        fake.pulled = True
        time.sleep(0.05)
        begun_ns = time.monotonic_ns()
        time.sleep(0.1)
        found = energy_of(meter, begun_ns, time.monotonic_ns(), steady=True)
        assert math.isnan(found.energy_j)
        assert "lost" in found.unknown
        partly = energy_of(meter, begun_ns - 200_000_000, begun_ns + 100_000_000, steady=True)
        assert "of the time only" in partly.unknown
    finally:
        meter.close()


def measured(gpu: Gpu, choice: MeterChoice) -> Window:
    with put_beside(gpu, choice):
        window = Meter(gpu).measure(full_load())  # type: ignore[arg-type]
    assert window is not None
    return window


def test_a_meter_is_opened_once_for_all_who_name_it_and_closed_after_the_last(opened: list[FakeMeter]) -> None:
    gpu = open_gpu("simulated:a100")
    with shared_meter("fake:100", gpu) as one:
        with put_beside(gpu, MeterChoice(("fake:100", "fake:50"))) as there:
            assert there is not None
            assert list(there.meters) == ["fake", "fake_2"]
            assert there.meters["fake"] is one
            assert meters_beside(gpu.info) is there
            assert len(opened) == 2
        assert not opened[0].closed
        assert opened[1].closed
    assert opened[0].closed
    assert meters_beside(gpu.info) is None


def test_a_meter_that_fails_to_open_leaves_nothing_behind(opened: list[FakeMeter]) -> None:
    gpu = open_gpu("simulated:a100")
    with pytest.raises(InputError), put_beside(gpu, MeterChoice(("fake:1",), energy_from="other")):
        raise AssertionError("it does not come to that")
    assert meters_beside(gpu.info) is None


def test_a_board_that_left_real_time_has_no_energy_of_a_meter_that_lives_in_it(opened: list[FakeMeter]) -> None:
    gpu = open_gpu("simulated:a100")
    with put_beside(gpu, MeterChoice(("fake:100",))) as there:
        assert there is not None
        gpu.clock.set_speed(50.0)  # type: ignore[attr-defined]
        now_ns = gpu.clock.now_ns()
        [source] = there.seen(now_ns - 10**8, now_ns, steady=True).values()
    assert math.isnan(source.power_w)
    assert "kept pace" in source.said


def test_another_boards_windows_know_nothing_of_it() -> None:
    first, second = (open_gpu(f"simulated:{name}", speed=math.inf) for name in ("a100", "v100"))
    with put_beside(first, MeterChoice(("simulated",))):
        window = Meter(second).measure(full_load())  # type: ignore[arg-type]
    assert window is not None
    assert not window.sources


def test_a_device_without_sensors_has_the_energy_of_a_meter_beside_it() -> None:
    gpu = open_gpu("simulated:h200", speed=math.inf)
    watch = Stopwatch(gpu, "no energy: this device reports none")  # type: ignore[arg-type]
    windows = []
    for choice in (MeterChoice(("simulated",), "simulated"), MeterChoice(("simulated",)), MeterChoice()):
        with put_beside(gpu, choice):
            run = watch.run(full_load())
            assert run is not None
            windows.append(watch.window(run))
    chosen, kept, alone = windows
    assert chosen.power_w == chosen.sources["simulated"].power_w > 100.0
    assert math.isnan(kept.power_w)
    assert list(kept.sources) == ["simulated"]
    assert not alone.sources


def test_the_median_of_the_readings_counts_on_request_with_its_bias_and_the_mean_beside_it() -> None:
    window = measured(open_gpu("simulated:h200", speed=math.inf), MeterChoice((), "median"))
    assert window.evidence is not None
    assert window.power_w == window.sources["median"].power_w == np.median(window.evidence.power_w)
    bias = window.power_w / window.sources["board"].power_w - 1
    assert 0 < abs(bias) < 0.01  # a steady load has no skew
    assert f"{100 * bias:+.2f} % off their mean" in window.power_source
    wide_w, narrow_w = (np.diff(window.sources[name].interval_w or ())[0] for name in ("median", "board"))
    assert wide_w == pytest.approx(math.sqrt(math.pi / 2) * narrow_w)


def test_the_bias_of_a_median_is_that_of_skewed_readings() -> None:
    """A load that draws three times as much for a quarter of the time: its median knows nothing of that."""
    powers = [100.0] * 75 + [300.0] * 25
    mean_w, median_w = float(np.mean(powers)), float(np.median(powers))
    window = Window(
        0.01, (0, 10**9), "the readings", power_w=mean_w, power_interval_w=(148.0, 152.0), median_w=median_w
    )
    found = Beside(energy_from="median").complete(window)
    assert (found.power_w, found.energy_j) == (100.0, 1.0)
    assert found.sources["board"].power_w == 150.0
    assert "-33.33 % off their mean" in found.power_source


def test_a_device_without_readings_has_no_median_of_them() -> None:
    with (
        pytest.raises(InputError, match=r"no source .median. .choose one of board"),
        put_beside(this_processor(), MeterChoice((), "median")),
    ):
        pass


def test_a_chosen_meter_decides_how_long_a_window_takes_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu = open_gpu("simulated:h200", speed=math.inf)
    short = measured(gpu, MeterChoice(("simulated",), "simulated"))
    real = external_meters.open_meter

    def slow(selector: str, board: Gpu, *_: object, **__: object) -> object:
        from dataclasses import replace

        meter = real(selector, board)
        meter.info = replace(meter.info, least_s=5.0)
        return meter

    monkeypatch.setattr(external_meters, "open_meter", slow)
    long = measured(gpu, MeterChoice(("simulated",), "simulated"))
    beside_it = measured(gpu, MeterChoice(("simulated",)))
    length = [(window.window_ns[1] - window.window_ns[0]) / 1e9 for window in (short, long, beside_it)]
    assert length[0] < 3.0 <= 5.0 <= length[1]
    assert length[2] < 3.0
    assert not long.said
    assert "5 s are recommended" in beside_it.said[0]
