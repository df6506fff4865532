"""How long a recording of a day takes to convert, to open and to scroll, and how much memory: 24 h at 50 Hz.

`PYTHONPATH=. .venv/bin/python tests/benchmarks/recording_timeline.py [HOURS] [--convert]` prints the table that
recording_timeline.txt keeps. The file is made by this script: ten channels, gaps, clock events. Opening is in a process
of its own, from its beginning to the first picture. A frame is from the change of the window to the end of painting,
of traces and overview. With `--convert` the day is written as text too, and converted.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from app.commands.terminal import print_table
from app.sensors.channel import CHANNELS
from app.sensors.gpu import PowerLimit
from app.sensors.recorded.columns import ColumnsFile
from app.sensors.recorded.header import TEXT_FORM, Facts, header_line, recorded_info

_NAMES = (
    *("power_instant_w", "power_limit_w", "energy_j", "graphics_clock_mhz", "memory_clock_mhz", "temperature_c"),
    *("memory_temperature_c", "utilisation_percent", "memory_utilisation_percent", "event_reasons"),
)
_FRAMES = 300
_OPEN = """
import os, resource, sys, time
began = time.perf_counter()
from pathlib import Path
from PySide6.QtWidgets import QApplication
from app.views.library.log_window import LogWindow
from app.views.shared import theme
application = QApplication([])
theme.install(application, "light")
imported = time.perf_counter() - began
window = LogWindow()
window.resize(int(sys.argv[2]), int(sys.argv[3]))
window.show()
longest, begun = 0.0, time.perf_counter()
window.open(Path(sys.argv[1]))
while window.timeline is None or window.timeline.lanes.snapshot is None:
    turn = time.perf_counter()
    application.processEvents()
    longest = max(longest, time.perf_counter() - turn)
    if window.timeline is None and "(" in window.message.text():
        sys.exit(window.message.text())
    time.sleep(0.001)
window.timeline.lanes.repaint()
opened = time.perf_counter() - begun
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
after = resident()
lanes, overview = window.timeline.lanes, window.timeline.overview
frames = []
for zoomed in map(float, sys.argv[5:]):
    length = round(lanes.end_ns * zoomed)
    times = []
    for number in range(int(sys.argv[4])):
        start = (lanes.end_ns - length) * number // int(sys.argv[4])
        turn = time.perf_counter()
        lanes.show_window(start, start + length)
        lanes.repaint()
        overview.repaint()
        times.append(time.perf_counter() - turn)
    frames.append(sorted(times))
quantile = lambda times, share: 1e3 * times[min(len(times) - 1, int(share * len(times)))]
print(imported, opened, longest, after, resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
for times in frames:
    print(quantile(times, 0.5), quantile(times, 0.95), 1e3 * times[-1])
window.shutdown()
sys.stdout.flush()
os._exit(0)
"""
_CONVERT = """
import resource, sys, threading, time
from pathlib import Path
from app.sensors.timeline.converted import open_timelines
began = time.process_time()
open_timelines(Path(sys.argv[1]), None, lambda share: None, threading.Event())
print(time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def facts() -> Facts:
    limit = PowerLimit(100.0, 700.0, 700.0, 700.0)
    info = recorded_info("Made for a benchmark", limit, "instant power", compute_capability=(9, 0))
    return Facts("day", info, "nvml", (345, 1980), (2619,), tuple(CHANNELS[name] for name in _NAMES), 1.79e9)


def columns(first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Times in ns, with a gap of a minute each hour, and values; the energy counter among them."""
    row = np.arange(first, first + count)
    time_ns = (row * 20_000_000 + row // 180_000 * 60_000_000_000).astype(np.int64)
    random = np.random.default_rng(first)
    load = (np.sin(row / 5e4) > -0.3).astype(float) * (0.6 + 0.4 * np.sin(row / 700))
    power = 90 + 560 * load + random.normal(0, 6, count)
    values = np.stack(
        [
            *(power, np.full(count, 700.0), row * 7.5, 345 + 1635 * load, np.full(count, 2619.0), 35 + 40 * load),
            *(40 + 45 * load, 100 * (load > 0.1), 55 * load, np.where(power > 620, 4.0, 0.0)),
        ]
    )
    return time_ns, values


def make(path: Path, rows: int) -> None:
    with path.open("w+b") as file:
        form = ColumnsFile(file, facts())
        for first in range(0, rows, 65536):
            time_ns, values = columns(first, min(65536, rows - first))
            form.add(b"r", time_ns, values)
            form.add(b"p", time_ns + 5_000_000, values[:1])
        form.flush()


def make_text(path: Path, rows: int) -> None:
    import gzip

    with gzip.open(path, "wt", compresslevel=1) as text:
        text.write(header_line(facts(), TEXT_FORM))
        for first in range(0, rows, 65536):
            time_ns, values = columns(first, min(65536, rows - first))
            for at_us, row in zip((time_ns // 1000).tolist(), values.T.tolist(), strict=True):
                text.write(
                    f"r,{at_us}," + ",".join(f"{value:.7g}" for value in row) + f"\np,{at_us + 5000},{row[0]:.7g}\n"
                )


def child(program: str, *words: object) -> list[list[float]]:
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "PYTHONPATH": "."}
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr + done.stdout)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def main() -> None:
    hours = next((float(word) for word in sys.argv[1:] if not word.startswith("-")), 24.0)
    rows = math.ceil(hours * 3600 * 50)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WATTRIDGE_DATA"] = f"{folder}/data"
        path = Path(folder) / "day.wrec"
        began = time.perf_counter()
        make(path, rows)
        print(f"{rows} readings of {len(_NAMES)} channels and as many samples of the driver's buffer:")
        print(f"{path.stat().st_size / 1e6:.0f} MB, written in {time.perf_counter() - began:.1f} s\n")
        zooms = (1.0, 0.25, 1 / 24, 1 / 1440)
        table = []
        for width, height in ((1920, 1080), (3840, 2160)):
            first, *frames = child(_OPEN, path, width, height, _FRAMES, *zooms)
            print(
                f"{width}x{height}: opened in {first[1]:.2f} s (imports {first[0]:.2f} s before), longest turn"
                f" {1e3 * first[2]:.0f} ms;"
                f" resident {first[3]:.0f} MiB, after scrolling {first[4]:.0f}, at most {first[5]:.0f}"
            )
            for zoom, times in zip(zooms, frames, strict=True):
                table.append(
                    [f"{width}x{height}", f"{24 * 60 * zoom * hours / 24:.4g} min", *(round(t, 1) for t in times)]
                )
        print(f"\n{_FRAMES} frames of a scroll, ms")
        print_table(table, ("size", "window", "p50", "p95", "max"))
        if "--convert" in sys.argv:
            text = Path(folder) / "day.csv.gz"
            make_text(text, rows)
            ((seconds, most),) = child(_CONVERT, text)
            size = text.stat().st_size / 1e6
            print(f"\nconverted from gzipped text of {size:.0f} MB in {seconds:.0f} s of the processor, {most:.0f} MiB")


if __name__ == "__main__":
    main()
