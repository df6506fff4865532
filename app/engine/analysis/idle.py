"""Idle power of a board and its cost: bare, with a CUDA context, with a model loaded, at each memory clock.

Most of a server's day is idle, and a context or a model keeps many boards at high clocks. Nothing is set unless memory
clocks are requested; these pass through the guard and are restored, and programs that were started end with the look.
The power at each condition is described, as text and as JSON, with its cost over a year and the settings that lower it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Final, TypedDict

import numpy as np

from ...base.errors import WattridgeError
from ...base.formatting import number
from ...base.processes import original_environment
from ...base.records import Count, Finite, Source
from ...sensors.channel import Reading
from ...sensors.gpu import Gpu, ListsProcesses, NotSupported, SensorError
from ..children.python import python_command, python_environment
from ..control.guard import DeviceGuard
from ..metering.characterisation.store import known_characterisation
from ..metering.confidence import Interval, half_width, not_negative
from ..metering.power_source import Energy, PowerSource, find_sensor
from ..metering.steady_window import power_in_cells
from ..results.description import Cell, Description, Listing
from ..results.settings import why_not_set
from ..workloads.subprocesses import Ended, run_process
from .tradeoff import HOURS_PER_YEAR, Load

NO_BOOST: Final = {"CUDA_DISABLE_PERF_BOOST": "1"}  # contexts of a process with it leave the clocks down
BARE, CONTEXT, CONTEXT_NO_BOOST, LOADED, LOADED_NO_BOOST, MEMORY = (
    *("bare", "context", "context_no_boost", "loaded", "loaded_no_boost"),
    "memory_clock",
)
WORDS: Final[Mapping[str, str]] = {
    BARE: "nothing of ours on it",
    CONTEXT: "a CUDA context",
    CONTEXT_NO_BOOST: "a CUDA context, CUDA_DISABLE_PERF_BOOST=1",
    LOADED: "the program, loaded",
    LOADED_NO_BOOST: "the program, loaded, CUDA_DISABLE_PERF_BOOST=1",
    MEMORY: "the memory clock locked",
}
_CHANNELS: Final = ("graphics_clock_mhz", "memory_clock_mhz", "temperature_c", "utilisation_percent")
_WORKS_FROM: Final = 2.0  # per cent: below, it idles
_DRIFTS_W, _DRIFTS = 0.5, 0.005  # W, and share of the power: a change above both over a look is said
_LOOK_S: Final = 0.1
LOADING_S: Final = 0.25  # between looks whether a program that loads still runs
_MOST_LINES: Final = 200  # characters of a program's last words

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Year:
    """What a power costs over the idle hours of a year on all boards; None if that is not known."""

    kwh: float | None = None
    money: float | None = None
    co2_kg: float | None = None


@dataclass(frozen=True, slots=True)
class IdleLook:
    """One look at an idle board. A figure that is not known is NaN; `why_not` says why a look was not made."""

    IN_JSON: ClassVar = ("words",)

    condition: str  # a key of WORDS
    power_w: float = math.nan
    interval_w: Interval | None = None  # 95 %
    graphics_clock_mhz: float = math.nan
    memory_clock_mhz: float = math.nan
    temperature_c: float = math.nan
    utilisation_percent: float = math.nan
    processes: int | None = None  # that held the board meanwhile, ours included; None: not known
    why_not: str = ""
    notes: tuple[str, ...] = ()
    asked_memory_mhz: float | None = None
    year: Year = Year()  # what its power costs

    @property
    def words(self) -> str:
        """The condition, with the memory clock that was asked for."""
        clock = "" if self.asked_memory_mhz is None else f" at {self.asked_memory_mhz:g} MHz"
        return WORDS[self.condition] + clock


@dataclass(frozen=True, slots=True)
class IdleProgram:
    """A program that loads a model and waits, and how long it takes until it idles."""

    words: Sequence[str]
    loads_s: float = 30.0
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class IdleStudy:
    """All looks at one board."""

    gpu: str
    source: str
    power_source: str
    looks: tuple[IdleLook, ...] = ()

    def power_w(self, condition: str) -> float:
        """Return the power of the first look at a condition.

        Parameters
        ----------
        condition : str
            A key of WORDS.

        Returns
        -------
        float
            Watts; NaN if there was no look at it, or its power is unknown.
        """
        return next((look.power_w for look in self.looks if look.condition == condition), math.nan)


def study_idle(
    gpu: Gpu,
    guard: DeviceGuard,
    *,
    seconds: float = 10.0,
    settle_s: float = 5.0,
    contexts: bool = True,
    program: IdleProgram | None = None,
    memory_clocks: bool = False,
    stop: threading.Event | None = None,
    progress: Progress = lambda words: None,
) -> IdleStudy:
    """Look at a board in every condition that it and these options allow.

    What was set is put back, and what was started ended, however this ends.

    Parameters
    ----------
    gpu : Gpu
        The board.
    guard : DeviceGuard
        Through which memory clocks are set and restored.
    seconds : float, optional
        Length of a look in seconds on the board's clock.
    settle_s : float, optional
        Seconds on the board's clock to wait before a look.
    contexts : bool, optional
        Whether to look with a CUDA context on the board, too.
    program : IdleProgram or None, optional
        A program to look at once it has loaded; None for no such look.
    memory_clocks : bool, optional
        Whether to look with each of the board's memory clocks locked, too.
    stop : threading.Event or None, optional
        Ends the study early when set; the looks made until then are kept.
    progress : callable, optional
        Called with the condition of each look in words, once it was made or could not be made.

    Returns
    -------
    IdleStudy
        The looks in their order; `why_not` gives the reason for one that could not be made.

    Raises
    ------
    WattridgeError
        If the board reports no power, as NotSupported, or is lost during a look, as GpuLost. An error at a locked
        memory clock ends the looks there and becomes a `why_not` instead.
    """
    stop = stop or threading.Event()
    looker = _Looker(gpu, seconds, settle_s, stop)
    looks: list[IdleLook] = []

    def add(look: IdleLook | None) -> None:
        if look is not None:
            looks.append(look)
            progress(look.words)

    add(looker.look(BARE))
    if contexts:
        held = IdleProgram(python_command(_holder()), loads_s=2.0)
        for condition, more in ((CONTEXT, {}), (CONTEXT_NO_BOOST, NO_BOOST)):
            add(_beside(looker, condition, held, python_environment({**_only(gpu), **more}), _no_context(gpu)))
    if program is not None:
        for condition, more in ((LOADED, {}), (LOADED_NO_BOOST, NO_BOOST)):
            add(_beside(looker, condition, program, {**original_environment(), **_only(gpu), **more}, _elsewhere(gpu)))
    if memory_clocks:
        for look in _at_memory_clocks(looker, guard):
            add(look)
    return IdleStudy(gpu.info.label, gpu.info.source, looker.words, tuple(looks))


# --- looking ----------------------------------------------------------------------------------------------------------


class _Looker:
    """Looks at one board for so long, once it has settled."""

    def __init__(self, gpu: Gpu, seconds: float, settle_s: float, stop: threading.Event) -> None:
        self.gpu, self.stop = gpu, stop
        self._seconds, self._settle_s = seconds, settle_s
        self._at = {channel.name: i for i, channel in enumerate(gpu.channels) if channel.available}
        self._buffered = True
        try:
            gpu.power_samples(gpu.clock.now_ns())
        except SensorError:
            self._buffered = False
        sensor = find_sensor(gpu, known_characterisation(gpu.info), buffered=self._buffered)
        if sensor is None:
            raise NotSupported("this board reports no power", gpu.info.label, "choose another board, or a power meter")
        self._sensor = sensor
        self.words = sensor.words

    def look(self, condition: str) -> IdleLook | None:
        """One look; None if it was stopped."""
        clock = self.gpu.clock
        if clock.wait(self._settle_s, self.stop):
            return None
        source, readings = PowerSource(self._sensor, kept_s=math.inf), list[Reading]()
        start_ns = clock.now_ns()
        end_ns = start_ns + round(self._seconds * 1e9)
        while clock.now_ns() < end_ns:
            if clock.wait(_LOOK_S if self._buffered else self._sensor.poll_s, self.stop):
                return None
            self._note(source, readings)
        clock.wait(2 * _LOOK_S)  # until the buffer shows the last of it
        self._note(source, [])
        energy = source.energy(start_ns, end_ns)
        change_w, interval_w = math.nan, energy.power_interval_w
        if interval_w is not None:
            change_w, half_w = _at_rest(energy, self._seconds)
            apart_w = math.hypot(half_w, (interval_w[1] - interval_w[0]) / 2)
            interval_w = not_negative((energy.mean_power_w - apart_w, energy.mean_power_w + apart_w))
        seen = {name: self._mean(readings, name) for name in _CHANNELS}
        processes = _processes(self.gpu)
        notes = [energy.unknown] if energy.unknown else []
        if abs(change_w) > max(_DRIFTS_W, _DRIFTS * energy.mean_power_w):
            how = "fell" if change_w < 0 else "rose"
            notes.append(f"it {how} by {abs(change_w):.1f} W meanwhile: look again once it rests (--settle)")
        if seen["utilisation_percent"] > _WORKS_FROM:
            notes.append(f"something worked on it: utilisation {seen['utilisation_percent']:.0f} %")
        if condition == BARE and processes:
            notes.append(f"not bare: {processes} process{'es' if processes > 1 else ''} held it")
        return IdleLook(
            condition,
            energy.mean_power_w,
            interval_w,
            graphics_clock_mhz=seen["graphics_clock_mhz"],
            memory_clock_mhz=seen["memory_clock_mhz"],
            temperature_c=seen["temperature_c"],
            utilisation_percent=seen["utilisation_percent"],
            processes=processes,
            notes=tuple(notes),
        )

    def _note(self, source: PowerSource, readings: list[Reading]) -> None:
        reading = self.gpu.read()
        readings.append(reading)
        if self._buffered:
            source.add_samples(self.gpu.power_samples(source.newest_ns))
        elif self._sensor.channel is not None:
            source.poll(reading.time_ns, reading.values[self._at[self._sensor.channel]])

    def _mean(self, readings: Sequence[Reading], name: str) -> float:
        if name not in self._at:
            return math.nan
        finite = [value for reading in readings if not math.isnan(value := reading.values[self._at[name]])]
        return fmean(finite) if finite else math.nan


def _at_rest(energy: Energy, seconds: float) -> tuple[float, float]:
    """By how many watts the power changed over a look, by a straight line, and what its mean may be off by (95 %).

    What was drawn is known far better; but what a condition draws changes from one look to the next, slowly, as
    the board cools. A look that sees it change does not know where it ends: there is as much to come at least.
    """
    power_w = power_in_cells(0.0, seconds, energy.times_s, energy.power_w)
    slope = float(np.polyfit(np.linspace(-0.5, 0.5, len(power_w)), power_w, 1)[0])
    return slope, math.hypot(half_width(power_w, 1.0), slope)


# --- conditions -------------------------------------------------------------------------------------------------------


def _beside(
    looker: _Looker, condition: str, program: IdleProgram, environment: Mapping[str, str], why_not: str
) -> IdleLook | None:
    """A look while a program runs that does nothing; None if it was stopped."""
    if why_not:
        return IdleLook(condition, why_not=why_not)
    with _running(program, environment) as ended:
        clock = looker.gpu.clock
        until_ns = clock.now_ns() + round(program.loads_s * 1e9)
        while not ended and clock.now_ns() < until_ns:
            if clock.wait(LOADING_S, looker.stop):
                return None
        look = looker.look(condition) if not ended else None
        if ended:
            last = ended[0]
            message = (last.errors.strip() or last.output.strip() or last.how).splitlines()[-1][:_MOST_LINES]
            return IdleLook(condition, why_not=f"the program ended before it was looked at: {message}")
    return look


@contextmanager
def _running(program: IdleProgram, environment: Mapping[str, str]) -> Iterator[list[Ended]]:
    """While inside, the program runs; how it ended stands in the list once it has."""
    stop, ended = threading.Event(), list[Ended]()

    def run() -> None:
        try:
            ended.append(run_process(program.words, folder=program.folder, stop=stop, environment=environment))
        except (OSError, ValueError) as error:
            message = getattr(error, "strerror", None) or str(error)
            ended.append(Ended(1, 0, 0, 0.0, "", f"{program.words[0]}: {message}", timed_out=False, stopped=False))

    thread = threading.Thread(target=run, name="idle program", daemon=True)
    thread.start()
    try:
        yield ended
    finally:
        stop.set()
        thread.join()


def _at_memory_clocks(looker: _Looker, guard: DeviceGuard) -> Iterator[IdleLook | None]:
    gpu = looker.gpu
    why = why_not_set(gpu, "memory_clock_mhz") or guard.why_forbidden
    if why:
        yield IdleLook(MEMORY, why_not=why)
        return
    try:
        guard.require_unlocked(("memory_clock_mhz",))
        for clock in gpu.memory_clocks_mhz():
            guard.apply(memory_clock_mhz=clock)
            look = looker.look(MEMORY)
            yield None if look is None else replace(look, asked_memory_mhz=clock)
            if look is None:
                return
    except WattridgeError as error:
        yield IdleLook(MEMORY, why_not=f"{error.what} ({error.remedy})" if error.remedy else error.what)
    finally:
        guard.restore()


def _processes(gpu: Gpu) -> int | None:
    """How many hold the board; None if it does not report that."""
    try:
        return len(gpu.processes()) if isinstance(gpu, ListsProcesses) else None
    except SensorError:
        return None


def _holder() -> str:
    from ..runner.cuda import hold_context

    return hold_context.__name__


def _only(gpu: Gpu) -> dict[str, str]:
    """The environment in which a program of CUDA's sees that board alone."""
    return {"CUDA_VISIBLE_DEVICES": gpu.info.uuid} if gpu.info.source == "nvml" else {}


