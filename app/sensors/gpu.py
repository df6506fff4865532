"""The `Gpu` seam: one interface to a board, whether NVML, a simulated twin or a recording answers.

With it stand the typed errors of a GPU, each with the one line that the user sees, and `Load`, the work that one launch
of a kernel makes for a GPU, as the simulated boards and the models count it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

from ..base.errors import WattridgeError
from ..base.records import figure
from .channel import Channel, PowerSample, Reading
from .clock import Clock

Use = Literal["compute", "graphics", "compute and graphics"]
Source = Literal["nvml", "amd", "simulated", "recorded", "unmetered"]
LIVE: Final = ("nvml", "amd")  # sources of real boards that report what they draw, and that only the helper sets


@dataclass(frozen=True, slots=True)
class PowerLimit:
    """Power limit in W. `current` is what acts now; None if the board does not report it.

    As it was set, as a program of the user's requested it, and as the driver says that it enforces it.
    """

    minimum_w: float | None = field(metadata=figure(key="min"))
    maximum_w: float | None = field(metadata=figure(key="max"))
    default_w: float | None = field(metadata=figure(key="default"))
    current_w: float | None = field(metadata=figure(key="current"))
    set_w: float | None = field(default=None, metadata=figure(key="set"))
    requested_w: float | None = field(default=None, metadata=figure(key="requested"))
    enforced_w: float | None = field(default=None, metadata=figure(key="enforced"))

    @property
    def from_outside(self) -> str:
        """That a limit acts which nobody set here, in words; empty if none does."""
        asked_w = max((limit_w for limit_w in (self.set_w, self.requested_w) if limit_w is not None), default=math.nan)
        acts_w = self.current_w or math.nan
        return f"a limit from outside acts: {acts_w:g} W, below the {asked_w:g} W set" if acts_w < asked_w - 1.0 else ""


@dataclass(frozen=True, slots=True)
class GpuInfo:
    """What stays the same while the program runs."""

    index: int
    uuid: str
    name: str
    source: Source
    driver: str
    power_limit: PowerLimit
    compute_capability: tuple[int, int] | None = None
    multiprocessors: int | None = None
    memory_mib: float | None = None
    power_source: str = ""  # the source of power that measurements use, in words, and why
    host: str = ""  # the machine that it is in, as user@host; empty for this one

    @property
    def label(self) -> str:
        """The name with its source where it is not a live board: a simulated value says so wherever it is shown."""
        name = f"{self.name} on {self.host}" if self.host else self.name
        return name if self.live else f"{name} ({self.source})"

    @property
    def live(self) -> bool:
        """Whether a real board reports what it draws."""
        return self.source in LIVE

    @property
    def real(self) -> bool:
        """Whether a device is there that runs what it is given: one with sensors, or one without."""
        return self.live or self.source == "unmetered"

    @property
    def reports_power(self) -> bool:
        """Whether it has a sensor of its power: a Jetson has none that NVML reads."""
        return self.source != "unmetered" and not self.power_source.startswith("none")

    @property
    def here(self) -> bool:
        """Whether this machine has the board: kernels and programs of another one run there."""
        return not self.host


class Gpu(Protocol):
    """A board that can be looked at. Thread-safe. `channels` is fixed once open; `read()` follows its order."""

    info: GpuInfo
    channels: tuple[Channel, ...]
    clock: Clock

    def read(self) -> Reading:
        """All channels now. A channel that fails is NaN. Raises GpuLost when the board is gone."""
        ...

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """The driver's buffered samples newer than `since_ns`, oldest first. Raises NotSupported if it has none."""
        ...

    def energy_j(self) -> float:
        """The energy counter (slow on real boards: ~4 ms). Raises NotSupported if there is none."""
        ...

    def graphics_clocks_mhz(self) -> Sequence[int]:
        """Supported graphics clocks at the present memory clock, ascending; empty if unknown. Lazy and kept."""
        ...

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Supported memory clocks, ascending; empty if unknown. Asked lazily and kept."""
        ...

    def close(self) -> None:
        """Release the board. Safe to call twice."""
        ...


@runtime_checkable
class StreamsReadings(Protocol):
    """A board that is read elsewhere at times of its own: what was read arrives later, and several at once."""

    def readings(self, since_ns: int) -> Sequence[Reading]:
        """What arrived that is newer than `since_ns`, oldest first; empty while nothing did. Raises GpuLost."""
        ...

    def stream_every(self, interval_s: float) -> None:
        """How often it is to be read from now on."""
        ...

    def clock_offset_s(self) -> tuple[float, float]:
        """What the clock there is ahead by, and the most by which times of readings are wrong; inf while not known."""
        ...


class Held(NamedTuple):
    """The age of a value that a board asks its sensor for once in a while, and reports until the next answer."""

    asked_ns: int  # when the sensor was asked for it, on the GPU's clock
    longest_s: float  # for how long at most such a value is reported


@runtime_checkable
class HoldsValues(Protocol):
    """A board of which some channels are not asked at every read."""

    def held(self, channel: str) -> Held | None:
        """The age of the value that a read reports for a channel now; None where every read asks."""
        ...


@runtime_checkable
class ReportsBaseClock(Protocol):
    """A board whose driver names a clock that it defaults to."""

    def base_clock_mhz(self) -> float | None:
        """The default application clock; None where there is none, or where it is the highest clock of all."""
        ...


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses a board. NaN where memory or share are unknown."""

    pid: int
    name: str
    memory_mib: float
    use: Use
    share_percent: float = math.nan  # of the time in which a kernel of it ran, over the last second or so


