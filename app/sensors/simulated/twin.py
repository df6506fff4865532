"""A simulated board's figures, and the TOML file that holds them; `resources/twins/README.md` describes it.

`a100#2` names one board among several of a model. Such a board differs from the figures of its model in three ways,
each by a normal deviate that follows from its number alone: what its power sensor reports (NVML's gain error, up to 5 %
board by board [Yang2024]), what its work draws (silicon), and what it draws besides (leakage). The last two are
assumptions of a usual size. Clocks and rates are the model's: boards of one model take the same time at the same clock,
until a limit acts.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import random
import re
import tomllib
import types
import typing
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ...base.errors import InputError, PermissionRefused
from ...base.files import check_toml_keys, open_input
from ...base.paths import resources
from ..gpu import PRECISIONS, Precision
from ..limits import DeviceLimits, limits_of


def figure(low: float, high: float, default: Any = dataclasses.MISSING) -> Any:
    """A field that the loader checks against a range."""
    return dataclasses.field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """What the board is."""

    compute_capability: tuple[int, int]
    target: str = ""  # of a board that is not NVIDIA's, as its compiler calls it: "gfx90a"
    multiprocessors: int = figure(1, 1024)
    memory_mib: float = figure(1, 1e7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Supported clocks in MHz, ascending, and how they move."""

    graphics_mhz: tuple[int, ...]
    memory_mhz: tuple[int, ...]
    idle_mhz: int = figure(1, 1e4)
    idle_memory_mhz: int = figure(1, 1e5)
    idle_after_s: float = figure(0, 60)  # the clock stays up that long after the last launch
    rise_mhz_per_s: float = figure(100, 1e7)  # how fast the clock climbs when work arrives
    lockable: bool = True
    memory_lockable: bool = False
    memory_lock_speed: float = figure(0.1, 1, 1.0)  # of kernels while the memory clock is locked, whatever the clock
    application_clocks: bool = False  # of boards that cannot lock: a graphics clock for work, not for idling
    lowest_memory_up_to_mhz: float = figure(0, 1e4, 0.0)  # graphics clock above which the next one is in force; 0: any

    @property
    def settable(self) -> bool:
        """Whether the graphics clock of work can be set at all."""
        return self.lockable or self.application_clocks


