"""The figures of a simulated board. `resources/twins/README.md` describes them for those who write their own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base.errors import PermissionRefused
from ..gpu import Precision
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
    published_ms: float = figure(1, 10_000)
    kept: int = figure(1, 10_000)
    launch_swing: float = figure(0, 0.5, 0.0)  # amplitude by which a sample follows the phase of the launch at its end


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