@runtime_checkable
class ListsProcesses(Protocol):
    """A board that reports what runs on it."""

    def processes(self) -> Sequence[GpuProcess]:
        """The processes of this moment, the one with the most memory first. Raises NotSupported, GpuLost."""
        ...


@runtime_checkable
class SettableGpu(Protocol):
    """A board whose clocks and cap can be set. Only `engine.control.DeviceGuard` calls these. None resets."""

    def lock_graphics_clock(self, clock_mhz: int | None) -> None: ...

    def lock_memory_clock(self, clock_mhz: int | None) -> None: ...

    def set_power_limit(self, limit_w: float | None) -> None: ...


class SensorError(WattridgeError):
    """A call to the GPU failed."""


class NotSupported(SensorError):
    """This board or driver does not have what was asked for."""


class NoPermission(SensorError):
    """The driver refuses this to the present user."""


class GpuLost(SensorError):
    """The GPU fell off the bus or its driver went away. An event, not an exit."""


class NoDriver(SensorError):
    """No driver of a maker's boards answers on this machine."""


Precision = Literal["fp16", "fp16_tensor", "fp32", "fp64", "fp64_tensor"]
PRECISIONS: tuple[Precision, ...] = ("fp16", "fp16_tensor", "fp32", "fp64", "fp64_tensor")


@dataclass(frozen=True, slots=True)
class Counts:
    """What hardware counters would count of one launch, as far as the formulas of a kernel's cost tell it; else NaN."""

    instructions: float  # executed, by warps
    written_byte: float  # to device memory: the rest of the traffic is read
    l2_read_byte: float  # from the L2 cache
    shared_load_byte: float  # of shared memory's time, so that conflicts count
    shared_store_byte: float
    loads_and_stores: float = math.nan  # of the instructions, to whichever memory
    loaded_byte: float = math.nan  # from global memory through the L1 cache, by whole sectors
    wanted_byte: float = math.nan  # of these, what threads ask for
    stored_byte: float = math.nan  # to global memory, all of which threads write


@dataclass(frozen=True, slots=True)
class Load:
    """Work and traffic of one launch. Nothing here depends on the board."""

    name: str
    precision: Precision
    work_flop: float  # W: floating-point operations
    traffic_byte: float  # Q: bytes through device memory
    occupancy: float = 1.0  # resident share of the board's threads, 0..1; of those on its part of the SMs
    issue_efficiency: float = 1.0  # share of the peak rate the instruction mix can reach, 0..1
    onchip_byte: float = 0.0  # bytes through shared memory and caches, beyond what traffic brings along
    counts: Counts | None = None  # None: the kernel's formulas tell no more than what stands above
    sm_share: float = 1.0  # of the board's SMs that it may run on, 0..1


@dataclass(frozen=True, slots=True)
class Execution:
    """A series of back-to-back launches, timed by the device's own events."""

    launches: int
    time_s: float  # mean time of one launch: (last event - first event) / launches
    start_ns: int  # on the GPU's clock
    end_ns: int
    change: float = 0.0  # of the time of one launch, from the first half of them to the second; relative
    reported: float | None = None  # mean of what a launch reports of itself: its own seconds, or a value
