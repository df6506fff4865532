"""What every `PowerMeter` must do, whatever it is: a subclass gives the fixture `meter` and inherits every test."""

from __future__ import annotations

import time

import numpy as np
import pytest

from app.sensors.meters.meter import PowerMeter, Samples


def collect(meter: PowerMeter, seconds: float) -> Samples:
    """All that a meter reports in so long; on a busy machine in longer, until it has reported two samples."""
    parts: list[Samples] = []
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end or (sum(len(part.time_ns) for part in parts) < 2 and now < end + 60):
        parts.append(meter.read())
        time.sleep(meter.info.poll_s)
    return Samples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class MeterConformance:
    seconds = 0.15  # in which it reports at least three samples
    watts = 150.0  # that it is made to report, on average
    off_w = 5.0

    @pytest.fixture
    def meter(self) -> PowerMeter:
        raise NotImplementedError

    def test_its_channels_are_powers_with_a_name_each_and_the_total_first(self, meter: PowerMeter) -> None:
        names = [channel.name for channel in meter.channels]
        assert names[0] == f"{meter.info.kind}_w"
        assert len(set(names)) == len(names)
        assert all(name.endswith("_w") and name.isidentifier() for name in names)
        assert all(channel.unit == "W" and channel.label for channel in meter.channels)

    def test_its_samples_rise_on_the_hosts_clock_and_are_told_once(self, meter: PowerMeter) -> None:
        before = time.monotonic_ns()
        first, second = collect(meter, self.seconds), collect(meter, self.seconds)
        stamps = np.concatenate([first.time_ns, second.time_ns])
        assert len(stamps) >= 3
        assert (np.diff(stamps) > 0).all()
        assert stamps[-1] <= time.monotonic_ns() + 50_000_000
        assert stamps[-1] > before

    def test_a_sample_has_a_value_per_channel_and_they_are_what_is_drawn(self, meter: PowerMeter) -> None:
        stamps, power_w = collect(meter, self.seconds)
        assert power_w.shape == (len(stamps), len(meter.channels))
        lasted = np.diff(stamps)  # each value is of the time since the one before
        assert power_w[1:, 0] @ lasted / lasted.sum() == pytest.approx(self.watts, abs=self.off_w)

    def test_a_closed_meter_can_be_closed_again_and_reopened(self, meter: PowerMeter) -> None:
        meter.close()
        meter.close()
        meter.reopen()
        assert len(collect(meter, self.seconds).time_ns) >= 1
