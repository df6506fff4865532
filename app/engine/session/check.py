"""Two contenders on one board, block by block in turns, until it is known whether B needs more joules than A."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar, Final

from ...base.errors import WattridgeError
from ...base.formatting import duration, number
from ...base.records import Amount, Source, figure
from ...sensors.gpu import LIVE, Gpu, GpuProcess, ListsProcesses, SensorError
from ..analysis.in_turns import ERROR, FEWEST, SIDES, THRESHOLD, Block, InTurns, Side, Verdict, compare_in_turns, turns
from ..children.reaper import descendants
from ..results.description import Description, Figure, Listing
from .contenders import Contender, Look

SECONDS: Final = 60.0
_RUNS: Final = 1.0  # % of the last second, from which on a process that stays on the board is said to run
EXIT: Final = {Verdict.NO_WORSE: 0, Verdict.WORSE: 4, Verdict.OPEN: 3}


class EnergyUnknown(WattridgeError):
    """A side ran, and the board does not say what it drew."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is asked of a comparison."""

    seconds: float = SECONDS  # on the board's clock, at most
    threshold: float = THRESHOLD
    error: float = ERROR
    seed: int | None = None  # of the coins
    fewest: int = 0  # blocks at least, whatever time they take


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer of `wattridge check`: B against A on one board, with its blocks in the order of time."""

    a: str
    b: str
    gpu: str
    source: Source
    unit: str  # of the work, that the blocks' figures are of: 'run', 'call' or 'launch'
    result: InTurns
    blocks: tuple[Block, ...]
    remarks: tuple[str, ...] = ()
    when_s: Amount = field(default=0.0, metadata=figure(key="time"))  # since the epoch
    IN_JSON: ClassVar = ("verdict", "words", "markdown")

    @property
    def verdict(self) -> Verdict:
        """Whether B is worse."""
        return self.result.verdict

    @property
    def words(self) -> str:
        """The answer, and what follows from it."""
        return f"{self.result.words}: {self._judged}"

    @property
    def markdown(self) -> str:
        """A line for a pull request."""
        mark = {Verdict.NO_WORSE: "✅", Verdict.WORSE: "❌", Verdict.OPEN: "❔"}[self.verdict]
        sides = f"A = `{self.a}`, B = `{self.b}`".replace("\n", " ")
        sure = f"{self._sure} intervals"
        return f"{mark} **Energy**: {self.words} ({sides}; {self.board}, {self._length}, {sure})"

    @property
    def board(self) -> str:
        """The board's name, with its source where that is no board."""
        return self.gpu if self.source in LIVE else f"{self.gpu} ({self.source})"

    @property
    def _sure(self) -> str:
        return f"{number(100 * (1 - self.result.error))} %"

    @property
    def _length(self) -> str:
        return f"{self.result.blocks} blocks in {duration(self.result.seconds)}"

    @property
    def _judged(self) -> str:
        limit = f"{number(100 * self.result.threshold, 2)} %"
        if self.verdict is Verdict.WORSE:
            return f"worse, by more than {limit}"
        if self.verdict is Verdict.NO_WORSE:
            return f"no worse: not by {limit} or more"
        more_s = self.result.seconds_more
        likely = f"about {duration(more_s)} more would do" if math.isfinite(more_s) else "a longer run would not do"
        return f"undecided whether worse by {limit}; {likely}"

    def describe(self) -> Description:
        """For the terminal."""
        rows: list[list[Any]] = []
        for side, name in zip(SIDES, (self.a, self.b), strict=True):
            of_side = [block for block in self.blocks if block.side == side]
            columns = ([getattr(block, key) for block in of_side] for key in ("energy_j", "time_s", "host_energy_j"))
            rows.append([side, name, *(median(column) if column else math.nan for column in columns), len(of_side)])
        header = ["", "", f"J per {self.unit}", f"s per {self.unit}", "J of the host", "blocks"]
        if all(math.isnan(row[4]) for row in rows):
            header, rows = header[:4] + header[5:], [row[:4] + row[5:] for row in rows]
        sure = f"intervals hold with {self._sure}, whenever one stops"
        figures = [
            Figure("Answer", self.result.words),
            Figure("Verdict", self._judged),
            Figure("Measured", self._length),
        ]
        return Description("B against A", self.board, figures, [Listing("", header, rows)], [sure, *self.remarks])


