"""Boards that are not there, for the tests of what sets boards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

for folder in ("nvml", "engine"):
    sys.path.insert(0, str(Path(__file__).parents[2] / folder))

from boards import StandIn  # noqa: E402
from fixtures.helper_process import Process  # noqa: E402
from fixtures.stand_in_fixtures import (  # noqa: E402, F401
    as_root,
    boards,
    boards_settle_soon,
    by_sudo,
    opened,
    opened_amd,
    sudo,
    with_either_right,
    with_rights,
)


@pytest.fixture
def helper() -> Iterator[Callable[..., Process]]:
    """`helper(stand_in)`: a helper with rights over its first board; it has ended when the test has."""
    made: list[Process] = []

    def start(stand_in: StandIn, *words: str, **environment: str) -> Process:
        made.append(Process(stand_in, *words, **environment))
        return made[-1]

    yield start
    for each in made:
        each.end()