@dataclass(frozen=True, slots=True, kw_only=True)
class Voltage:
    """Relative voltage: 1 up to the ridge f_r, then 1 + slope (f - f_r) + curve (f - f_r)^2."""

    ridge_mhz: float = figure(1, 1e4)
    slope_per_mhz: float = figure(0, 0.1)
    curve_per_mhz2: float = figure(0, 1e-3, 0.0)
    floor_mv: float = figure(0, 2000, 0.0)  # volts below the ridge where the board reports them, else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """What the board draws besides its work, in W, and its limit."""

    static_w: float = figure(0, 2000)  # at relative voltage 1 and the reference temperature, leakage included
    leakage_share: float = figure(0, 1)  # of static_w
    leakage_reference_c: float = figure(-50, 150)
    leakage_doubling_c: float = figure(1, 1000)  # leakage doubles with that rise
    clock_tree_w_per_mhz: float = figure(0, 10)  # times f v^2, all threads resident
    gated_share: float = figure(0, 1, 0.0)  # of it that rests where no thread is resident
    idle_w: float = figure(0, 1000)  # clocks down, at the temperature that goes with it
    memory_idle_w: float = figure(0, 1000, 0.0)  # the memory's part of the static power
    memory_clock_w_per_mhz: float = figure(0, 1, 0.0)  # beside the static power, times the memory clock in force
    limit_minimum_w: float = figure(1, 5000)
    limit_maximum_w: float = figure(1, 5000)
    limit_default_w: float = figure(1, 5000)
    limit_share: float = figure(0.5, 1.0, 1.0)  # the controller settles at this share of the limit
    limited_saving: float = figure(0, 0.2, 0.0)  # of the cores' power, where a limit holds the clock well down


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy of work and traffic. Flops and on-chip bytes at the voltage of the reference clock, scaling with V^2."""

    reference_clock_mhz: float = figure(1, 1e4)
    eps_flop_pj: Mapping[Precision, float] = figure(0.001, 1e5)
    eps_mem_pj_per_b: float = figure(0, 1e5)
    eps_onchip_pj_per_b: float = figure(0, 1e5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How fast the board works."""

    flop_per_clock: Mapping[Precision, float] = figure(1, 1e8)  # whole board, per graphics clock
    bandwidth_gb_s: float = figure(1, 1e6)  # at the highest memory clock
    bandwidth_share: float = figure(0.01, 1)  # of it that a streaming kernel reaches
    full_bandwidth_clock_mhz: float = figure(1, 1e4)  # below this graphics clock the bandwidth falls with it
    onchip_byte_per_clock: float = figure(1, 1e8)  # whole board, shared memory
    launch_overhead_us: float = figure(0, 1e4)  # between two launches of a full queue
    compute_occupancy: float = figure(0.001, 1)  # resident share of threads from which the peak is reached
    memory_occupancy: float = figure(0.001, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """A service that answers with tokens: so many sequences at once. `serving.py` has the equations.

    Times and energies are those of one token of each of `reference_sequences` sequences at the reference clock and the
    highest memory clock, where the relative voltage is 1.
    """

    name: str  # of the service that was measured
    assumed: str  # what of this model was not measured, in words
    reference_sequences: float = figure(1, 1e4)
    reference_clock_mhz: float = figure(1, 1e4)
    core_s: float = figure(1e-6, 100)  # of a step, by the cores
    core_exponent: float = figure(0.1, 2)  # of the graphics clock
    core_fixed_share: float = figure(0, 1)  # of the cores' part, whatever the number of sequences
    memory_s: float = figure(0, 100)  # of a step, by the memory: the weights, whatever the number of sequences
    memory_exponent: float = figure(0.1, 2)  # of the memory clock
    blend: float = figure(1, 20)  # order of the norm of the two
    core_j: float = figure(0, 1e4)  # of a step, times the relative voltage squared
    memory_j: float = figure(0, 1e4)  # of a step
    prefill_tokens_per_s: float = figure(1, 1e7)  # at the reference clock, proportional to the graphics clock
    prefill_j: float = figure(0, 100)  # of a token of a prompt, times the relative voltage squared
    sequences_maximum: int = figure(1, 10_000)  # at once; more wait
    output_scatter: float = figure(0, 2, 0.0)  # standard deviation of the length of an answer, of its mean
    start_s: float = figure(0, 3600, 0.0)  # from its start until it answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Thermal:
    """One thermal mass: T = ambient + resistance x P, reached with a time constant."""

    ambient_c: float = figure(-50, 100)
    resistance_c_per_w: float = figure(0, 10)
    time_constant_s: float = figure(0.01, 1e4)
    slowdown_c: float = figure(0, 200)  # the clock is lowered to stay below


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerSensor:
    """A source of power: a new value every `refresh_ms`, the mean of the `window_ms` before (and `lag_ms` earlier)."""

    refresh_ms: float = figure(1, 10_000)
    window_ms: float = figure(0.1, 10_000)
    lag_ms: float = figure(0, 1000, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerBuffer:
    """The driver's buffer of power samples."""

    sample_ms: float = figure(1, 1000)
    window_ms: float = figure(0, 1000, 0.0)  # which a sample is the mean of; 0: its period
    published_ms: float = figure(1, 10_000)
    kept: int = figure(1, 10_000)
    launch_swing: float = figure(0, 0.5, 0.0)  # amplitude by which a sample follows the phase of the launch at its end

    @property
    def averages_ms(self) -> float:
        """What a sample is the mean of."""
        return self.window_ms or self.sample_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensors:
    """What stands between the physics and the user. A source that the board lacks is left out."""

    instant: PowerSensor | None = None
    average: PowerSensor | None = None
    memory: PowerSensor | None = None
    buffer: PowerBuffer | None = None
    counter_refresh_ms: float = figure(0, 10_000, 0.0)  # energy counter; 0: the board has none
    counter_gain: float = figure(0.5, 1.5, 1.0)  # of the counter over the other sources
    gain: float = figure(0.5, 1.5, 1.0)  # proportional error of this board's power
    noise_share: float = figure(0, 0.5, 0.0)  # standard deviation of one value, of its power
    noise_w: float = figure(0, 100, 0.0)  # and a floor to it
    quantum_w: float = figure(0, 100, 0.001)


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """Every figure of a simulated board."""

    key: str  # file name without its ending: "a100"
    name: str
    board: Board
    clocks: Clocks
    voltage: Voltage
    power: Power
    energy: Energy
    rate: Rate
    thermal: Thermal
    sensors: Sensors
    service: Service | None = None
    not_shown: tuple[str, ...] = ()  # of the measurements that it follows, in words

    def require_limit(self, limit_w: float) -> None:
        """Raise PermissionRefused for a power limit out of range."""
        low, high = self.power.limit_minimum_w, self.power.limit_maximum_w
        if not low <= limit_w <= high:
            what = f"a power limit of {limit_w:g} W is out of range"
            raise PermissionRefused(what, f"{self.name} (simulated)", f"choose {low:g} to {high:g} W")

    @property
    def limits(self) -> DeviceLimits:
        """The board's limits by its compute capability, or by its target."""
        board = self.board
        return limits_of(board.compute_capability, board.multiprocessors, target=board.target)


MOST: Final = 9999  # boards of a model
GAIN: Final = 0.02  # standard deviation of what the sensor reports, relative
_MOST_GAIN: Final = 0.05
_WORK: Final = 0.01  # of the energy of work and traffic
_STATIC: Final = 0.03  # of what is drawn besides
_NUMBERED: Final = re.compile(r"(.*\S)\s*#\s*([1-9][0-9]{0,3})")


def split_number(name: str) -> tuple[str, int]:
    """'a100#2' as ('a100', 2); the number is 0 if the name has none, and means the model's own figures."""
    match = _NUMBERED.fullmatch(name.strip())
    return (match[1], int(match[2])) if match else (name.strip(), 0)


def individual(twin: Twin, number: int) -> Twin:
    """Board `number` of that model, from 1; with 0 the model itself."""
    if number == 0:
        return twin
    key = f"{twin.key}#{number}"
    drawn = random.Random(f"{number} of a model")  # of text: the same on every machine
    gain, work, static = (drawn.gauss(0.0, deviation) for deviation in (GAIN, _WORK, _STATIC))
    gain = max(-_MOST_GAIN, min(_MOST_GAIN, gain))
    energy, power = twin.energy, twin.power
    board = replace(
        twin,
        key=key,
        energy=replace(
            energy,
            eps_flop_pj=MappingProxyType({each: pj * (1 + work) for each, pj in energy.eps_flop_pj.items()}),
            eps_mem_pj_per_b=energy.eps_mem_pj_per_b * (1 + work),
            eps_onchip_pj_per_b=energy.eps_onchip_pj_per_b * (1 + work),
        ),
        power=replace(power, static_w=power.static_w * (1 + static), idle_w=power.idle_w * (1 + static)),
    )
    return with_gain(board, twin.sensors.gain * (1 + gain))


def with_gain(twin: Twin, gain: float) -> Twin:
    """The board with a power sensor that reports so many times what it draws.

    Its controller goes by the sensor, so a limit holds what is reported: where that is too much, the board slows early.
    """
    power, sensors = twin.power, twin.sensors
    share = power.limit_share * sensors.gain / gain
    return replace(twin, power=replace(power, limit_share=share), sensors=replace(sensors, gain=gain))


def noise_seed(seed: int, key: str) -> int:
    """The seed of the sensors' noise, which is another one on each board of a model."""
    number = split_number(key)[1]
    return seed if number == 0 else zlib.crc32(f"{seed} {number}".encode())


__all__ = ["Twin", "load_twin", "not_shown", "twin_names"]

_MAXIMUM_BYTES = 256 * 1024
_MAXIMUM_CLOCKS = 2000
_NOTES = "source"  # a table may say where its figures come from


@functools.cache
def twin_names() -> tuple[str, ...]:
    """Names of the built-in twins, in alphabetical order."""
    return tuple(sorted(path.stem for path in _folder().glob("*.toml")))


def load_twin(name_or_path: str) -> Twin:
    """The built-in twin of that name (upper or lower case, '-', '_' or spaces), or the one in a file ending in .toml.

    With '#2' after it board 2 of that model, as `individual` has it. Raises InputError that names the file, the key and
    the remedy.
    """
    text, number = split_number(name_or_path)
    return individual(_model(text), number)


def not_shown(board: str) -> str:
    """What the simulated board of that uuid is known not to show of its measurements; '' of other boards."""
    name = board.removeprefix("simulated:")
    with suppress(InputError):
        if name != board and (listed := load_twin(name).not_shown):
            return f"Not shown by this simulated board: {'; '.join(listed)}"
    return ""


def _model(text: str) -> Twin:
    if text.lower().endswith(".toml"):
        path = Path(text).expanduser()
        return replace(_read(path), key=str(path.resolve()))  # what opens it again, from any folder
    wanted = _folded(text)
    for name in twin_names():
        if _folded(name) == wanted:
            return _built_in(name)
    raise InputError(
        f"no simulated GPU is called '{text}'",
        "twin",
        f"choose one of {', '.join(twin_names())}, or name a file that ends in .toml; #1 to #{MOST} is one board",
    )


@functools.cache  # several panels list all boards: 10 ms of a thread each time that they are read
def _built_in(name: str) -> Twin:
    return _read(_folder() / f"{name}.toml")


def _folder() -> Path:
    return resources() / "twins"


def _folded(name: str) -> str:
    return "".join(c for c in name.lower() if c not in "-_ ")


def _read(path: Path) -> Twin:
    try:
        with open_input(path) as file:
            data = file.read(_MAXIMUM_BYTES + 1)
    except OSError as error:
        raise InputError(error.strerror or "cannot be read", str(path), "name a file that exists") from error
    if len(data) > _MAXIMUM_BYTES:
        raise InputError(f"larger than {_MAXIMUM_BYTES // 1024} KiB", str(path), "a twin is a short file of figures")
    try:
        text = data.decode("utf-8")
        check_toml_keys(text, str(path))
        document = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", str(path), "save it as UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not valid TOML: {error}", str(path), "fix that line") from error
    except RecursionError as error:
        raise InputError("nested too deeply", str(path), "see resources/twins/README.md") from error
    if "key" in document:
        raise InputError("unknown key 'key'", str(path), "remove it: the file's name is the key")
    twin: Twin = _record(Twin, {**document, "key": path.stem}, str(path), "")
    _check_together(twin, str(path))
    return twin


# --- from tables to dataclasses --------------------------------------------------------------------------------------


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def _record(kind: type, table: Any, file: str, place: str) -> Any:
    """A dataclass of that kind from a TOML table."""
    if not isinstance(table, dict):
        raise InputError("must be a table", f"{file}, {place}", f"write it as [{place}]")
    fields = {f.name: f for f in dataclasses.fields(kind)}
    for key in table:
        if key not in fields and key != _NOTES:
            near = difflib.get_close_matches(key, fields, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(fields)}"
            raise InputError(f"unknown key '{key}'", f"{file}, {place}" if place else file, remedy)
    values = {}
    for name, field in fields.items():
        where = f"{place}.{name}" if place else name
        if name in table:
            values[name] = _value(_hints(kind)[name], field.metadata, table[name], file, where)
        elif field.default is dataclasses.MISSING:
            raise InputError(f"'{where}' is missing", file, "add it; resources/twins/README.md says what it is")
    return kind(**values)


def _value(hint: Any, metadata: Mapping[str, float], given: Any, file: str, place: str) -> Any:
    origin = typing.get_origin(hint)
    if origin is types.UnionType:  # X | None: left out stands for None
        hint = next(a for a in typing.get_args(hint) if a is not type(None))
        origin = typing.get_origin(hint)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _record(hint, given, file, place)
    if hint is str:
        if not isinstance(given, str) or not given.strip() or len(given) > 200:
            raise InputError("must be a text of at most 200 characters", f"{file}, {place}", 'such as "my board"')
        return given
    if hint is bool:
        if not isinstance(given, bool):
            raise InputError("must be true or false", f"{file}, {place}", "write true or false")
        return given
    if origin is tuple and typing.get_args(hint) == (int, int):
        if not (isinstance(given, list) and len(given) == 2 and all(type(g) is int and 0 <= g < 100 for g in given)):
            raise InputError("must be two whole numbers", f"{file}, {place}", "such as [8, 0]")
        return tuple(given)
    if origin is tuple and str in typing.get_args(hint):
        if not isinstance(given, list):
            raise InputError("must be a list of texts", f"{file}, {place}", 'such as ["the bandwidth of copies"]')
        return tuple(_value(str, metadata, value, file, place) for value in given)
    if origin is tuple:
        return _clocks(given, file, place)
    if origin is not None:
        return _by_precision(given, metadata, file, place)
    return _number(given, metadata, file, place, whole=hint is int)


def _number(given: Any, metadata: Mapping[str, float], file: str, place: str, *, whole: bool) -> int | float:
    low, high = metadata["low"], metadata["high"]
    kinds = (int,) if whole else (int, float)
    sort = "whole number" if whole else "number"
    if type(given) not in kinds or not math.isfinite(given):
        raise InputError(f"must be a {sort}", f"{file}, {place}", f"from {low:g} to {high:g}")
    if not low <= given <= high:
        raise InputError(f"{given:g} is out of range", f"{file}, {place}", f"from {low:g} to {high:g}")
    return int(given) if whole else float(given)


def _clocks(given: Any, file: str, place: str) -> tuple[int, ...]:
    """Ascending clocks from a list, or from { minimum, maximum, step } where a step may end in half a MHz (V100)."""
    if isinstance(given, dict):
        if set(given) != {"minimum", "maximum", "step"}:
            raise InputError("needs minimum, maximum and step", f"{file}, {place}", "or write a list of clocks")
        bounds = {"low": 0.5, "high": 20_000.0}
        low, high, step = (
            _number(given[k], bounds, file, f"{place}.{k}", whole=False) for k in ("minimum", "maximum", "step")
        )
        if low > high or (high - low) / step > _MAXIMUM_CLOCKS:
            raise InputError("makes no clocks, or too many", f"{file}, {place}", f"at most {_MAXIMUM_CLOCKS}")
        return tuple(sorted({int(low + i * step) for i in range(int((high - low) / step + 1e-9) + 1)}))
    valid = isinstance(given, list) and 0 < len(given) <= _MAXIMUM_CLOCKS
    if not valid or not all(type(g) is int and 0 < g <= 20_000 for g in given):
        raise InputError("must be a list of clocks in MHz", f"{file}, {place}", "whole numbers above 0")
    return tuple(sorted(set(given)))


def _by_precision(given: Any, metadata: Mapping[str, float], file: str, place: str) -> Mapping[str, float]:
    if not isinstance(given, dict) or "fp32" not in given or not set(given) <= set(PRECISIONS):
        raise InputError(
            "must be a table of precisions with at least fp32", f"{file}, {place}", f"known: {', '.join(PRECISIONS)}"
        )
    return types.MappingProxyType(
        {k: _number(v, metadata, file, f"{place}.{k}", whole=False) for k, v in given.items()}
    )


def _check_together(twin: Twin, file: str) -> None:
    """Figures that only make sense together."""
    clocks, power = twin.clocks, twin.power

    def refuse(what: str, place: str, remedy: str) -> typing.NoReturn:
        raise InputError(what, f"{file}, {place}", remedy)

    if clocks.idle_mhz not in clocks.graphics_mhz:
        refuse("is no supported clock", "clocks.idle_mhz", "choose one of clocks.graphics_mhz")
    if clocks.idle_memory_mhz not in clocks.memory_mhz:
        refuse("is no supported clock", "clocks.idle_memory_mhz", "choose one of clocks.memory_mhz")
    if not power.limit_minimum_w <= power.limit_default_w <= power.limit_maximum_w:
        refuse("the default lies outside", "power.limit_default_w", "keep minimum <= default <= maximum")
    if set(twin.energy.eps_flop_pj) != set(twin.rate.flop_per_clock):
        refuse("other precisions than rate.flop_per_clock", "energy.eps_flop_pj", "name the same ones in both")
    if twin.sensors.instant is None and twin.sensors.average is None:
        refuse("the board reports no power at all", "sensors", "add [sensors.instant] or [sensors.average]")
    if not twin.thermal.ambient_c < twin.thermal.slowdown_c:
        refuse("lies below the ambient temperature", "thermal.slowdown_c", "raise it")