def in_turns(
    contenders: Mapping[Side, Contender],
    gpu: Gpu,
    terms: Terms,
    stop: threading.Event,
    on_pair: Callable[[InTurns], None] = lambda _: None,
) -> tuple[InTurns, list[Block], list[str]]:
    """Measure two contenders in turns until it is known, the time is over, or `stop` is set.

    Both do one block first that does not count: it compiles, allocates and fills caches.

    Parameters
    ----------
    contenders
        What to measure, by side.
    gpu
        The board.
    terms
        How long at most, and how sure.
    stop
        Ends it early; what was measured by then is the result.
    on_pair
        Called after every pair of blocks.

    Returns
    -------
    The comparison, the blocks, and remarks. Raises WattridgeError where a side fails or its energy is not known.
    """
    blocks: list[Block] = []
    neighbours: list[set[str]] = []
    staying = {process.pid for process in _others(gpu)}
    compared = compare_in_turns(blocks, terms.threshold, terms.error)
    first_ns = 0
    for counted, side in _order(terms.seed):
        look = contenders[side].block(stop)
        if look is None:
            break
        if not counted:
            _require_energy(look, side, gpu)
            continue
        first_ns = first_ns or look.start_ns
        blocks.append(_block(look, side, first_ns))
        ran = [each for each in _others(gpu) if each.pid not in staying or each.share_percent >= _RUNS]
        neighbours.append({each.name for each in ran})
        if len(blocks) % 2 == 0:
            compared = compare_in_turns(blocks, terms.threshold, terms.error)
            on_pair(compared)
            decided = len(blocks) >= FEWEST and compared.verdict is not Verdict.OPEN
            if decided or (compared.seconds >= terms.seconds and len(blocks) >= terms.fewest):
                break
    return compared, blocks, list(_remarks(blocks, neighbours, stop))


def alone(contender: Contender, gpu: Gpu, count: int, stop: threading.Event) -> list[Block]:
    """Measure blocks of one contender, as side A, after one that does not count. Raises as `in_turns` does."""
    blocks: list[Block] = []
    while len(blocks) <= count and (look := contender.block(stop)) is not None:
        _require_energy(look, "A", gpu)
        blocks.append(_block(look, "A", 0))
    return blocks[1:]


# --- inside -----------------------------------------------------------------------------------------------------------


def _order(seed: int | None) -> Iterator[tuple[bool, Side]]:
    yield from ((False, side) for side in SIDES)
    yield from ((True, side) for side in turns(seed))


def _block(look: Look, side: Side, first_ns: int) -> Block:
    seconds = (look.end_ns - look.start_ns) / 1e9
    energy_j = math.nan if look.evidence is None else look.evidence.mean_power_w * look.time_s
    return Block(
        side,
        (look.start_ns - first_ns) / 1e9,
        (look.end_ns - first_ns) / 1e9,
        look.time_s,
        energy_j,
        look.host_w * seconds / look.work,
        look.work,
        look.evidence,
    )


def _require_energy(look: Look, side: Side, gpu: Gpu) -> None:
    if look.evidence is None:
        remedy = "see what the board reports: wattridge monitor"
        raise EnergyUnknown(f"energy of {side} is not known: {look.unknown}", gpu.info.label, remedy)


def _others(gpu: Gpu) -> list[GpuProcess]:
    """The processes on the board that are not of this program."""
    if isinstance(gpu, ListsProcesses):
        with suppress(SensorError):
            others = [each for each in gpu.processes() if each.pid != os.getpid()]
            own = descendants(os.getpid()) if others else ()  # a look at every process of the machine
            return [each for each in others if each.pid not in own]
    return []


def _remarks(blocks: Sequence[Block], neighbours: Sequence[set[str]], stop: threading.Event) -> Iterator[str]:
    if stop.is_set():
        yield "it was stopped before it was decided"
    if names := ", ".join(sorted(set[str]().union(*neighbours))[:3]):
        times = f"in {sum(map(bool, neighbours))} of {len(blocks)} blocks"
        yield f"other processes ran on the board ({names}), seen {times}: it takes longer"
    unknown = sum(math.isnan(block.energy_j) for block in blocks)
    if unknown:
        yield f"the energy of {unknown} of {len(blocks)} blocks is not known: their pairs do not count"
