"""A network between two programs: delay, stalls, and a cut. Run as a program:

    python slow_network.py DELAY_S STALLS CUT_FILE PROGRAM...

What either end sends arrives so much later. STALLS is `START:LENGTH,...` in s after the start: nothing arrives
meanwhile, and all of it afterwards. Once CUT_FILE is there, nothing more arrives at either end, and PROGRAM, as behind
a cut cable, is not told for a minute.
"""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO


def carry(source: IO[bytes], sink: IO[bytes], delay_s: float, stalls: list[tuple[float, float]], cut: Path) -> None:
    """Hand over what one end sends, later."""
    begun = time.monotonic()
    under_way: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

    def take() -> None:
        while data := source.read1(1 << 16):  # type: ignore[attr-defined]
            under_way.put((time.monotonic() + delay_s, data))
        under_way.put((time.monotonic() + delay_s, b""))

    threading.Thread(target=take, daemon=True).start()
    while True:
        due, data = under_way.get()
        for start, length in stalls:
            if begun + start <= due < begun + start + length:
                due = begun + start + length
        time.sleep(max(0.0, due - time.monotonic()))
        while cut.exists():
            time.sleep(0.05)
        if not data:
            sink.close()
            return
        sink.write(data)
        sink.flush()


def main() -> int:
    delay_s, cut = float(sys.argv[1]), Path(sys.argv[3])
    stalls = [tuple(map(float, each.split(":"))) for each in sys.argv[2].split(",") if each]
    process = subprocess.Popen(sys.argv[4:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for source, sink in ((sys.stdin.buffer, process.stdin), (process.stdout, sys.stdout.buffer)):
        threading.Thread(target=carry, args=(source, sink, delay_s, stalls, cut), daemon=True).start()  # type: ignore[arg-type]
    cut_s = 0.0
    while process.poll() is None and cut_s < 60.0:
        time.sleep(0.1)
        cut_s = cut_s + 0.1 if cut.exists() else 0.0
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
