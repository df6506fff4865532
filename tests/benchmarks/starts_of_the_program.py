"""Start-up of an installed program from outside: when its window is on the screen and painted.

By hand: `python tests/benchmarks/starts_of_the_program.py 20 dist/wattridge/wattridge`. Needs Xvfb, xwininfo and xwd.
Nothing of the program is called: a picture of its window is taken until there is something in it.
"""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

COLOURS = 24  # a window that was cleared has one or two
LONGEST_S = 60.0


@contextmanager
def screen() -> Iterator[str]:
    """A screen of 1600x1000 without a window manager; its name for DISPLAY."""
    read, write = os.pipe()
    words = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1600x1000x24", "-nolisten", "tcp"]
    process = subprocess.Popen(words, pass_fds=[write], stderr=subprocess.DEVNULL)
    try:
        os.close(write)
        with os.fdopen(read) as answer:
            yield f":{answer.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


def colours(display: str) -> int:
    """How many colours the largest window on that screen shows; 0 where there is none."""
    tree = subprocess.run(["xwininfo", "-display", display, "-root", "-tree"], capture_output=True, text=True).stdout
    sizes = re.findall(r"^ +(0x\w+) .*?(\d+)x(\d+)\+", tree, re.MULTILINE)
    largest = max(sizes, key=lambda each: int(each[1]) * int(each[2]), default=None)
    if largest is None or int(largest[1]) < 400:
        return 0
    words = ["xwd", "-silent", "-display", display, "-id", largest[0]]
    picture = subprocess.run(words, capture_output=True).stdout
    head = int.from_bytes(picture[:4], "big")
    pixels = memoryview(picture)[head + (len(picture) - head) % 4 :].cast("I")
    return len(set(pixels[::17]))


def start(display: str, words: Sequence[str], environment: dict[str, str]) -> tuple[float, float]:
    """Seconds from the start of the process to a painted window, and those of processor; the program is ended then.

    Raises TimeoutError.
    """
    begun = time.monotonic()
    process = subprocess.Popen(
        words,
        env={**environment, "DISPLAY": display},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        while colours(display) < COLOURS:
            if process.poll() is not None or time.monotonic() - begun > LONGEST_S:
                raise TimeoutError(f"no window: {' '.join(words)}")
            time.sleep(0.005)
        waited = time.monotonic() - begun
        used = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return waited, (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def main(starts: int, *words: str) -> None:
    """Print the figures of so many starts, the first of which finds nothing in the caches of fonts."""
    with screen() as display, tempfile.TemporaryDirectory() as data:
        environment = {"PATH": os.environ["PATH"], "HOME": data, "QT_QPA_PLATFORM": "xcb"}
        figures = [start(display, words, environment) for _ in range(starts)]
    seconds, used = sorted(each[0] for each in figures), sorted(each[1] for each in figures)
    share = seconds[math.ceil(0.95 * len(seconds)) - 1]
    load = Path("/proc/loadavg").read_text(encoding="ascii").split()[0]
    print(
        f"{starts} starts: median {seconds[len(seconds) // 2]:.2f} s, 95th percentile {share:.2f} s, "
        f"worst {seconds[-1]:.2f} s; of processor, median {used[len(used) // 2]:.2f} s (load {load})"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
