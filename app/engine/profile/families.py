"""Families of what ran: launches of a kernel, of the same shapes where the trace names them, or copies of a kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from .kernel_names import readable_name
from .program_trace import COPY, KERNEL, KINDS, Ints, OperatorCall, ProgramTrace

_MOST: Final = 120  # families; those that took least time come together by kind
_LEAST_SHARE: Final = 1e-4  # of the time of all slices, below which they do as well,
_KEPT: Final = 30  # beyond so many
_LONGEST: Final = 100  # characters of a name
_LONGEST_SHAPES: Final = 60


@dataclass(frozen=True, slots=True)
class Family:
    """What ran under one name."""

    name: str  # as it is shown, each once
    kind: str  # in KINDS
    full_name: str  # of the one that took most time, as the trace has it
    call: OperatorCall | None  # the operator that launched it, where all launches have one with the same shapes


def families_of(trace: ProgramTrace) -> tuple[tuple[Family, ...], Ints]:
    """Group the slices of a trace: the families, and the place of each slice's among them."""
    # one number for all three: to sort rows takes ten times as long
    named = trace.kind.astype(np.int64) * len(trace.names) + trace.name
    numbers = named * (len(trace.operators) + 1) + trace.operator + 1
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    distinct = np.column_stack((trace.kind.astype(np.int64), trace.name, trace.operator))[first]
    times_ns = np.bincount(which, weights=trace.duration_ns)
    keys: dict[tuple[int, str, str], list[int]] = {}
    for row, (kind, name, operator) in enumerate(distinct.tolist()):
        call = trace.operators[operator] if operator >= 0 and kind == KERNEL else None
        keys.setdefault((kind, readable_name(trace.names[name]), _shapes(call)), []).append(row)
    ranked = sorted(keys, key=lambda key: -times_ns[keys[key]].sum())
    enough_ns = _LEAST_SHARE * float(times_ns.sum())
    families: list[Family] = []
    rest: dict[int, list[int]] = {}
    of_row = np.zeros(len(distinct), np.int32)
    taken: set[str] = set()
    for place, key in enumerate(ranked):
        rows = keys[key]
        if place >= _MOST or (place >= _KEPT and times_ns[rows].sum() < enough_ns):
            rest.setdefault(key[0], []).extend(rows)
            continue
        longest = distinct[max(rows, key=lambda row: times_ns[row])].tolist()
        calls = {distinct[row][2] for row in rows}
        call = trace.operators[longest[2]] if -1 not in calls and key[0] == KERNEL else None
        of_row[rows] = len(families)
        shown = _unique(_shortened(key[1], _LONGEST) + (f" [{key[2]}]" if key[2] else ""), taken)
        families.append(Family(shown, KINDS[key[0]], trace.names[longest[1]], call))
    for kind, rows in rest.items():
        of_row[rows] = len(families)
        words = {KERNEL: "other kernels", COPY: "other copies"}.get(kind, "other sets")
        families.append(Family(_unique(f"{words} ({len(rows)})", taken), KINDS[kind], "", None))
    return tuple(families), of_row[which]


def _shapes(call: OperatorCall | None) -> str:
    """The shapes of the tensors that an operator was given; '' where none is known."""
    shapes = ["×".join(map(str, dims)) for dims in (call.dims if call else ()) if dims]
    return _shortened(", ".join(shapes), _LONGEST_SHAPES)


def _shortened(text: str, room: int) -> str:
    """The text, without its middle if it is too long."""
    return text if len(text) <= room else f"{text[: room // 2]}…{text[len(text) - room // 2 + 1 :]}"


def _unique(name: str, taken: set[str]) -> str:
    """The name, with a number where another family is called the same."""
    number, shown = 1, name
    while shown in taken:
        number += 1
        shown = f"{name} #{number}"
    taken.add(shown)
    return shown
