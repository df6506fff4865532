"""What every `Gpu` must do, whoever answers: a subclass gives the fixture `gpu` and inherits every test."""

from __future__ import annotations

import math
import threading

import pytest

from app.sensors.channel import CHANNELS, Reading
from app.sensors.gpu import Gpu, NotSupported


def value(gpu: Gpu, reading: Reading, name: str) -> float:
    """One channel of a reading by name."""
    return reading.values[[c.name for c in gpu.channels].index(name)]


class GpuConformance:
    @pytest.fixture
    def gpu(self) -> Gpu:
        raise NotImplementedError

    def test_its_channels_are_the_catalogues_in_order_with_a_reason_where_not_available(self, gpu: Gpu) -> None:
        names = [c.name for c in gpu.channels]
        assert names == [name for name in CHANNELS if name in names]
        assert {"power_instant_w", "power_average_w", "graphics_clock_mhz", "event_reasons"} <= set(names)
        for c in gpu.channels:
            assert (c.unit, c.label) == (CHANNELS[c.name].unit, CHANNELS[c.name].label)
            assert c.unavailable is None or len(c.unavailable) > 5

    def test_a_reading_has_a_value_per_channel_and_nan_where_not_available(self, gpu: Gpu) -> None:
        for _ in range(5):
            reading = gpu.read()
            assert len(reading.values) == len(gpu.channels)
            assert all(isinstance(v, float) for v in reading.values)
            for c, v in zip(gpu.channels, reading.values, strict=True):
                assert c.available or math.isnan(v), c.name
            gpu.clock.wait(0.02)

    def test_after_a_second_it_reports_its_power_and_clock_and_no_power_is_zero(self, gpu: Gpu) -> None:
        gpu.read()
        gpu.clock.wait(1.1)
        reading = gpu.read()
        reported = [n for n in ("power_instant_w", "power_average_w") if not math.isnan(value(gpu, reading, n))]
        assert reported
        for name in reported:
            assert 1.0 < value(gpu, reading, name) < 2000.0
        assert 50 < value(gpu, reading, "graphics_clock_mhz") < 5000
        for c, v in zip(gpu.channels, reading.values, strict=True):
            assert not (c.unit == "W" and v == 0.0), c.name

    def test_readings_are_stamped_with_its_own_clock_and_never_go_back(self, gpu: Gpu) -> None:
        before = gpu.clock.now_ns()
        stamps = []
        for _ in range(20):
            stamps.append(gpu.read().time_ns)
            gpu.clock.wait(0.01)
        assert before <= stamps[0]
        assert stamps == sorted(stamps)
        assert stamps[-1] <= gpu.clock.now_ns()
        assert stamps[-1] > stamps[0]

    def test_power_samples_are_new_in_order_and_true_numbers_or_not_supported(self, gpu: Gpu) -> None:
        gpu.read()
        gpu.clock.wait(0.6)
        try:
            samples = gpu.power_samples(0)
        except NotSupported:
            pytest.skip("it has no buffer of power samples")
        assert len(samples) >= 10
        stamps = [s.time_ns for s in samples]
        assert stamps == sorted(set(stamps))
        assert stamps[-1] <= gpu.clock.now_ns() + 1_000_000
        assert all(1.0 < s.power_w < 2000.0 for s in samples)
        middle = stamps[len(stamps) // 2]
        assert all(s.time_ns > middle for s in gpu.power_samples(middle))
        newer = {s.time_ns: s.power_w for s in gpu.power_samples(middle)}
        assert {s.time_ns: s.power_w for s in samples if s.time_ns > middle}.items() <= newer.items()

    def test_its_energy_counter_never_falls_or_is_not_supported(self, gpu: Gpu) -> None:
        try:
            counted = [gpu.energy_j()]
        except NotSupported:
            assert next(c for c in gpu.channels if c.name == "energy_j").unavailable
        else:
            for _ in range(3):
                gpu.clock.wait(0.3)
                counted.append(gpu.energy_j())
            assert counted == sorted(counted)
            assert counted[-1] > counted[0]

    def test_supported_clocks_ascend_and_hold_the_present_one(self, gpu: Gpu) -> None:
        graphics, memory = list(gpu.graphics_clocks_mhz()), list(gpu.memory_clocks_mhz())
        for clocks in (graphics, memory):
            assert clocks == sorted(set(clocks))
            assert all(isinstance(clock, int) and clock > 0 for clock in clocks)
        if graphics:
            assert graphics[0] <= value(gpu, gpu.read(), "graphics_clock_mhz") <= graphics[-1]
        assert list(gpu.graphics_clocks_mhz()) == graphics

    def test_its_power_limit_lies_in_its_own_range(self, gpu: Gpu) -> None:
        limit = gpu.info.power_limit
        if limit.minimum_w is not None and limit.maximum_w is not None:
            for figure in (limit.default_w, limit.current_w):
                assert figure is None or limit.minimum_w <= figure <= limit.maximum_w

    def test_it_says_what_it_is_wherever_it_is_named(self, gpu: Gpu) -> None:
        assert gpu.info.name
        assert gpu.info.uuid
        assert gpu.info.power_source
        assert gpu.info.source in ("nvml", "amd", "simulated", "recorded")
        assert gpu.info.live or gpu.info.source in gpu.info.label

    def test_event_reasons_are_bits(self, gpu: Gpu) -> None:
        bits = value(gpu, gpu.read(), "event_reasons")
        assert math.isnan(bits) or bits == int(bits) >= 0

    def test_several_threads_may_read_it(self, gpu: Gpu) -> None:
        failures: list[BaseException] = []

        def read() -> None:
            try:
                for _ in range(50):
                    assert len(gpu.read().values) == len(gpu.channels)
            except BaseException as failure:  # noqa: BLE001 - carried to the test's own thread
                failures.append(failure)

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures

    def test_closing_it_twice_is_harmless(self, gpu: Gpu) -> None:
        gpu.read()
        gpu.close()
        gpu.close()
