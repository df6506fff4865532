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
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from ...base.errors import WattridgeError
from ...base.formatting import duration, number
from ...base.records import Amount, Finite, Source, figure
from ...sensors.gpu import LIVE
from ..analysis.in_turns import ERROR, FEWEST, SIDES, InTurns, Side, TurnsDifference, Verdict
from ..analysis.tradeoff import percent_words
from ..control.guard import DeviceGuard
from ..results.chart import Chart, Series
from ..results.description import Cell, Description, Figure, Listing
from ..results.settings import nearest_supported, upper
from .check import Terms, in_turns
from .contenders import Contender
from .sides import Change, Held, Named, Opening, Workload, opened

TURN_S: Final = 45.0  # for a lever, at most, unless the user says how long all may take
MATTERS: Final = 0.005  # of the joules
SLOWER: Final = 0.05  # of the time
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
class SavingsPlan:
    """What is tried, what not and why, and for how long."""

    levers: tuple[Lever, ...]
    refused: tuple[str, ...]
    seconds: Finite  # about, in all
    each_s: Finite  # for a lever, at most
    slower: Finite  # that what a first look chooses may be, relative, where there is such
    fewest: int  # blocks for a lever, whatever time they take; 0 where the user says how long all may take

    @property
    def words(self) -> str:
        """What is said before it begins."""
        names = ", ".join(lever.name for lever in self.levers) or "nothing"
        return f"about {duration(self.seconds)} at most: {names}; each in turns with the untouched state"


@dataclass(frozen=True, slots=True)
class Look:
    """A value in the first look: one block."""

    change: str
    time_s: float
    energy_j: float

    @property
    def cells(self) -> list[Cell]:
        """A row of a table."""
        return [self.change, self.energy_j, self.time_s]


@dataclass(frozen=True, slots=True)
class Tried:
    """One lever, or several together, against the untouched state."""

    lever: str
    change: str
    permanent: str  # how it is made permanent
    energy: TurnsDifference
    time: TurnsDifference
    energy_j: float  # of one unit of work
    time_s: float
    blocks: int
    helps: bool  # it needs fewer joules, by an interval that leaves out zero
    remark: str = ""
    looks: tuple[Look, ...] = ()

    @property
    def excluded(self) -> float:
        """The smallest saving that would have been seen: a larger one lies outside the interval; NaN without one."""
        return math.nan if self.energy.interval is None else max(0.0, -self.energy.interval[0])


