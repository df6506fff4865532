"""Boards of one model that shared a session: what it keeps of how they differ and what each did, described."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ...numbers import percent
from ..description import Cell, Listing
from ..metering.board_offsets import BoardOffset, offsets_from_json
from ..runner.board_correction import BOARD_NUMBER
from ..runner.one_scale import OFFSETS
from ..runner.pool.gpu import boards_of_origin
from ..runner.pool.status import status_of_origin
from ..space.result_table import ResultTable

_DID = "What the boards did: results that they reported, and the share of their time with rows to measure"
_TITLE = "Boards, over the reference board: ratios with their 95 % intervals; figures are on its scale"


def offsets_of_origin(origin: Mapping[str, str]) -> tuple[dict[str, BoardOffset], str]:
    """The offsets of a session's boards by their keys, and the reference's; none of a session on one board."""
    try:
        return offsets_from_json(json.loads(origin[OFFSETS]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}, ""


def board_labels(origin: Mapping[str, str]) -> dict[str, str]:
    """What a session calls its boards, by their keys."""
    return {key: facts.get("label") or key for key, facts in boards_of_origin(origin).items()}


def boards_by_number(table: ResultTable) -> tuple[str, ...]:
    """The keys of the boards that share a session, by `board_number`; '' where a number is nobody's, as 0 is."""
    numbers = table.values(BOARD_NUMBER)
    known = np.flatnonzero(np.isfinite(numbers))
    found, first = np.unique(numbers[known].astype(np.int64), return_index=True)
    keys = [""] * (int(found[-1]) + 1 if len(found) else 0)
    for number, at in zip(found, known[first], strict=True):
        keys[number] = table.measurement(int(at)).board
    return tuple(keys)


def offsets_document(origin: Mapping[str, str]) -> dict[str, Any] | None:
    """For `--json`; None of a session on one board."""
    offsets, reference = offsets_of_origin(origin)
    if not offsets:
        return None
    boards = {
        key: {
            "shared": offset.shared,
            **{
                name: {"ratio": ratio.value, "ratio_interval": list(ratio.interval), "differs": ratio.differs}
                for name, ratio in offset.ratios.items()
            },
        }
        for key, offset in offsets.items()
    }
    return {"reference": reference, "boards": boards}


def describe_offsets(origin: Mapping[str, str], name: Callable[[str], str] | None = None) -> Iterator[Listing]:
    """How each board differs from the reference; nothing of a session on one board.

    `name` gives a board's by its key, in place of how the session calls it.
    """
    offsets, reference = offsets_of_origin(origin)
    labels = board_labels(origin) if name is None else {key: name(key) for key in offsets}
    rows: list[list[Cell]] = []
    for number, (key, offset) in enumerate(offsets.items(), 1):
        figures = [offset.ratios[name].words for name in ("energy_j", "time_s", "power_w")]
        figures = ["reference", "", ""] if key == reference else figures
        rows.append([number, labels.get(key, key), *figures, offset.shared or None])
    if len(rows) > 1:
        yield Listing(_TITLE, ("", "board", "energy", "time", "power", "configurations shared"), rows)


def describe_board_work(origin: Mapping[str, str]) -> Iterator[Listing]:
    """What each board did; nothing of a session on one board."""
    status = status_of_origin(origin)
    if status is None or len(status.boards) < 2:
        return
    rows: list[list[Cell]] = [
        [board.label, board.measured, board.failed, percent(board.share, 0), board.lost] for board in status.boards
    ]
    yield Listing(_DID, ("board", "results", "failed", "at work", "times lost"), rows)
