"""Malformed and hostile requests to the helper with rights: does any change anything, does any stop it?

    python tests/benchmarks/hostile_requests.py [REQUESTS] [SEED] [BOARD]

BOARD is h200 (as ever) or mi210, of AMD.
The helper is the product's own; the board is a stand-in for the driver's library (tests/nvml). Sets nothing real. Every
hundredth request is a good one, so that the board has settings of ours that a bad one could spoil. All of it once as
ever, and with a fifth of the requests under each of the faults.
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / "nvml"), str(_TESTS.parent)]

import rights  # noqa: E402
from boards import StandIn  # noqa: E402
from hostile import hostile  # noqa: E402

HELPER = _TESTS.parent / "app" / "engine" / "control" / "helper"
CONDITIONS = ("as ever", "disk takes nothing", "record unreadable", "stopped after them", "driver hangs after them")

SETTERS = {  # kind of board -> what sets its clock, and the clocks that it takes
    "h200": ("nvmlDeviceSetGpuLockedClocks", range(345, 1981, 15)),
    "mi210": ("amdsmi_set_gpu_clk_range", range(501, 1701)),
}


@dataclass
class Outcome:
    """What became of a helper, its board and the requests."""

    answers: Counter[str] = field(default_factory=Counter)
    good: int = 0
    refused: int = 0  # of the good ones, where the condition forbids them
    spoilt: int = 0  # hostile ones after which the board was another
    back_s: float | None = None  # from the fault or the end until the board was as before
    setters: int = 0
    unexpected: int = 0  # of those: none that a good request asks for, or that puts back


def attack(number: int, rng: random.Random, condition: str, board: str) -> Outcome:
    """Send a helper so many hostile requests under that condition; every hundredth request is a good one."""
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        stand_in = StandIn(Path(name), (board,))
        prior, record = stand_in.settings(), Path(name, "records", f"{stand_in.uuids[0]}.json")
        if condition == "record unreadable":
            record.parent.mkdir()
            record.write_text('{"version": 2, "from": "tomorrow"}')
        words = [sys.executable, "-I", "-B", rights.__file__, str(HELPER), name, name, stand_in.uuids[0]]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={"STAND_IN_RIGHTS": "1"})
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        serving = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        if condition == "disk takes nothing":
            resource.prlimit(serving, resource.RLIMIT_FSIZE, (0, 0))
        outcome, in_force = Outcome(), prior
        for at in range(number):
            if at % 100 == 0:
                process.stdin.write(_good(at, rng, board))
                process.stdin.flush()
                refused = "error" in json.loads(process.stdout.readline())
                outcome.good, outcome.refused, in_force = (
                    outcome.good + 1,
                    outcome.refused + refused,
                    stand_in.settings(),
                )
            line = b""
            while not line.strip() or json_of(line) == {"id": 3, "do": "confirm"}:
                line = hostile(rng, board)  # with settings in force, a confirmation is a good request
            process.stdin.write(line)
            process.stdin.flush()
            told = json.loads(process.stdout.readline())
            what = told["error"]["what"] if "error" in told else "DONE"
            outcome.answers[what.replace(str(record), "the record")] += 1
            outcome.spoilt += stand_in.settings() != in_force
        outcome.setters = len(stand_in.calls())
        outcome.unexpected = sum(
            call.function != SETTERS[board][0] or call.b - call.a not in (0, 1) or not 345 <= call.a <= 1980
            for call in stand_in.calls()
        )
        assert process.poll() is None, "the helper has ended"
        began = time.monotonic()
        if condition == "stopped after them":
            os.kill(serving, signal.SIGSTOP)
        elif condition == "driver hangs after them":
            stand_in.fault(SETTERS[board][0], delay_s=3600.0, times=1)
            process.stdin.write(_good(number, rng, board))
            process.stdin.flush()
        else:
            process.stdin.close()
        while stand_in.settings() != prior and time.monotonic() < began + 20.0:
            time.sleep(0.01)
        outcome.back_s = time.monotonic() - began if stand_in.settings() == prior else None
        if not process.stdin.closed:
            with suppress(BrokenPipeError):
                process.stdin.close()
        process.wait(30)
        process.stdout.close()
        stand_in.close()
        return outcome


def _good(number: int, rng: random.Random, board: str) -> bytes:
    clock = rng.choice(SETTERS[board][1])
    return json.dumps({"id": number, "do": "set", "settings": {"graphics_clock_mhz": [clock, clock]}}).encode() + b"\n"


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    board = sys.argv[3] if len(sys.argv) > 3 else "h200"
    answers: Counter[str] = Counter()
    print(
        f"{'condition':<24} {'hostile':>7} {'followed':>8} {'board changed':>13} {'good':>5} {'refused':>7} "
        f"{'setters':>7} {'others':>6} {'back after s':>12}"
    )
    for condition in CONDITIONS:
        one = attack(number if condition == CONDITIONS[0] else number // 5, rng, condition, board)
        answers.update(one.answers)
        back = "NEVER" if one.back_s is None else f"{one.back_s:.2f}"
        print(
            f"{condition:<24} {sum(one.answers.values()):>7} {one.answers['DONE']:>8} {one.spoilt:>13} {one.good:>5} "
            f"{one.refused:>7} {one.setters:>7} {one.unexpected:>6} {back:>12}",
            flush=True,
        )
    print(
        "\n'good': one in a hundred, refused where nothing may be set; 'setters' reached the driver, 'others' no good"
    )
    print("one asked for; 'back': the board as before, from the helper's end, or from the fault where there is one\n")
    for what, count in Counter(_kind(what) for what in answers.elements()).most_common():
        print(f"{count:>6}  {what}")


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
