"""What a Dask worker runs for a pool: it gets a line and returns one. No function of anyone else's ever travels."""

from __future__ import annotations

from typing import Protocol, cast

from distributed import get_worker

GPU_RESOURCE = "GPU"  # each worker has as many as it has requests at once; its board is at one after the other
ANNOUNCED = "wattridge"  # under which a worker's startup information has what it says of its board
END_UNTIL = "wattridge_end_until"  # a worker's handler


class AnswersRequests(Protocol):
    """A worker with a board."""

    def answer_request(self, number: int, line: bytes, topic: str) -> bytes: ...


def answer(number: int, line: bytes, topic: str) -> bytes:
    """The answer to the request of that number; parts of it are published under `topic` meanwhile."""
    return cast(AnswersRequests, get_worker()).answer_request(number, line, topic)
