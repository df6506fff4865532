"""What this user may save here: each lever in turns with the untouched state, and what makes it permanent.

A lever is a part of the SMs, a variable of the process's environment, or, with rights, a clock or the power limit. Of
several values a first look chooses the one of the least energy. In turns it is then decided whether it saves as much
as matters; levers that each help are tried together.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, reduce
from operator import or_
from statistics import fmean
from typing import ClassVar, Final

import numpy as np

from ...base.errors import WattridgeError
from ...base.files import is_there, read_text
from ...base.formatting import duration, number
from ...base.records import Amount, Finite, Source, figure
from ...sensors.gpu import LIVE
from ..analysis.in_turns import ERROR, FEWEST, Block, InTurns, Side, TurnsDifference
from ..analysis.tradeoff import percent_words
from ..control.guard import DeviceGuard
from ..models.administrator import advice
from ..results.chart import Chart, Series
from ..results.description import Cell, Description, Figure, Listing
from ..results.measurement import Measurement, State
from ..results.settings import nearest_supported, upper
from ..specification.input_data import data_in_words
from .check import Terms, in_turns
from .contenders import Contender
from .sides import Change, Held, Named, Opening, Workload, opened

TURN_S: Final = 45.0  # for a lever, at most, unless the user says how long all may take
MATTERS: Final = 0.005  # of the joules
LEAST_S: Final = 14.0  # for a lever: blocks until there is an interval
LOOK_S: Final = 0.7  # about, for a block of a first look
START_S: Final = 8.0  # about, until it runs
_SHARES: Final = (0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875)  # of the SMs
_CLOCKS: Final = (0.5, 0.6, 0.7, 0.8, 0.9)  # of the highest
_LIMITS: Final = (0.6, 0.7, 0.8, 0.9)  # of the one in force
BOOST: Final = "CUDA_DISABLE_PERF_BOOST"
_VARIABLES: Final = {BOOST: "1"}
_OF_TORCH: Final = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
_MATH: Final = {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"}
IGNORED: Final = "a driver may ignore it"
ROUNDED: Final = "results are rounded otherwise: TF32 has 10 bits"


@dataclass(frozen=True, slots=True)
class Lever:
    """Changes of one kind, of which one is chosen."""

    name: str
    changes: tuple[Change, ...]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asks for."""

    seconds: float | None = None  # for all of it, about; None: `TURN_S` for each lever, and as long as it needs
    slower: float = 0.05  # at most, relative, of what a first look chooses, where there is such
    rounding: bool = False  # levers too that round results otherwise
    seed: int | None = None  # of the coins


@dataclass(frozen=True, slots=True)
class _Plan:
    levers: list[Lever]
    refused: list[str]  # what is not tried, and why
    each_s: float  # for a lever, at most

    def seconds(self, block_s: float, fewest: int = 0) -> float:
        """How long all of it takes at most, about, with blocks of that length."""
        looks = sum(len(lever.changes) for lever in self.levers if len(lever.changes) > 1)
        turns = len(self.levers) + (len(self.levers) > 1)
        return START_S + looks * block_s + turns * max(self.each_s, (fewest + 2) * block_s)


@dataclass(frozen=True, slots=True)
class Look:
    """Time and joules of a unit of work in one state."""

    change: str
    time_s: float
    energy_j: float


@dataclass(frozen=True, slots=True)
class Tried:
    """One lever, or several together, against the untouched state."""

    lever: str
    look: Look
    permanent: str  # how it is made permanent
    energy: TurnsDifference
    time: TurnsDifference
    blocks: int
    helps: bool  # it needs fewer joules, by an interval that leaves out zero
    remark: str = ""
    first_looks: tuple[Look, ...] = ()  # a block of each value