@dataclass(frozen=True, slots=True)
class Savings:
    """The answer of `wattridge savings`."""

    target: str
    gpu: str
    source: Source
    unit: str  # of the work: 'run', 'call' or 'launch'
    data: str  # that it holds for; empty where it is the program's own
    tried: tuple[Tried, ...]
    refused: tuple[str, ...]  # levers that were not tried, and why
    energy_j: float  # untouched, of one unit of work
    time_s: float
    seconds_said: Finite
    seconds: Finite  # that it took
    remarks: tuple[str, ...] = ()
    when_s: Amount = field(default=0.0, metadata=figure(key="time"))  # since the epoch
    IN_JSON: ClassVar = ("words",)

    @property
    def best(self) -> Tried | None:
        """What helps most; None if nothing does."""
        return min((one for one in self.tried if one.helps), key=lambda one: one.energy.change, default=None)

    @property
    def words(self) -> str:
        """The answer in a line."""
        if (best := self.best) is not None:
            return f"{best.change}: {best.energy.words('energy')}, {best.time.words('time')}"
        seen = [one.excluded for one in self.tried if not math.isnan(one.excluded)]
        if not self.tried or len(seen) < len(self.tried):
            return "nothing was tried" if not self.tried else "undecided: it needs more time"
        return f"nothing found: a saving of more than {number(100 * max(seen), 2)} % would have been seen"

    @property
    def board(self) -> str:
        """The board's name, with its source where that is no board."""
        return self.gpu if self.source in LIVE else f"{self.gpu} ({self.source})"

    def describe(self) -> Description:
        """For terminal, report and window."""
        header = ["lever", "joules saved", "time lost", f"J per {self.unit}", f"s per {self.unit}"]
        rows: list[list[Cell]] = [["untouched", None, None, self.energy_j, self.time_s]]
        for one in self.tried:
            energy, time_s = one.energy, one.time
            against = [_interval(-energy.change, energy.half_width), _interval(time_s.change, time_s.half_width)]
            rows.append([one.change, *against, one.energy_j, one.time_s])
        looks = [
            Listing(f"A first look: {one.lever}, a block each", ["", "J", "s"], [look.cells for look in one.looks])
            for one in self.tried
            if one.looks
        ]
        figures = [
            Figure("Answer", self.words, important=True),
            Figure("Data", self.data or "the target's own"),
            Figure("Took", f"{duration(self.seconds)}, of about {duration(self.seconds_said)} at most"),
        ]
        sure = f"intervals hold with {number(100 * (1 - ERROR))} %, whenever one stops"
        remarks = [sure, *self.refused, *(f"{one.change}: {one.remark}" for one in self.tried if one.remark)]
        lasting: list[list[Cell]] = [[one.change, one.permanent] for one in self.tried if one.helps]
        made = [Listing("How to make it permanent", ["lever", "how"], lasting)] if lasting else []
        listings = [Listing("Against the untouched state", header, rows), *made, *looks]
        return Description(f"What {self.target} can save", self.board, figures, listings, [*remarks, *self.remarks])

    def chart(self) -> Chart:
        """Time and energy of a unit of work: untouched, each lever, and what the first looks showed."""
        looks = [look for one in self.tried for look in one.looks]
        shown = (
            ("first look", "grey", "o", looks),
            ("untouched", "blue", "s", [self]),
            ("lever", "vermillion", "t", [one for one in self.tried if not one.helps]),
            ("lever that helps", "green", "t", [one for one in self.tried if one.helps]),
        )
        series = (
            Series(
                label,
                colour,
                np.array([each.energy_j for each in of]),
                np.array([each.time_s for each in of]) * 1e3,
                line=False,
                points=True,
                symbol=symbol,
            )
            for label, colour, symbol, of in shown
            if of
        )
        caption = f"Time and joules of a {self.unit} of {self.target} on {self.board}, with each lever and without."
        return Chart("time (ms)", "energy (J)", tuple(series), caption)


def plan_savings(
    side: Named,
    opening: Opening,
    guard: DeviceGuard,
    seconds: float | None = None,
    *,
    slower: float = SLOWER,
    rounding: bool = False,
) -> SavingsPlan:
    """The levers that this user may use here.

    Parameters
    ----------
    side
        What is to save.
    opening
        The board.
    guard
        What may be set; nothing is asked of the user here.
    seconds
        For all of it, about; None: as long as it takes with `TURN_S` for each lever.
    slower
        By how much what is chosen may be slower, relative.
    rounding
        Whether levers count that round results otherwise.

    Returns
    -------
    SavingsPlan
        With the reasons for what is left out.
    """
    levers: list[Lever] = []
    refused: list[str] = []
    for make in (_sms, _environment, _settings):
        made, why = make(side, opening, guard, rounding)
        levers += made
        refused += why
    looks = sum(len(lever.changes) + 1 for lever in levers if len(lever.changes) > 1)
    turns = len(levers) + (len(levers) > 1)
    each_s = TURN_S if seconds is None else max(LEAST_S, (seconds - START_S - LOOK_S * looks) / max(1, turns))
    said_s = START_S + LOOK_S * looks + turns * each_s
    return SavingsPlan(tuple(levers), tuple(refused), said_s, each_s, slower, FEWEST if seconds is None else 0)


