"""Malformed and hostile lines to both ends of a remote board: does one do anything but end in one line?

    PYTHONPATH=. .venv/bin/python tests/benchmarks/hostile_lines.py [10000] [SEED]

Half of them are mutations of lines as they are sent, half are made of JSON's pieces. The end with the board is asked
by each; it must answer, refuse or end the conversation, and its settings stay. The other end reads each as a greeting,
a reading, samples, processes or an answer.
"""

from __future__ import annotations

import io
import json
import random
import sys
from typing import Any

from app.base.text import visible
from app.engine.control.serving import BoardServer, hello_of
from app.sensors.clock import VirtualClock
from app.sensors.gpu import SensorError
from app.sensors.remote import messages
from app.sensors.remote import messages as fields
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

REQUESTS: list[dict[str, Any]] = [
    {"id": 1, "do": "ping"},
    {"id": 2, "do": "stream", "interval_s": 0.02},
    {"id": 3, "do": "energy"},
    {"id": 4, "do": "processes"},
    {"id": 5, "do": "reset", "settings": ["power_limit_w"]},
    {"id": 6, "do": "state"},
]
WORDS = ["ping", "stream", "sh", "__class__", "../../etc/passwd", "$(reboot)", "\x1b[2J", "nan", "hello", "error", "id"]


def piece(rng: random.Random, depth: int = 0) -> Any:
    """A value that JSON can hold."""
    kinds = 6 if depth > 3 else 8
    kind = rng.randrange(kinds)
    if kind < 4:
        return [None, True, rng.choice([0, -1, 1e308, 2**70, 0.5]), rng.choice(WORDS)][kind]
    if kind < 6:
        return rng.choice(WORDS) * rng.randrange(3)
    inner = [piece(rng, depth + 1) for _ in range(rng.randrange(4))]
    return inner if kind == 6 else {rng.choice(WORDS): each for each in inner}


def mutated(rng: random.Random, line: bytes) -> bytes:
    """A line with some of its bytes changed, removed or doubled."""
    data = bytearray(line)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[at] = rng.randrange(256)
        elif change == 1 and len(data) > 2:
            del data[at : at + rng.randrange(1, 9)]
        elif change == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.randrange(9)))
        else:
            data[at:at] = data[at : at + 20] * rng.randrange(1, 50)
        data = data or bytearray(b"\n")
    return bytes(data)


def require_plain(error: SensorError) -> None:
    """One line without control characters."""
    assert visible(str(error)) == str(error)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    gpu = SimulatedGpu(load_twin("h200"), clock=VirtualClock())
    server = BoardServer(gpu, io.BytesIO(), io.BytesIO())
    reading = fields.line_of(messages.reading_message(gpu.read(), gpu.channels))
    hello = fields.line_of(messages.hello_message(hello_of(gpu)))
    order = [place for place, each in enumerate(gpu.channels) if each.available]
    before = gpu.read().values[[each.name for each in gpu.channels].index("power_limit_w")]
    there: dict[str, int] = {}
    here: dict[str, int] = {}
    for number in range(count):
        request = fields.line_of(rng.choice(REQUESTS))
        line = (
            mutated(rng, request)
            if number % 2
            else json.dumps(
                {"id": rng.choice([1, 0, -1, "1", 2**60]), "do": rng.choice(WORDS), rng.choice(WORDS): piece(rng)}
            ).encode()
            + b"\n"
        )
        try:
            answer = server._answered(line)
            assert len(fields.line_of(answer)) < fields.LONGEST_LINE
            what = "refused" if "error" in answer else "answered"
        except SensorError as error:
            require_plain(error)
            what = "ended"
        there[what] = there.get(what, 0) + 1
        sent = mutated(rng, rng.choice([reading, hello]))
        try:
            message = fields.parse_line(sent)
            if "hello" in message:
                messages.parse_hello(message, "there")
            elif "reading" in message:
                messages.parse_reading(message["reading"], order, len(gpu.channels))
            else:
                raise fields.Garbled("not a line of ours")
            what = "read"
        except SensorError as error:
            require_plain(error)
            what = "ended"
        here[what] = here.get(what, 0) + 1
    after = gpu.read().values[[each.name for each in gpu.channels].index("power_limit_w")]
    assert before == after, (before, after)
    print(f"{count} lines to the end with the board: {there}; settings as before")
    print(f"{count} lines from it: {here}; each in one line")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