@dataclass(frozen=True, slots=True)
class Savings:
    """The answer of `wattridge savings`."""

    target: str
    gpu: str
    source: Source
    unit: str  # of the work: 'run', 'call' or 'launch'
    data: str  # that it holds for; empty where it is the program's own
    untouched: Look
    tried: tuple[Tried, ...]
    refused: tuple[str, ...]  # levers that were not tried, and why
    seconds_said: Finite
    seconds: Finite  # that it took
    remarks: tuple[str, ...] = ()
    administrator: str = ""  # what somebody with rights could do, or why that cannot be said; empty with rights
    when_s: Amount = field(default_factory=time.time, metadata=figure(key="time"))  # since the epoch
    IN_JSON: ClassVar = ("words",)

    @property
    def words(self) -> str:
        """The answer in a line: what helps most, or the smallest saving that would have been seen."""
        if helping := [one for one in self.tried if one.helps]:
            best = min(helping, key=lambda one: one.energy.change)
            return f"{best.look.change}: {best.energy.words('energy')}, {best.time.words('time')}"
        ends = [one.energy.interval for one in self.tried]
        if not ends or None in ends:
            return "undecided: it needs more time" if ends else "nothing could be tried"
        seen = max((high - low) / 2 for low, high in filter(None, ends))
        return f"nothing found: a saving of more than {number(100 * seen, 2)} % would have been seen"

    @property
    def board(self) -> str:
        """The board's name, with its source where that is no board."""
        return self.gpu if self.source in LIVE else f"{self.gpu} ({self.source})"

    def describe(self) -> Description:
        """For terminal, report and window."""
        units = [f"J per {self.unit}", f"s per {self.unit}"]
        rows: list[list[Cell]] = [["untouched", None, None, self.untouched.energy_j, self.untouched.time_s]]
        for one in self.tried:
            saved = _percent(-one.energy.change, one.energy.half_width)
            lost = _percent(one.time.change, one.time.half_width)
            rows.append([one.look.change, saved, lost, one.look.energy_j, one.look.time_s])
        listings = [Listing("Against the untouched state", ["lever", "joules saved", "time lost", *units], rows)]
        if lasting := [[one.look.change, one.permanent] for one in self.tried if one.helps]:
            listings.append(Listing("How to make it permanent", ["lever", "how"], lasting))
        for one in self.tried:
            looks: list[list[Cell]] = [[look.change, look.energy_j, look.time_s] for look in one.first_looks]
            if looks:
                listings.append(Listing(f"A first look: {one.lever}, a block each", ["", *units], looks))
        figures = [
            Figure("Answer", self.words, important=True),
            Figure("Data", self.data or "the target's own"),
            Figure("Took", f"{duration(self.seconds)}, of about {duration(self.seconds_said)} at most"),
        ]
        sure = f"intervals hold with {number(100 * (1 - ERROR))} %, whenever one stops"
        said = [f"{one.look.change}: {one.remark}" for one in self.tried if one.remark]
        remarks = [sure, *self.refused, *said, *self.remarks, *filter(None, (self.administrator,))]
        return Description(f"What {self.target} can save", self.board, figures, listings, remarks)

    def chart(self) -> Chart:
        """Time and energy of a unit of work: untouched, each lever, and what the first looks showed."""
        shown = (
            ("first look", "grey", "o", [look for one in self.tried for look in one.first_looks]),
            ("untouched", "blue", "s", [self.untouched]),
            ("lever", "vermillion", "t", [one.look for one in self.tried if not one.helps]),
            ("lever that helps", "green", "t", [one.look for one in self.tried if one.helps]),
        )
        series = []
        for label, colour, symbol, looks in shown:
            y, x = np.array([look.energy_j for look in looks]), np.array([1e3 * look.time_s for look in looks])
            series += [Series(label, colour, y, x, line=False, points=True, symbol=symbol)] if looks else []
        caption = f"Time and joules of a {self.unit} of {self.target} on {self.board}, with each lever and without."
        return Chart("time (ms)", "energy (J)", tuple(series), caption)


