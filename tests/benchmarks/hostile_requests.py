"""Malformed and hostile requests to the helper with rights: does any change anything, does any stop it?

    python tests/benchmarks/hostile_requests.py [REQUESTS] [SEED]

The helper is the product's own; the board is a stand-in for the driver's library (tests/nvml). Sets nothing real. Every
hundredth request is a good one, so that the board has settings of ours that a bad one could spoil.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "nvml"), str(_TESTS.parent)]

import rights  # noqa: E402
from boards import StandIn  # noqa: E402
from hostile import hostile  # noqa: E402

HELPER = _TESTS.parent / "app" / "engine" / "control" / "helper"


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        stand_in = StandIn(Path(name), ("h200",))
        prior = stand_in.settings()
        words = [sys.executable, "-I", "-B", rights.__file__, str(HELPER), name, name, stand_in.uuids[0]]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"STAND_IN_RIGHTS": "1"})
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        answers: Counter[str] = Counter()
        spoilt, unexpected, good, in_force = 0, 0, 0, prior
        began = time.monotonic()
        for at in range(number):
            if at % 100 == 0:
                clock = rng.randrange(345, 1981, 15)
                request = {"id": at, "do": "set", "settings": {"graphics_clock_mhz": [clock, clock]}}
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
                assert "error" not in json.loads(process.stdout.readline())
                good, in_force = good + 1, stand_in.settings()
            line = b""
            while not line.strip() or json_of(line) == {"id": 3, "do": "confirm"}:
                line = hostile(rng)  # with settings in force, a confirmation is a good request
            process.stdin.write(line)
            process.stdin.flush()
            told = json.loads(process.stdout.readline())
            answers[told["error"]["what"] if "error" in told else "DONE"] += 1
            spoilt += stand_in.settings() != in_force
        seconds = time.monotonic() - began
        setters = stand_in.calls()
        unexpected = sum(
            call.function != "nvmlDeviceSetGpuLockedClocks" or call.a != call.b or not 345 <= call.a <= 1980
            for call in setters
        )
        alive = process.poll() is None
        process.stdin.close()
        process.wait(10)
        print(f"{sum(answers.values())} hostile requests among {good} good ones, {seconds:.1f} s")
        print(f"followed: {answers['DONE']}; board changed by one: {spoilt}; helper alive after them: {alive}")
        print(f"setters that reached the driver: {len(setters)}, of the good ones {good}, others {unexpected}")
        print(f"after its end the board is as before: {stand_in.settings() == prior}\n")
        for what, count in Counter(_kind(what) for what in answers.elements()).most_common():
            print(f"{count:>6}  {what}")
        stand_in.close()


def json_of(line: bytes) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _kind(what: str) -> str:
    """A reason without its numbers."""
    return "".join("#" if letter.isdigit() else letter for letter in what).replace("##", "#").replace("##", "#")


if __name__ == "__main__":
    main()