def _elsewhere(gpu: Gpu) -> str:
    if not gpu.info.live:
        return f"a program has no part in what a {gpu.info.source} board draws"
    return "" if gpu.info.here else "the board is in another machine: run this there"


def _no_context(gpu: Gpu) -> str:
    if gpu.info.source != "nvml":
        return f"a {gpu.info.source} board has no CUDA contexts"
    return _elsewhere(gpu)


_WORTH_W: Final = 1.0  # differences below are not called a saving


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A setting that may lower what idling costs. It is never made here."""

    name: str
    how: str  # the command or line that makes it
    saves_w: float  # as measured here; NaN if it was not
    note: str


def year_of(power_w: float, load: Load) -> Year:
    """Compute what a power costs over the idle hours of a year on all boards.

    Parameters
    ----------
    power_w : float
        Power of one board in W; NaN if unknown.
    load : Load
        Idle hours of the year, boards, price and carbon intensity.

    Returns
    -------
    Year
        kWh, money and kg of CO2; None where the power, the price or the carbon intensity is not known.
    """
    if not math.isfinite(power_w):
        return Year()
    kwh = power_w * load.hours_per_year * load.boards / 1000
    return Year(
        kwh,
        None if load.price_per_kwh is None else kwh * load.price_per_kwh,
        None if load.carbon_g_per_kwh is None else kwh * load.carbon_g_per_kwh / 1000,
    )


def suggestions(study: IdleStudy) -> tuple[Suggestion, ...]:
    """List the documented settings, each with what it saved here where that was measured.

    Parameters
    ----------
    study : IdleStudy
        All looks at the board.

    Returns
    -------
    tuple of Suggestion
        The same settings for every board; NaN W saved where that was not measured.
    """
    locked = [look for look in study.looks if look.condition == MEMORY and math.isfinite(look.power_w)]
    least = min(locked, key=lambda look: look.power_w, default=None)
    return (
        Suggestion(
            "persistence mode",
            "nvidia-smi -pm 1",
            math.nan,
            "keeps the driver loaded between programs; look with it and without",
        ),
        Suggestion(
            "CUDA_DISABLE_PERF_BOOST=1",
            "set it in the environment of the service",
            _difference(study, (LOADED, LOADED_NO_BOOST), (CONTEXT, CONTEXT_NO_BOOST)),
            "contexts then leave the clocks down; work after a pause waits for them",
        ),
        Suggestion(
            "memory clock",
            f"nvidia-smi -lmc {'MHZ' if least is None else f'{least.asked_memory_mhz:g}'}; nvidia-smi -rmc before work",
            math.nan if least is None else study.power_w(BARE) - least.power_w,
            "slows all that moves data: for hours without work",
        ),
    )


def describe_idle(study: IdleStudy, load: Load) -> Description:
    """Describe a study: the table of looks, the suggestions, and what a year costs.

    Parameters
    ----------
    study : IdleStudy
        All looks at the board.
    load : Load
        Idle hours of the year, boards, price and carbon intensity.

    Returns
    -------
    Description
        Powers in W, clocks in MHz, energies in kWh a year.
    """
    rows: list[list[Cell]] = []
    for look in study.looks:
        if look.why_not:
            rows.append([look.words, None, "", None, None, None, look.why_not])
            continue
        interval = "" if look.interval_w is None else "–".join(number(end) for end in look.interval_w)
        clocks = (look.graphics_clock_mhz, look.memory_clock_mhz)
        year = year_of(look.power_w, load).kwh
        cells: list[Cell] = [None if math.isnan(clock) else clock for clock in (*clocks, year or math.nan)]
        rows.append([look.words, look.power_w, interval, *cells, "; ".join(look.notes)])
    header = ("condition", "W", "95 %", "graphics MHz", "memory MHz", "kWh a year", "")
    listings = [Listing("", header, rows)]
    suggested = [
        [suggestion.name, suggestion.how, _saved(suggestion), suggestion.note] for suggestion in suggestions(study)
    ]
    listings.append(Listing("What may lower it; nothing was set", ("setting", "how", "saved here (W)", ""), suggested))
    return Description(f"{study.gpu}, idle", study.power_source, remarks=_remarks(study, load), listings=listings)


class IdleDocument(TypedDict):
    """The idle power of a board, as `idle --json` prints it."""

    gpu: str
    source: Source
    power_source: str
    hours_per_year: Finite
    boards: Count
    looks: list[IdleLook]
    suggestions: Sequence[Suggestion]


def idle_document(study: IdleStudy, load: Load) -> IdleDocument:
    """Return every look with its year, and the suggestions, to be printed as JSON.

    Parameters
    ----------
    study : IdleStudy
        All looks at the board.
    load : Load
        Idle hours of the year, boards, price and carbon intensity.

    Returns
    -------
    IdleDocument
        Powers in W, clocks in MHz; NaN if unknown.
    """
    return {
        "gpu": study.gpu,
        "source": study.source,
        "power_source": study.power_source,
        "hours_per_year": load.hours_per_year,
        "boards": load.boards,
        "looks": [replace(look, year=year_of(look.power_w, load)) for look in study.looks],
        "suggestions": suggestions(study),
    }


def _remarks(study: IdleStudy, load: Load) -> list[str]:
    bare = study.power_w(BARE)
    lines = []
    for condition in (CONTEXT, LOADED):
        more = study.power_w(condition) - bare
        if more > _WORTH_W:
            look = next(item for item in study.looks if item.condition == condition)
            year = year_of(more, load)
            money = "" if year.money is None else f", {number(year.money, 3)} {load.currency}"
            lines.append(
                f"{look.words}: {number(more, 3)} W more than bare, {number(year.kwh, 3)} kWh{money} in "
                f"{load.hours_per_year:.0f} idle hours a year"
            )
    if load.hours_per_year >= HOURS_PER_YEAR:
        lines.append("kWh of a year of nothing but idling; with fewer idle hours they are fewer in proportion")
    return lines


def _difference(study: IdleStudy, *pairs: tuple[str, str]) -> float:
    """W that the second of a pair draws less than the first, of the first pair that was measured."""
    differences = (study.power_w(before) - study.power_w(after) for before, after in pairs)
    return next((match for match in differences if not math.isnan(match)), math.nan)


def _saved(suggestion: Suggestion) -> str:
    if math.isnan(suggestion.saves_w):
        return "not measured"
    return number(suggestion.saves_w, 3) if suggestion.saves_w > _WORTH_W else "nothing"