def find_savings(
    side: Named,
    opening: Opening,
    guard: DeviceGuard,
    asked: Asked = Asked(),
    on_step: Callable[[str, InTurns | None], None] = lambda words, now: None,
) -> Savings:
    """Say how long it takes, and try the levers that this user may use here. What was set is put back.

    Parameters
    ----------
    side
        What is to save.
    opening
        The board; its `remark` is given what is tried, and for how long, before anything runs.
    guard
        What may be set. The rights are asked for only where it may, and a clock or a limit is among the levers.
    asked
        How long, and what counts.
    on_step
        Called with what is measured, and the comparison so far.

    Returns
    -------
    Savings
        Of what was tried until `opening.stop` was set. Raises WattridgeError where the target itself fails.
    """
    began, live = time.monotonic(), opening.gpu.info.live
    plan = _planned(side, opening, guard, asked)
    said_s, tried = plan.seconds(LOOK_S), list[Tried]()
    names = ", ".join(lever.name for lever in plan.levers) or "nothing"
    opening.remark(f"about {duration(said_s)} at most: {names}; each in turns with the untouched state")
    opening.stack.callback(guard.restore)
    if live and any(change.settings for lever in plan.levers for change in lever.changes):
        for note in guard.open():
            opening.remark(note)
    workload = opened(side, opening, [change for lever in plan.levers for change in lever.changes])
    turns = _Turns(workload, opening, guard, plan.each_s, asked, on_step)
    if plan.levers and said_s < (longer_s := plan.seconds(turns.first_block_s(), turns.terms.fewest)):
        said_s = longer_s
        opening.remark(f"its blocks are long, so that it takes about {duration(said_s)} at most")
    for lever in plan.levers:
        if not opening.stop.is_set():
            try:
                tried.append(turns.best_of(lever))
            except WattridgeError as error:  # this lever cannot be used here
                turns.remarks.append(f"{lever.name} could not be tried: {error}")
    helping = [turns.chosen[one.lever] for one in tried if one.helps]
    if len(helping) > 1 and not opening.stop.is_set():
        tried.append(turns.against("together", reduce(or_, helping)))
    if opening.stop.is_set():
        turns.remarks.append("it was stopped before everything was tried")
    info, spec, took_s = opening.gpu.info, side.specification, time.monotonic() - began
    data = data_in_words(spec) if spec is not None else ""
    turns.remarks += side.data[1:] if info.real else []
    every, remarks = tuple(tried), tuple(dict.fromkeys(turns.remarks))
    names_of = side.name, info.name, info.source, turns.unit, data
    others = "" if guard.allowed else turns.administrator()
    return Savings(*names_of, turns.untouched, every, tuple(plan.refused), said_s, took_s, remarks, others)


# --- inside -----------------------------------------------------------------------------------------------------------


def _planned(side: Named, opening: Opening, guard: DeviceGuard, asked: Asked) -> _Plan:
    plan, spec = _Plan([], [], 0.0), side.specification
    if not opening.gpu.info.real and (spec is None or spec.command is not None):
        return replace(plan, refused=["a program draws nothing on a board that is not there"])
    for make in (_sms, _environment, _settings):
        made, why = make(side, opening, guard, asked)
        plan.levers.extend(made)
        plan.refused.extend(why)
    if asked.seconds is None:
        return replace(plan, each_s=TURN_S)
    turns = max(1, len(plan.levers) + (len(plan.levers) > 1))
    return replace(plan, each_s=max(LEAST_S, (asked.seconds - plan.seconds(LOOK_S)) / turns))


