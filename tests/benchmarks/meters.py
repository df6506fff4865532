"""A PowerSensor3 at full rate for ten minutes: samples lost, share of a core, and where its samples lie in time.

The device is an emulator in a process of its own on a pseudo-terminal: 20 kHz, 18 bytes a frame, a square wave that
follows the host's clock. With `--host-library FOLDER`, a checkout of github.com/nlesc-recruit/PowerSensor3, its public
host library is compiled and reads the same device; its values are compared with ours.

With `--gain G` a session tunes on the simulated A100 in real time beside an emulated PowerSensor3 that sees 1 / G of
what the board draws: the board's sensor then seems to have a gain of G.

    python tests/benchmarks/meters.py --minutes 10 [--host-library FOLDER] [--gain 1.031]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app.sensors.meters.powersensor3 import PowerSensor3
from app.sensors.meters.sampled import SampledMeter

DEVICE = Path(__file__).parents[1] / "sensors" / "meters" / "powersensor3_device.py"
PERIOD_S = 0.2
DUMP = """
#include <PowerSensor.hpp>
#include <chrono>
#include <thread>
#include <iostream>
int main(int, char **argv) {
  PowerSensor3::PowerSensor sensor(argv[1]);
  std::cout << sensor.getVersion() << "|" << sensor.getPairName(1) << "|" << sensor.getVref(2) << std::endl;
  auto before = sensor.read();
  sensor.dump(argv[2]);
  std::this_thread::sleep_for(std::chrono::seconds(5));
  auto after = sensor.read();
  sensor.dump("");
  std::cout << PowerSensor3::Joules(before, after) << " " << PowerSensor3::seconds(before, after) << std::endl;
}
"""


class Device:
    """The emulator in its own process."""

    def __enter__(self) -> Device:
        words = [sys.executable, str(DEVICE), str(PERIOD_S)]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.path = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        out, _ = self.process.communicate("\n")
        self.sent, self.dropped = map(int, out.split())


def at_full_rate(minutes: float) -> None:
    """Print what came of so many minutes."""
    with Device() as device:
        sampled = SampledMeter(PowerSensor3(device.path))
        late_s: list[float] = []
        begun, begun_s, counted = time.monotonic(), time.process_time(), sampled.record.count
        first_ns = sampled.record.newest_ns
        while (left := begun + 60 * minutes - time.monotonic()) > 0:
            time.sleep(min(20.0, left))
            now_ns = sampled.record.newest_ns
            stamps, total_w = sampled.record.fine(max(first_ns, now_ns - 19_000_000_000), now_ns)
            half_s = PERIOD_S / 2
            late_s += ((stamps[1:][np.diff(total_w > 150.0)] / 1e9 + half_s / 2) % half_s - half_s / 2).tolist()
        took, busy_s = time.monotonic() - begun, time.process_time() - begun_s
        samples, missed = sampled.record.count - counted, sampled.meter.missed
        margin_s = sampled.info.margin_s
        sampled.close()
    late_us = np.asarray(late_s) * 1e6
    print(f"{'time':34} {took:.0f} s")
    print(f"{'samples received':34} {samples} ({samples / took:.1f} a second)")
    print(f"{'samples that the reader missed':34} {missed}")
    print(f"{'frames that the device dropped':34} {device.dropped} (of {device.sent})")
    print(f"{'share of a core':34} {100 * busy_s / took:.2f} %")
    print(f"{'edges of the square wave':34} {len(late_us)}")
    ends = np.percentile(late_us, (0.5, 50, 99.5))
    print(f"{'samples lie late by (0.5, 50, 99.5 %)':34} {ends[0]:.0f}, {ends[1]:.0f}, {ends[2]:.0f} us")
    print(f"{'at most, by its marks':34} {1e6 * margin_s:.0f} us")


def host_library(folder: Path) -> None:
    """Print what the public host library reads of the same device, beside what we do."""
    with tempfile.TemporaryDirectory() as work, Device() as device:
        source, program, dump = Path(work) / "dump.cc", Path(work) / "dump", Path(work) / "dump.txt"
        source.write_text(DUMP)
        host = folder / "host"
        parts = [str(host / "src" / name) for name in ("PowerSensor.cc", "sensors.cc")]
        compile_ = ["g++", "-O2", "-std=c++17", "-pthread", f"-I{host / 'include'}", str(source), *parts]
        subprocess.run([*compile_, "-o", str(program)], check=True)
        done = subprocess.run([str(program), device.path, str(dump)], capture_output=True, text=True, check=True)
        names, *rows = dump.read_text().splitlines()
        theirs = np.asarray([row.split()[1:] for row in rows], np.float64)
        time.sleep(0.3)
        meter = PowerSensor3(device.path)
        ours: list[np.ndarray] = []
        end = time.monotonic() + 5.0
        while time.monotonic() < end:
            ours.append(meter.read().power_w)
            time.sleep(meter.info.poll_s)
        meter.close()
    power_w = np.concatenate(ours)
    print("the host library says", done.stdout.replace("\n", "; "))
    print(f"{'':22} {'host library':>30} {'Wattridge':>30}")
    columns = [names.split()[1:].index(f"power{n}") for n in range(3)] + [len(names.split()) - 2]
    for name, their, our in zip(("pair 0", "pair 1", "pair 2", "total"), columns, (1, 2, 3, 0), strict=True):
        each = []
        for values in (theirs[:, their], power_w[:, our]):
            low, high = values[values < values.mean()], values[values >= values.mean()]
            each.append(f"{low.mean():9.4f} {high.mean():9.4f} W {len(values):7d}")
        print(f"{name:22} {each[0]:>30} {each[1]:>30}")
    theirs_w, ours_w = (np.unique(values) for values in (theirs[:, columns[1]], power_w[:, 2]))
    nearest = np.abs(theirs_w[:, None] - ours_w).min(axis=1) / np.abs(theirs_w)
    both = nearest < 1e-3  # a step of the converter is more
    print(f"powers that pair 1 reported to both: {both.sum()}, the same within {nearest[both].max():.1e}")


def gain_of_a_session(gain: float) -> None:
    """Print the gain that a session finds of a board's sensor beside a meter of known gain."""
    sys.path.insert(0, str(DEVICE.parent))
    from powersensor3_device import PowerSensor3Device

    from app.base.paths import resources
    from app.engine.metering.external_meters import MeterChoice
    from app.engine.session.gains import gain_of_origin
    from app.engine.session.load import load_specification
    from app.engine.session.planning import plan_specification
    from app.engine.session.run import run_session
    from app.engine.specification.plan import SearchOptions
    from app.engine.store.database import Store
    from app.sensors.select import open_gpu
    from app.sensors.simulated.gpu import SimulatedGpu

    gpu = open_gpu("simulated:a100", speed=1.0)
    assert isinstance(gpu, SimulatedGpu)
    drawn: dict[float, np.ndarray] = {}  # by the last frame's time: what the board drew at each frame of a block

    def power(pair: int, t: np.ndarray) -> np.ndarray:
        """Of the whole board at the frames' times; 3 W of it on the first pair, the rest on the other two."""
        if t[-1] not in drawn:
            drawn.clear()
            edges = np.linspace(t[0] - 1e-3, t[-1] + 50e-6, 2 + int((t[-1] - t[0]) / 1e-3))
            joules = np.asarray([gpu.drawn_j(int(edge * 1e9)) for edge in edges])
            watts = np.diff(joules) / np.diff(edges)
            drawn[t[-1]] = watts[np.clip(np.searchsorted(edges, t) - 1, 0, len(watts) - 1)] / gain
        return np.full(len(t), 3.0) if pair == 0 else (drawn[t[-1]] - 3.0) / 2

    device = PowerSensor3Device(power)
    options = SearchOptions(
        strategy="random_sample", max_evaluations=24, seed=1, meters=MeterChoice((f"powersensor3:{device.path}",))
    )
    plan = plan_specification(load_specification(resources() / "examples" / "sgemm.toml"), gpu, options)
    with tempfile.TemporaryDirectory() as work:
        os.environ["WATTRIDGE_DATA"] = work
        store = Store()
        result = run_session(plan, store, lambda _: None, threading.Event())
        store.close()
    device.close()
    found = gain_of_origin(result.plan.origin)
    assert found is not None, result.plan.origin
    print(f"{'gain of the board over the meter':34} {gain}")
    print(f"{'found by a session':34} {found.words}, {found.windows} windows, {found.range_w[0]:.0f} to", end=" ")
    print(f"{found.range_w[1]:.0f} W; off by {100 * (found.gain / gain - 1):+.3f} %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--host-library", type=Path)
    parser.add_argument("--gain", type=float)
    arguments = parser.parse_args()
    if arguments.gain is not None:
        gain_of_a_session(arguments.gain)
    if arguments.host_library is not None:
        host_library(arguments.host_library)
    if arguments.minutes > 0:
        at_full_rate(arguments.minutes)


if __name__ == "__main__":
    main()
