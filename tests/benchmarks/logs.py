"""How long logs of 100 MB take to read, and how much memory: each in a process of its own, written by this script.

`PYTHONPATH=. .venv/bin/python tests/benchmarks/logs.py [MB]` prints the table that logs.txt keeps. Seconds are of the
processor, so that what else the machine does counts little.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from app.commands.terminal import print_table

_FIRST = datetime(2026, 4, 19, 17, 5, 55, 470_000)
_READ = """
import resource, sys, time
from pathlib import Path
from app.sensors.recorded.logs.read import read_log
from app.engine.metering.recorded_energy import describe_energy, recorded_energy
began = time.process_time()
log = read_log(Path(sys.argv[1]))
read = time.process_time() - began
described = [describe_energy(recorded_energy(board), board) for board in log.boards]
whole = time.process_time() - began
print(read, whole, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, sum(len(b.time_ns) for b in log.boards))
"""


def smi(units: bool) -> Iterator[str]:
    """`nvidia-smi --query-gpu`, as the sample in the shared data."""
    watt, mhz, percent, mib = (" W", " MHz", " %", " MiB") if units else ("", "", "", "")
    yield (
        "timestamp, power.draw [W], clocks.current.graphics [MHz], clocks.current.sm [MHz],"
        " clocks.current.memory [MHz], temperature.gpu,"
        " utilization.gpu [%], utilization.memory [%], memory.used [MiB], pstate\n"
    )
    at, count = _FIRST, 0
    while True:
        at, count = at + timedelta(milliseconds=107), count + 1
        stamp = at.strftime("%Y/%m/%d %H:%M:%S.%f")[:-3]
        power = 60 + count * 37 % 40_000 / 100
        clock = 210 + count // 50 % 80 * 15
        yield (
            f"{stamp}, {power:.2f}{watt}, {clock}{mhz}, {clock}{mhz}, 1215{mhz}, {40 + count % 30},"
            f" {count % 101}{percent},"
            f" {count % 60}{percent}, {count % 80000}{mib}, P0\n"
        )


def plain() -> Iterator[str]:
    """A logger of time stamp and power."""
    yield "timestamp,power\n"
    count = 0
    while True:
        count += 1
        yield f"{1733935225 + count * 0.05:.3f},{60 + count * 37 % 40_000 / 100:.2f}\n"


def dcgm() -> Iterator[str]:
    """`dcgmi dmon` of two boards."""
    count = 0
    while True:
        if count % 14 == 0:
            yield "#Entity   POWER         TOTEC                SMCLK   TMPTR   \n"
            yield "ID        W             mJ                           C       \n"
        count += 1
        for board in (0, 1):
            watts, counter = 200 + count % 90, 8_000_000_000 + count * 250_000
            yield f"GPU {board}     {watts:<7.3f}       {counter:<15}      1410    {40 + count % 20:<5}\n"


def mlperf() -> Iterator[str]:
    """The log of SPEC's PTDaemon."""
    at, count = _FIRST, 0
    while True:
        at, count = at + timedelta(seconds=1.004), count + 1
        stamp = at.strftime("%d-%m-%Y %H:%M:%S.%f")[:-3]
        yield f"Time,{stamp},Watts,{400 + count % 900}.950000,Volts,228.570000,Amps,2.206430,PF,0.986400,Mark,run_1\n"


KINDS = {
    "nvidia-smi, units": lambda: smi(True),
    "nvidia-smi, nounits": lambda: smi(False),
    "timestamp,power": plain,
    "dcgmi dmon, 2 boards": dcgm,
    "MLPerf": mlperf,
}


def main() -> None:
    """Write each log, read it, print the table."""
    size = float(sys.argv[1]) if len(sys.argv) > 1 else 100.0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind, lines in KINDS.items():
            path = Path(folder) / "log.csv"
            written = 0
            with path.open("w") as file:
                for line in lines():
                    written += file.write(line)
                    if written > size * 1e6:
                        break
            command = [sys.executable, "-c", _READ, str(path)]
            read, whole, memory, readings = subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.split()
            rows.append(
                [
                    kind,
                    f"{written / 1e6:.0f}",
                    readings,
                    f"{float(read):.2f}",
                    f"{float(whole):.2f}",
                    f"{float(memory):.0f}",
                ]
            )
    print_table(rows, ("log", "MB", "readings", "read s", "read and described s", "memory MB"))


if __name__ == "__main__":
    main()