class _Turns:
    """Levers against the untouched state, which is opened once."""

    def __init__(
        self,
        workload: Workload,
        opening: Opening,
        guard: DeviceGuard,
        each_s: float,
        asked: Asked,
        on_step: Callable[[str, InTurns | None], None],
    ) -> None:
        self._workload, self._opening, self._guard = cache(workload), opening, guard
        self._slower, self._on_step = asked.slower, on_step
        fewest = FEWEST if asked.seconds is None else 0
        self.terms = Terms(each_s, -MATTERS, ERROR, asked.seed, fewest)
        self._free = self._held(Change())
        self.unit = self._free.unit
        self.chosen: dict[str, Change] = {}
        self.remarks: list[str] = []
        self.untouched = Look("untouched", math.nan, math.nan)

    def first_block_s(self) -> float:
        """How long a block of the untouched state takes. Raises WattridgeError where it fails."""
        if (look := self._free.block(self._opening.stop)) is None:
            return 0.0
        self.untouched = Look("untouched", look.time_s, math.nan)
        return (look.end_ns - look.start_ns) / 1e9 / self._opening.gpu.clock.speed

    def administrator(self) -> str:
        """What a lower clock would save, as far as one more block of the untouched state lets one say."""
        gpu, look = self._opening.gpu, None if self._opening.stop.is_set() else self._free.block(self._opening.stop)
        if look is None or look.evidence is None:
            return ""
        values = {"power_w": look.evidence.mean_power_w, "time_s": look.time_s}
        seen = Measurement(0, {}, State.OK, values, observed_clock_mhz=look.clock_mhz, source=gpu.info.source)
        limit_w, clocks = gpu.info.power_limit.current_w, gpu.graphics_clocks_mhz()
        selector = gpu.info.uuid if gpu.info.real else gpu.info.source
        found = advice(
            [seen], gpu.info.name, source=gpu.info.source, selector=selector, limit_w=limit_w, supported_mhz=clocks
        )
        return found.paragraph

    def best_of(self, lever: Lever) -> Tried:
        looks = [] if len(lever.changes) == 1 else self._first_looks(lever)
        most_s = (1 + self._slower) * self.untouched.time_s
        known = [at for at, look in enumerate(looks) if math.isfinite(look.energy_j)]
        quick = [at for at in known if looks[at].time_s <= most_s]
        best = min(quick, key=lambda at: looks[at].energy_j, default=-1)
        if best < 0:  # nothing is quick enough: the quickest
            best = min(known, key=lambda at: looks[at].time_s, default=0)
        self.chosen[lever.name], remark = lever.changes[best], lever.remark
        if lever.changes[best].sms and (full := [one for one in looks if one.time_s <= 1.01 * self.untouched.time_s]):
            remark = f"the fewest within 1 % of the time are {full[0].change}, with {number(full[0].energy_j)} J"
        return self.against(lever.name, lever.changes[best], remark, tuple(looks))

    def against(self, name: str, change: Change, remark: str = "", looks: tuple[Look, ...] = ()) -> Tried:
        sides: dict[Side, Contender] = {"A": self._free, "B": self._held(change)}
        words, stop = change.words, self._opening.stop
        self._on_step(words, None)
        found, blocks, remarks = in_turns(
            sides, self._opening.gpu, self.terms, stop, lambda now: self._on_step(words, now)
        )
        self.remarks += remarks
        self.untouched, look = _mean("untouched", blocks, "A"), _mean(words, blocks, "B")
        helps = bool(found.energy.distinguishable) and found.energy.change < 0
        if dict(change.environment).get(BOOST) and found.energy.distinguishable is False:
            remark = f"no difference was seen; {IGNORED}"
        return Tried(name, look, _permanent(change), found.energy, found.time, len(blocks), helps, remark, looks)

    def _first_looks(self, lever: Lever) -> list[Look]:
        found: list[Look] = []
        for change in lever.changes:
            self._on_step(f"a first look: {change.words}", None)
            try:
                look = self._held(change).block(self._opening.stop)
            except WattridgeError as error:  # such as a part that the driver does not make
                self.remarks.append(f"{change.words} could not be tried: {error.what}")
                found.append(Look(change.words, math.nan, math.nan))
                continue
            if look is None:
                break
            power_w = math.nan if look.evidence is None else look.evidence.mean_power_w
            found.append(Look(change.words, look.time_s, power_w * look.time_s))
        return found

    def _held(self, change: Change) -> Contender:
        contender = self._workload(replace(change, settings=()))
        return Held(contender, self._guard, dict(change.settings)) if self._guard.allowed else contender


_Made = tuple[list[Lever], list[str]]


def _sms(side: Named, opening: Opening, guard: DeviceGuard, asked: Asked) -> _Made:
    """Parts of the SMs, as far as it is known before anything runs."""
    spec, info, name = side.specification, opening.gpu.info, "a part of the SMs"
    limits = getattr(opening.gpu, "limits", None)
    every = info.multiprocessors or getattr(limits, "multiprocessors", 0)
    if side.kind == "command":
        return [], [f"{name}: a program launches its kernels itself; name a kernel or FILE.py:FUNCTION"]
    if spec is not None and spec.kernel is None:
        return [], []
    if info.source == "amd" or (spec is not None and spec.kernel is not None and spec.kernel.language != "CUDA"):
        return [], [f"{name}: only CUDA has it"]
    if not every or (side.kind == "function" and not _uses_torch(side)):
        return [], [f"{name}: {'a function has it by PyTorch' if every else 'their number is unknown'}"]
    step = 8 if every > 32 else 2  # of boards since Hopper; others round up to fewer
    counts = sorted({max(step, round(every * share / step) * step) for share in _SHARES} - {every})
    counts = counts[2::3] if side.kind == "function" else counts  # a process for each
    return [Lever(name, tuple(Change(sms=count) for count in counts if count < every))], []


