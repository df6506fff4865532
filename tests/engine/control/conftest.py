"""Boards that are not there, for the tests of what sets boards."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("nvml", "engine"):
    sys.path.insert(0, str(Path(__file__).parents[2] / folder))

from stand_in_fixtures import (  # noqa: E402, F401
    as_root,
    boards,
    boards_settle_soon,
    by_sudo,
    opened,
    sudo,
    with_either_right,
    with_rights,
)