def try_levers(
    side: Named,
    opening: Opening,
    guard: DeviceGuard,
    plan: SavingsPlan,
    on_step: Callable[[str, InTurns | None], None] = lambda words, now: None,
    *,
    data: str = "",
    seed: int | None = None,
) -> Savings:
    """Try what is planned. What was set is put back.

    Parameters
    ----------
    side, opening, guard, plan
        As of `plan_savings`.
    on_step
        Called with what is measured, and the comparison so far.
    data
        That it holds for, in words.
    seed
        Of the coins of the turns.

    Returns
    -------
    Savings
        Of what was tried until `opening.stop` was set. Raises WattridgeError where the target itself fails.
    """
    began = time.monotonic()
    workload = opened(side, opening, [change for lever in plan.levers for change in lever.changes])
    turns = _Turns(workload, opening, guard, plan, Terms(plan.each_s, -MATTERS, ERROR, seed, plan.fewest), on_step)
    said_s = max(plan.seconds, turns.longest_s() if plan.levers else 0.0)
    if said_s > plan.seconds:
        opening.remark(f"{side.name}: a block of it is long, so that it takes about {duration(said_s)} at most")
    tried: list[Tried] = []
    for lever in plan.levers:
        if opening.stop.is_set():
            break
        try:
            tried.append(turns.best_of(lever))
        except WattridgeError as error:  # this lever cannot be used here
            turns.remarks.append(f"{lever.name} could not be tried: {error}")
    helping = [turns.chosen[one.lever] for one in tried if one.helps]
    if len(helping) > 1 and not opening.stop.is_set():
        together = helping[0]
        for change in helping[1:]:
            together |= change
        tried.append(turns.against("together", together, "each of them"))
    energy_j, time_s = turns.untouched
    info, took_s = opening.gpu.info, time.monotonic() - began
    if opening.stop.is_set():
        turns.remarks.append("it was stopped before everything was tried")
    return Savings(
        target=side.name,
        gpu=info.name,
        source=info.source,
        unit=turns.unit,
        data=data,
        tried=tuple(tried),
        refused=plan.refused,
        energy_j=energy_j,
        time_s=time_s,
        seconds_said=said_s,
        seconds=took_s,
        remarks=tuple(dict.fromkeys(turns.remarks)),
        when_s=time.time(),
    )


# --- inside -----------------------------------------------------------------------------------------------------------


class _Turns:
    """Levers against the untouched state, which is opened once."""

    def __init__(
        self,
        workload: Workload,
        opening: Opening,
        guard: DeviceGuard,
        plan: SavingsPlan,
        terms: Terms,
        on_step: Callable[[str, InTurns | None], None],
    ) -> None:
        self._workload, self._opening, self._guard = workload, opening, guard
        self._plan, self._terms, self._on_step = plan, terms, on_step
        self._free = self._held(Change())
        self.unit = self._free.unit
        self.chosen: dict[str, Change] = {}
        self.remarks: list[str] = []
        self.untouched = math.nan, math.nan

    def longest_s(self) -> float:
        """How long all takes at most, by the first block of the untouched state. Raises WattridgeError."""
        plan, began = self._plan, time.monotonic()
        look = self._free.block(self._opening.stop)
        if look is None:
            return 0.0
        self.untouched = math.nan, look.time_s
        block_s = (look.end_ns - look.start_ns) / 1e9 if self._opening.gpu.info.live else time.monotonic() - began
        looks = sum(len(lever.changes) for lever in plan.levers if len(lever.changes) > 1)
        turns = len(plan.levers) + (len(plan.levers) > 1)
        return START_S + looks * block_s + turns * max(plan.each_s, (plan.fewest + 2) * block_s)

    def best_of(self, lever: Lever) -> Tried:
        looks = [] if len(lever.changes) == 1 else self._first_look(lever)
        most_s = (1 + self._plan.slower) * self.untouched[1]
        known = [at for at, look in enumerate(looks) if math.isfinite(look.energy_j)]
        quick = [at for at in known if looks[at].time_s <= most_s]
        least = min(quick, key=lambda at: looks[at].energy_j) if quick else None
        if least is None:  # nothing is quick enough: the quickest
            least = min(known, key=lambda at: looks[at].time_s, default=0)
        chosen = lever.changes[least]
        self.chosen[lever.name] = chosen
        return self.against(lever.name, chosen, lever.remark, tuple(looks))

    def against(self, name: str, change: Change, remark: str, looks: tuple[Look, ...] = ()) -> Tried:
        sides: dict[Side, Contender] = {"A": self._free, "B": self._held(change)}
        words = change.words

        def on_pair(now: InTurns) -> None:
            self._on_step(words, now)

        self._on_step(words, None)
        found, blocks, remarks = in_turns(sides, self._opening.gpu, self._terms, self._opening.stop, on_pair)
        self.remarks += remarks
        means = {side: [block for block in blocks if block.side == side] for side in SIDES}
        energies, times = (
            {side: _mean([getattr(block, key) for block in of]) for side, of in means.items()}
            for key in ("energy_j", "time_s")
        )
        self.untouched = energies["A"], times["A"]
        helps = bool(found.energy.distinguishable) and found.energy.change < 0
        saves = found.verdict is Verdict.NO_WORSE or helps
        if dict(change.environment).get(BOOST) and not saves:
            remark = f"no difference was seen; {IGNORED}"
        return Tried(
            name, words, _permanent(change), found.energy, found.time, energies["B"], times["B"], len(blocks), helps,
            remark if name != "together" else "", looks,
        )  # fmt: skip

    def _first_look(self, lever: Lever) -> list[Look]:
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
        contender = self._workload.contender(change)
        return Held(contender, self._guard, dict(change.settings)) if self._guard.allowed else contender