def _environment(side: Named, opening: Opening, guard: DeviceGuard, asked: Asked) -> _Made:
    """Variables of a process that is started for it."""
    spec = side.specification
    attached = spec is not None and spec.service is not None and spec.service.attach
    if spec is not None and (spec.kernel is not None or attached or not opening.gpu.info.real):
        return [], []
    if side.kind == "function":
        return [], [f"{', '.join(_VARIABLES)}: two processes with contexts share the board here; name the program"]
    torch = _uses_torch(side)
    variables = _VARIABLES | (_OF_TORCH if torch else {}) | (_MATH if torch and asked.rounding else {})
    remarks = {BOOST: IGNORED, **dict.fromkeys(_MATH, ROUNDED)}
    kept = {name: value for name, value in variables.items() if name not in os.environ}
    why = [f"{name}: it is set already" for name in variables if name not in kept]
    if torch and not asked.rounding:
        why.append(f"{', '.join(_MATH)}: {ROUNDED}; --rounding tries it")
    changes = {name: (Change(environment=((name, value),)),) for name, value in kept.items()}
    return [Lever(name, change, remarks.get(name, "")) for name, change in changes.items()], why


def _settings(side: Named, opening: Opening, guard: DeviceGuard, asked: Asked) -> _Made:
    """The graphics clock and the power limit, where they may be set."""
    gpu, names = opening.gpu, ("graphics_clock_mhz", "power_limit_w")
    if not guard.allowed:
        return [], [f"graphics clock and power limit stay as they are: {guard.why_forbidden}"]
    levers, refused = [], []
    for name in names:
        if why := guard.why_not(name):
            refused.append(f"{name} stays as it is: {why}")
            continue
        limit = gpu.info.power_limit
        clock = name == "graphics_clock_mhz"
        most = max(gpu.graphics_clocks_mhz(), default=0) if clock else limit.current_w or limit.maximum_w or 0.0
        least = 0.0 if clock else limit.minimum_w or 0.0
        wanted = [share * most for share in (_CLOCKS if clock else _LIMITS) if share * most >= least]
        values = dict.fromkeys(float(upper(nearest_supported(gpu, name, round(value))[0])) for value in wanted)
        if values:
            levers.append(Lever(name, tuple(Change(settings=((name, value),)) for value in values)))
    return levers, refused


def _uses_torch(side: Named) -> bool:
    """Whether its Python file names the package."""
    file = next((side.folder / word for word in side.words if word.endswith(".py")), None)
    return file is not None and is_there(file) and "torch" in read_text(file)


def _permanent(change: Change) -> str:
    """A line of code, of an environment file, of a unit."""
    parts = []
    if change.sms:
        parts.append(f"sm_count = [{change.sms}] under [parameters]; in a program a green context of {change.sms} SMs")
    for name, value in change.environment:
        parts.append(f"export {name}={value}; in a systemd unit: Environment={name}={value}")
    for name, setting in change.settings:
        option = "--clock" if name == "graphics_clock_mhz" else "--power-limit"
        parts.append(f"wattridge apply {option} {setting:g} --keep; as a unit: with --out FOLDER")
    return "; ".join(parts)


def _percent(change: float, half_width: float) -> str:
    if math.isnan(change):
        return "unknown"
    size = percent_words(abs(change)).removesuffix(" %")
    size = f"−{size}" if change < 0 and size != "0" else size
    return f"{size} %, interval unknown" if math.isnan(half_width) else f"{size} ± {percent_words(half_width)}"


def _mean(state: str, blocks: Sequence[Block], side: Side) -> Look:
    """The mean of a side's blocks."""
    known = [(block.time_s, block.energy_j) for block in blocks if block.side == side and block.energy_j > 0]
    times, energies = zip(*known, strict=True) if known else ((math.nan,), (math.nan,))
    return Look(state, fmean(times), fmean(energies))
