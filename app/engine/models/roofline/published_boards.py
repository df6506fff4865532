"""Published figures of boards (`resources/boards.toml`): theoretical peaks, power limits, fitted energy rooflines."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ....paths import resources
from .energy_roofline import EnergyRoofline

_FILE: Final = "boards.toml"
_MAKERS: Final = ("nvidia", "amd", "tesla")  # some drivers put them before a name, some do not


@dataclass(frozen=True, slots=True)
class PublishedBoard:
    """A board by its data sheet and by published fits."""

    name: str
    gflops: Mapping[str, float]  # theoretical peak per precision, GFLOP/s
    bandwidth_gb_s: float  # theoretical
    tdp_w: float
    source: str  # of the peaks, in words
    citation: str  # of the rooflines; empty where there are none
    rooflines: Mapping[str, EnergyRoofline]  # per precision

    def peak_efficiency(self, precision: str) -> float | None:
        """Theoretical peak speed over the power limit, GFLOPS/W [Anzt2015, section 4]; None where unknown."""
        peak = self.gflops.get(precision)
        return None if peak is None else peak / self.tdp_w


@functools.cache
def published_boards() -> tuple[PublishedBoard, ...]:
    """All of them, in the order of the file."""
    return tuple(board for board, _ in _read())


def board_named(name: str) -> PublishedBoard | None:
    """The board that a driver calls `name`; None where no figures of it are on file."""
    wanted = _folded(name)
    return next((board for board, names in _read() if wanted in names), None)


@functools.cache
def _read() -> tuple[tuple[PublishedBoard, frozenset[str]], ...]:
    document = tomllib.loads((resources() / _FILE).read_text("utf-8"))
    return tuple((_board(table), frozenset(map(_folded, table["names"]))) for table in document["board"])


def _board(table: Mapping[str, Any]) -> PublishedBoard:
    gflops = {precision: float(peak) for precision, peak in table["gflops"].items()}
    bandwidth_gb_s = float(table["bandwidth_gb_s"])
    return PublishedBoard(
        name=table["name"],
        gflops=gflops,
        bandwidth_gb_s=bandwidth_gb_s,
        tdp_w=float(table["tdp_w"]),
        source=table["source"],
        citation=table.get("citation", ""),
        rooflines={
            precision: EnergyRoofline(
                peak_flops=gflops[precision] * 1e9,
                bandwidth=bandwidth_gb_s * 1e9,
                **{key: float(value) for key, value in energies.items()},
            )
            for precision, energies in table.get("roofline", {}).items()
        },
    )


def _folded(name: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in name.lower()).split()
    while words and words[0] in _MAKERS:
        words.pop(0)
    return "".join(words)