_Made = tuple[list[Lever], list[str]]


def _sms(side: Named, opening: Opening, guard: DeviceGuard, rounding: bool) -> _Made:
    """Parts of the SMs, as far as it is known before anything runs."""
    spec, info, name = side.specification, opening.gpu.info, "a part of the SMs"
    limits = getattr(opening.gpu, "limits", None)
    every = info.multiprocessors or getattr(limits, "multiprocessors", 0)
    if side.kind == "command":
        return [], [f"{name}: a program launches its kernels itself; name a kernel or FILE.py:FUNCTION"]
    if spec is not None and spec.kernel is None:
        return [], []
    if spec is not None and spec.kernel is not None and spec.kernel.language != "CUDA":
        return [], [f"{name}: only CUDA has it"]
    if not every or (side.kind == "function" and (not info.real or not _uses_torch(side))):
        return [], [f"{name}: {'a function has it by PyTorch on a real GPU' if every else 'their number is unknown'}"]
    step = 8 if info.source == "nvml" else 1  # of boards since Hopper; others round up to fewer
    counts = sorted({max(step, round(every * share / step) * step) for share in _SHARES})
    counts = counts[2::3] if side.kind == "function" else counts  # a process for each
    return [Lever(name, tuple(Change(sms=count) for count in counts if count < every))], []


def _environment(side: Named, opening: Opening, guard: DeviceGuard, rounding: bool) -> _Made:
    """Variables of a process that is started for it."""
    spec = side.specification
    if spec is not None and (spec.kernel is not None or not opening.gpu.info.real):
        return [], []
    if side.kind == "function":
        return [], [f"{', '.join(_VARIABLES)}: two processes with contexts share the board here; name the program"]
    if not opening.gpu.info.real:
        return [], ["variables of the environment: a program draws nothing on a board that is not there"]
    torch = _uses_torch(side)
    variables = _VARIABLES | (_OF_TORCH if torch else {}) | (_MATH if torch and rounding else {})
    remarks = {BOOST: IGNORED, **dict.fromkeys(_MATH, ROUNDED)}
    kept = {name: value for name, value in variables.items() if name not in os.environ}
    why = [f"{name}: it is set already" for name in variables if name not in kept]
    if torch and not rounding:
        why.append(f"{', '.join(_MATH)}: {ROUNDED}; --rounding tries it")
    changes = {name: (Change(environment=((name, value),)),) for name, value in kept.items()}
    return [Lever(name, change, remarks.get(name, "")) for name, change in changes.items()], why


def _settings(side: Named, opening: Opening, guard: DeviceGuard, rounding: bool) -> _Made:
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
    for word in side.words:
        if word.endswith(".py"):
            try:
                with open(side.folder / word, encoding="utf-8", errors="replace") as file:
                    return "torch" in file.read(1 << 20)
            except OSError:
                return False
    return False


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


def _interval(change: float, half_width: float) -> str:
    if math.isnan(change):
        return "unknown"
    size = percent_words(abs(change)).removesuffix(" %")
    size = f"−{size}" if change < 0 and size != "0" else size
    return f"{size} %, interval unknown" if math.isnan(half_width) else f"{size} ± {percent_words(half_width)}"


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return sum(known) / len(known) if known else math.nan
