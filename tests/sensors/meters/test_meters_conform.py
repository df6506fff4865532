"""Every meter behind the seam, each beside a stand-in of what it is connected to."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from environment import need_terminal
from fixtures.meter_conformance import MeterConformance, collect
from fixtures.powersensor2_device import PowerSensor2Device
from powersensor3_device import PowerSensor3Device, steady

from app.sensors.clock import HostClock
from app.sensors.meters import rapl
from app.sensors.meters.meter import PowerMeter, Samples
from app.sensors.meters.pm_counters import PmCounters
from app.sensors.meters.pmt import Pmt
from app.sensors.meters.powersensor2 import PowerSensor2
from app.sensors.meters.powersensor3 import PowerSensor3
from app.sensors.meters.printed import command_meter, file_meter
from app.sensors.meters.rapl import Rapl
from app.sensors.meters.simulated import SimulatedMeter
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are of POSIX systems")


class Background:
    """Calls a function every so often on a thread until it is stopped."""

    def __init__(self, each: Callable[[float], None], every_s: float) -> None:
        self._stop = threading.Event()
        self._each, self._every_s = each, every_s
        each(0.0)
        self._thread = threading.Thread(target=self._run, name="what a meter counts")
        self._thread.start()

    def _run(self) -> None:
        begun = time.monotonic()
        while not self._stop.wait(self._every_s):
            self._each(time.monotonic() - begun)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def replace_text(path: Path, text: str) -> None:
    """As the kernel shows a file: whole, whenever it is read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".fresh")
    fresh.write_text(text)
    fresh.replace(path)


@POSIX
class TestPowerSensor3(MeterConformance):
    off_w = 1.0  # a step of its converter is half a watt at 12 V

    @pytest.fixture
    def meter(self) -> Iterator[PowerMeter]:
        need_terminal()
        device = PowerSensor3Device(steady(50.0))
        meter = PowerSensor3(device.path)
        yield meter
        meter.close()
        device.close()


@POSIX
class TestPowerSensor2(MeterConformance):
    off_w = 1.5

    @pytest.fixture
    def meter(self) -> Iterator[PowerMeter]:
        need_terminal()
        device = PowerSensor2Device(lambda sensor, t: {0: 10.0, 2: 80.0, 3: 60.0}[sensor])
        meter = PowerSensor2(device.path)
        yield meter
        meter.close()
        device.close()


def counted_when_read(meter: PowerMeter, count: Callable[[], None]) -> PowerMeter:
    """What a meter reads is written at that moment: a busy machine counts no later than it reads."""
    read = meter.read

    def counted() -> Samples:
        count()
        return read()

    meter.read = counted  # type: ignore[method-assign]
    return meter


class TestPmCounters(MeterConformance):
    seconds = 0.2

    @pytest.fixture
    def meter(self, tmp_path: Path) -> PowerMeter:
        begun_ns = time.time_ns()

        def count() -> None:
            now_ns = time.time_ns()
            for name, watts in (("energy", 900.0), ("accel0_energy", 150.0), ("cpu_energy", 80.0)):
                replace_text(tmp_path / name, f"{watts * (now_ns - begun_ns) / 1e9:.6f} J {now_ns // 1000} us\n")

        count()
        return counted_when_read(PmCounters("accel0", tmp_path), count)


class TestRapl(MeterConformance):
    seconds = 0.25

    @pytest.fixture
    def meter(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PowerMeter:
        zones = {
            "intel-rapl:0": ("package-0", 90.0),
            "intel-rapl:0:0": ("core", 60.0),
            "intel-rapl:0:1": ("dram", 10.0),
        }
        zones |= {"intel-rapl:1": ("package-1", 50.0), "intel-rapl:2": ("psys", 300.0)}
        for name, (called, _) in zones.items():
            replace_text(tmp_path / name / "name", f"{called}\n")
            replace_text(tmp_path / name / "max_energy_range_uj", "999999999999\n")
        begun_ns = counted_ns = time.monotonic_ns()

        def count() -> None:
            """They begin again at 0 within a hundredth of a second, once."""
            nonlocal counted_ns
            counted_ns = time.monotonic_ns()
            for name, (_, watts) in zones.items():
                counted_uj = 10**12 - 10**5 + round(watts * (counted_ns - begun_ns) / 1e3)
                replace_text(tmp_path / name / "energy_uj", f"{counted_uj % 10**12}\n")

        # read when they were counted, however long a busy machine takes from one to the other
        monkeypatch.setattr(rapl, "time", SimpleNamespace(monotonic_ns=lambda: counted_ns))

        count()
        return counted_when_read(Rapl(tmp_path), count)

    def test_the_total_is_packages_and_memory_each_once(self, meter: PowerMeter) -> None:
        assert [channel.label.split(", ")[-1] for channel in meter.channels[1:]] == ["package-0", "dram 0", "package-1"]
        _, power_w = collect(meter, self.seconds)
        assert np.allclose(power_w[:, 1:] / power_w[:, :1], [90 / 150, 10 / 150, 50 / 150], rtol=1e-3)


PRINTS = """
import sys, time
print("time,power")
while True:
    print(f"{time.time():.6f}, 150.0 W", flush=True)
    time.sleep(0.02)
"""


class TestCommand(MeterConformance):
    @pytest.fixture
    def meter(self, tmp_path: Path) -> Iterator[PowerMeter]:
        program = tmp_path / "meter.py"
        program.write_text(PRINTS)
        meter = command_meter(f"{sys.executable} {program}")
        yield meter
        meter.close()


class TestFile(MeterConformance):
    @pytest.fixture
    def meter(self, tmp_path: Path) -> Iterator[PowerMeter]:
        path = tmp_path / "power.log"

        def log(seconds: float) -> None:
            with path.open("a") as file:
                file.write(f"{1000 + seconds:.6f}\t150.0\n")

        logging = Background(log, 0.02)
        meter = file_meter(path)
        yield meter
        meter.close()
        logging.stop()


class TestPmt(MeterConformance):
    @pytest.fixture
    def meter(self, monkeypatch: pytest.MonkeyPatch) -> PowerMeter:
        package = ModuleType("pmt")
        package.create = lambda *_: SimpleNamespace(read=time.monotonic)  # type: ignore[attr-defined]
        package.seconds = lambda a, b: b - a  # type: ignore[attr-defined]
        package.joules = lambda a, b: 150.0 * (b - a)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "pmt", package)
        return Pmt("rapl:0")


class TestSimulated(MeterConformance):
    @pytest.fixture
    def meter(self) -> PowerMeter:
        gpu = SimulatedGpu(load_twin("a100"), clock=HostClock())
        idle_w = gpu.drawn_j(gpu.clock.now_ns() + 10**9) - gpu.drawn_j(gpu.clock.now_ns())
        return SimulatedMeter(gpu, self.watts / idle_w)
