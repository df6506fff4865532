"""`AmdGpu`: a board of AMD's through AMD SMI, read only. Nothing in this module sets anything.

Not yet run on a real board: every fact here is from the public headers and sources of AMD SMI and of Linux.
"""

from __future__ import annotations

import ctypes
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from ..channel import CHANNELS, PowerSample, Reading, channel
from ..clock import Clock, HostClock
from ..event_reasons import EventReason
from ..gpu import GpuInfo, GpuLost, Held, NoDriver, NotSupported, PowerLimit, SensorError
from ..pci import asleep
from .binding import AUTO, GRAPHICS_CLOCK, MEMORY_CLOCK, AmdSmi, Metrics, known
from .library import LIBRARY, AmdLibrary

PERIOD_S: Final = 0.02
_KEPT: Final = 1500
_LEAST_S: Final = 0.5 * PERIOD_S  # over less the counter's own step, a millisecond, shows


class CountedPower:
    """Mean power between two readings of a board's energy counter, by the counter's own time.

    The samples are as a driver's buffer has them. Thread-safe.
    """

    def __init__(self) -> None:
        self._samples: deque[PowerSample] = deque(maxlen=_KEPT)
        self._lock = threading.Lock()
        self._before: tuple[float, int] | None = None

    def count(self, energy_uj: float, counted_ns: int, now_ns: int) -> None:
        """A reading of the counter: its energy and its time, and the time on the board's clock.

        One that has not moved is waited for; after one that fell, as a reset makes it, counting begins again.
        """
        if self._before is None or energy_uj < self._before[0] or counted_ns < self._before[1]:
            self._before = energy_uj, counted_ns
            return
        passed_s = (counted_ns - self._before[1]) / 1e9
        if passed_s < _LEAST_S or energy_uj == self._before[0]:
            return
        sample = PowerSample(now_ns, (energy_uj - self._before[0]) * 1e-6 / passed_s)
        self._before = energy_uj, counted_ns
        with self._lock:
            self._samples.append(sample)

    def since(self, since_ns: int) -> Sequence[PowerSample]:
        """Samples newer than a time, oldest first."""
        with self._lock:
            return [sample for sample in self._samples if sample.time_ns > since_ns]


def _bits(first: int, last: int) -> int:
    return (1 << last + 1) - (1 << first)


# Bits of the throttle status that is the same for every board, as Linux' `amdgpu_smu.h` numbers them: 0 to 7 power,
# 16 to 23 current, 32 to 43 temperatures, 44 to 47 what hardware demands, 56 and 57 the rest.
_REASONS: Final = (
    (_bits(0, 7), EventReason.POWER_CAP),
    (_bits(16, 23), EventReason.HARDWARE_SLOWDOWN),
    (_bits(32, 43), EventReason.SOFTWARE_THERMAL),
    (_bits(44, 47), EventReason.HARDWARE_THERMAL),
    (_bits(48, 63), EventReason.HARDWARE_SLOWDOWN),
)


def event_reasons(throttle_bits: int, *, idle: bool) -> EventReason:
    """Why an AMD board's clock is what it is, from its throttle status.

    AMD boards report no idleness: it is taken from their activity.
    """
    reasons = EventReason.IDLE if idle else EventReason.NONE
    for bits, reason in _REASONS:
        if throttle_bits & bits:
            reasons |= reason
    return reasons


PREFIX: Final = "AMD-"  # of a UUID here: AMD SMI has none, and records are named by it
SHARED: Final = "@"  # between a UUID that several boards have and the PCI address of one
STEP_MHZ: Final = 10  # between the graphics clocks that are offered; the driver takes every whole MHz
_SLOW_S: Final = 1.0
_HELD_S: Final = 2 * _SLOW_S
_NOT_REPORTED: Final = "this board does not report it"
_POWERS: Final = ("power_average_w", "power_instant_w")  # MI300 has no average, MI200 no present value
_OTHER_DIE: Final = "this is the second die of the board: the first one reports the power of both"
_COMPARED_S: Final = 0.1  # over which the energy counter is compared with the power when a board is opened
_NOT_OF_AMD: Final = {
    "sm_clock_mhz": "AMD boards have one graphics clock",
    "memory_power_w": "AMD SMI does not report it",
    "performance_state": "AMD boards have no P-states",
    "pcie_rx_mb_per_s": "AMD SMI does not tell the directions apart",
    "pcie_tx_mb_per_s": "AMD SMI does not tell the directions apart",
    "fan_percent": "AMD SMI reports no share of the highest speed",
    "requested_memory_clock_mhz": "memory clocks are not set here",
}

T = TypeVar("T")


def boards(library: AmdLibrary = LIBRARY) -> list[tuple[int, str, str]]:
    """(index, UUID, name) of every board that AMD SMI shows to this user. Raises NoDriver and SensorError."""
    results = []
    for index, (handle, uuid) in enumerate(_identified(library)):
        with suppress(SensorError):  # lost, or not ours to see; the others still answer
            if uuid:
                results.append((index, uuid, _name(library, handle)))
    return results


def pci_address(uuid: str, library: AmdLibrary = LIBRARY) -> str:
    """DOMAIN:BUS:DEVICE.FUNCTION, hexadecimal; empty if the driver does not tell it."""
    try:
        handle = _find(library, uuid)
        return library.ask(lambda smi: smi.pci(handle))
    except SensorError:
        return ""


class AmdGpu:
    """One board. The metrics are read at every read; the rest, and the energy counter, by a thread of its own.

    Opening asks everything once: what fails then is a channel that is not available, with the reason. Raises NoDriver,
    GpuLost or SensorError when opened.
    """

    def __init__(self, index: int, *, library: AmdLibrary = LIBRARY, clock: Clock | None = None) -> None:
        self.clock: Clock = clock or HostClock()
        self._library = library
        self._lost = False
        identified = _identified(library)
        if not 0 <= index < len(identified):
            raise NotSupported(f"there is no AMD GPU {index}")
        self._handle, self._uuid = identified[index]
        if not self._uuid:
            raise GpuLost("the GPU does not answer")
        self._generation = library.generation
        name = _name(library, self._handle)
        self._missing: dict[str, str] = dict(_NOT_OF_AMD)
        self._held: dict[str, float] = {}
        self._asked_ns = self.clock.now_ns()
        self._locked: dict[str, float] = {}
        self._counted = CountedPower()
        self._no_counter = ""
        self._clocks: tuple[int, ...] | None = None
        self._memory_clocks: tuple[int, ...] | None = None
        now = _values_of(self._ask(lambda smi: smi.metrics(self._handle)))
        for value in now:
            if math.isnan(now[value]):
                self._missing[value] = _NOT_REPORTED
        if "utilisation_percent" not in self._missing:
            self._missing.pop("event_reasons", None)  # idle is known at least
        powers = [item for item in _POWERS if item not in self._missing]
        if len(powers) == 1:
            self._missing |= {item: f"{_NOT_REPORTED}, but {powers[0]}" for item in _POWERS if item != powers[0]}
        self._dies = "MI250" in name  # and MI250X: boards with two dies
        if self._dies and not powers:
            self._missing |= dict.fromkeys(_POWERS, _OTHER_DIE)
        self._hold()
        self._probe_counter(now[powers[0]] if powers else math.nan)
        self.info = self._describe(index, name)
        available = {*now, *self._held} - set(self._missing)
        self.channels = tuple(
            channel(item, None if item in available else self._missing.get(item, _NOT_REPORTED)) for item in CHANNELS
        )
        self._available = available
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._start_lock = threading.Lock()

    # --- the Gpu seam -------------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """All channels now; one that fails is NaN. Raises GpuLost when the board is gone; the next read tries again."""
        if self._lost or self._generation != self._library.generation:
            self._attach_again()
        if self._thread is None:
            self._start()
        time_ns = self.clock.now_ns()
        values = dict(self._held)
        try:
            values.update(_values_of(self._ask(lambda smi: smi.metrics(self._handle))))
        except (GpuLost, NoDriver) as error:
            self._lost = True
            raise GpuLost(f"{self.info.name}: {error.what}", remedy="it is tried again every few seconds") from error
        except SensorError:
            pass
        values.update(self._locked)
        return Reading(
            time_ns, tuple(values.get(name, math.nan) if name in self._available else math.nan for name in CHANNELS)
        )

    def held(self, channel: str) -> Held | None:
        """The age of what `read()` reports for a channel that is not asked at every read; None for the others."""
        return Held(self._asked_ns, _HELD_S) if channel in self._held else None

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """Mean power between readings of the energy counter, 20 ms apart, newer than `since_ns`, oldest first.

        They are counted from the first read on. Raises NotSupported if the board has no counter.
        """
        if self._no_counter:
            raise NotSupported(self._no_counter)
        return self._counted.since(since_ns)

    def energy_j(self) -> float:
        """The energy counter, asked now: counts times their resolution, about 15.3 µJ. Raises NotSupported, GpuLost."""
        return self._ask(lambda smi: smi.energy_uj(self._handle))[0] * 1e-6

    def ask_power_w(self, channel: str) -> float:
        """One power channel asked alone, as a measure of what a read costs. Raises NotSupported, GpuLost."""
        return _values_of(self._ask(lambda smi: smi.metrics(self._handle)))[channel]

    def graphics_clocks_mhz(self) -> Sequence[int]:
        """Clocks of the board's range, STEP_MHZ apart, its ends included, ascending; empty if it is unknown.

        The driver takes any whole MHz within the range.
        """
        if self._clocks is None:
            low, high = self._graphics_range()
            inside = range(-(-low // STEP_MHZ) * STEP_MHZ, high + 1, STEP_MHZ) if high else ()
            self._clocks = tuple(sorted({*inside, low, high})) if high else ()
        return self._clocks

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Clocks that the driver lists for the memory, ascending; empty if unknown."""
        if self._memory_clocks is None:
            listed = self._ask_or_none(lambda smi: smi.clocks_mhz(self._handle, MEMORY_CLOCK))
            self._memory_clocks = tuple(listed or ())
        return self._memory_clocks

    def note_locks(self, locks_mhz: Mapping[str, float]) -> None:
        """Clocks that are locked by this program, by setting: the readings show these."""
        name = "graphics_clock_mhz"
        self._locked = {f"requested_{name}": locks_mhz[name]} if name in locks_mhz else {}

    def why_not_set(self, setting: str) -> str | None:
        """Why this board would refuse a setting, if that is known."""
        if SHARED in self._uuid:
            return "boards without a serial number share a UUID, and are not set"
        if setting == "workload_power_profile":
            return "workload power profiles are of NVIDIA's boards"
        if setting == "memory_clock_mhz":
            return "memory clocks of AMD boards are not set"
        if setting == "power_limit_w":
            limit = self.info.power_limit
            if limit.minimum_w is None or limit.maximum_w is None:
                return "this board does not let its power limit be set"
            return None if limit.minimum_w < limit.maximum_w else "this board has but one power limit"
        if self._ask_or_none(lambda smi: smi.graphics_ranges_mhz(self._handle)) is None:
            return "the driver takes no range of graphics clocks for this board"
        return None

    def close(self) -> None:
        """End the thread. AMD SMI itself stays loaded: other boards may be open."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(2.0)

    # --- asking -------------------------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[AmdSmi], T]) -> T:
        return self._library.ask(question)

    def _ask_or_none(self, question: Callable[[AmdSmi], T]) -> T | None:
        """An answer, or None if there is none. Raises GpuLost."""
        try:
            return self._ask(question)
        except GpuLost:
            raise
        except SensorError:
            return None

    def _graphics_range(self) -> tuple[int, int]:
        """The least and the highest graphics clock; zeros if unknown."""
        ranges = self._ask_or_none(lambda smi: smi.graphics_ranges_mhz(self._handle))
        if ranges is not None:
            return ranges[2], ranges[3]
        clock = self._ask_or_none(lambda smi: smi.clock(self._handle, GRAPHICS_CLOCK))
        if clock is None or not 0 < clock.least <= clock.most < 100_000:
            return 0, 0
        return clock.least, clock.most

    def _attach_again(self) -> None:
        """After the board was lost or AMD SMI was initialised again: find it by its UUID. Raises GpuLost."""
        try:
            if self._lost:
                self._library.reopen(self._generation)
            self._handle = _find(self._library, self._uuid)
        except SensorError as error:
            self._lost = True
            raise GpuLost(f"{self.info.name}: {error.what}", remedy="it is tried again every few seconds") from error
        self._generation = self._library.generation
        self._lost = False

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._start_lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="energy counter", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        due_s = time.monotonic() + _SLOW_S
        while not self._stop.is_set():
            if not self._lost:
                with suppress(SensorError):  # a read reports that the board is gone
                    if not self._no_counter:
                        self._count()
                    if time.monotonic() >= due_s:
                        due_s = time.monotonic() + _SLOW_S
                        self._hold()
            self._stop.wait(_SLOW_S if self._no_counter else PERIOD_S)

    def _count(self) -> None:
        energy_uj, counted_ns = self._ask(lambda smi: smi.energy_uj(self._handle))
        now_ns = self.clock.now_ns()
        self._held["energy_j"] = energy_uj * 1e-6
        self._counted.count(energy_uj, counted_ns, now_ns)

    def _hold(self) -> None:
        """Ask for what changes slowly, and keep it until the next time."""
        asked_ns = self.clock.now_ns()
        cap = self._ask_or_none(lambda smi: smi.power_cap_uw(self._handle))
        memory = self._ask_or_none(lambda smi: smi.memory_mib(self._handle))
        held = {
            "power_limit_w": math.nan if cap is None or not cap[0] else cap[0] * 1e-6,
            "memory_used_mib": math.nan if memory is None else float(memory[1]),
            "requested_graphics_clock_mhz": self._requested_mhz(),
        }
        self._held.update(held)
        self._asked_ns = asked_ns

    def _requested_mhz(self) -> float:
        """The upper end of the range of clocks that somebody set, the highest clock where nobody did."""
        ranges = self._ask_or_none(lambda smi: smi.graphics_ranges_mhz(self._handle))
        if ranges is None:
            return math.nan
        level = self._ask_or_none(lambda smi: smi.level(self._handle))
        return float(ranges[1] if level not in (None, AUTO) else ranges[3])

    # --- opening ------------------------------------------------------------------------------------------------------

    def _probe_counter(self, power_w: float) -> None:
        try:
            if self._dies and math.isnan(power_w):
                raise NotSupported(_OTHER_DIE)
            begun_j, begun_s = self.energy_j(), time.monotonic()
            time.sleep(_COMPARED_S)
            self._held["energy_j"] = self.energy_j()
            counted_w = (self._held["energy_j"] - begun_j) / (time.monotonic() - begun_s)
            if not counted_w:
                raise NotSupported("the energy counter stands still")
            if counted_w > 10 * power_w or counted_w < power_w / 10:  # as on some boards: ROCm/amdsmi, issue 38
                raise NotSupported(f"it counts {counted_w:.3g} W where the board reports {power_w:.3g} W")
        except GpuLost:
            raise
        except SensorError as error:
            self._missing["energy_j"] = error.what
            self._no_counter = f"there is no energy counter to read: {error.what}"
        for name, value in self._held.items():
            if math.isnan(value):
                self._missing[name] = _NOT_REPORTED

    def _describe(self, index: int, name: str) -> GpuInfo:
        cap = self._ask_or_none(lambda smi: smi.power_cap_uw(self._handle))
        memory = self._ask_or_none(lambda smi: smi.memory_mib(self._handle))
        now, default, least, most = (value * 1e-6 if value else None for value in cap or (0, 0, 0, 0))
        return GpuInfo(
            index=index,
            uuid=self._uuid,
            name=name,
            source="amd",
            driver=self._ask_or_none(lambda smi: smi.driver(self._handle)) or "",
            power_limit=PowerLimit(minimum_w=least, maximum_w=most, default_w=default, current_w=now),
            memory_mib=float(memory[0]) if memory else None,
            power_source=(
                f"{'average' if 'power_instant_w' in self._missing else 'instant'} power, polled: {self._no_counter}"
                if self._no_counter
                else "the board's energy counter, read every 20 ms"
            )
            + (", of both dies of the board" if self._dies and not set(_POWERS) <= set(self._missing) else ""),
        )


def _identified(library: AmdLibrary) -> list[tuple[ctypes.c_void_p, str]]:
    """(handle, UUID) of every board, in AMD SMI's order; no UUID where a board does not answer, or is left asleep.

    Boards without a serial number share a UUID: theirs is followed by their PCI address.
    """
    handles = library.ask(AmdSmi.boards)
    sleeping = {board.address for board in asleep("amd")}
    left = [bool(sleeping) and _answer(library, AmdSmi.pci, handle) in sleeping for handle in handles]
    uuids = [
        "" if rests else _answer(library, AmdSmi.uuid, handle) for handle, rests in zip(handles, left, strict=True)
    ]
    results = []
    for handle, own in zip(handles, uuids, strict=True):
        uuid = PREFIX + own if own else ""
        if own and uuids.count(own) > 1:
            uuid += SHARED + _answer(library, AmdSmi.pci, handle)
        results.append((handle, uuid))
    return results


def _answer(library: AmdLibrary, question: Callable[[AmdSmi, ctypes.c_void_p], str], handle: ctypes.c_void_p) -> str:
    """What a board answers; empty if it does not. Raises NoDriver."""
    try:
        return library.ask(lambda smi: question(smi, handle))
    except NoDriver:
        raise
    except SensorError:
        return ""


def _name(library: AmdLibrary, handle: ctypes.c_void_p) -> str:
    return library.ask(lambda smi: smi.name(handle)) or "AMD GPU"


def _find(library: AmdLibrary, uuid: str) -> ctypes.c_void_p:
    """The board of that UUID. Raises GpuLost if there is none."""
    _, shared, pci = uuid.partition(SHARED)
    for handle, identity in _identified(library):
        if identity == uuid or (shared and _answer(library, AmdSmi.pci, handle) == pci):
            return handle
    raise GpuLost("the GPU is no longer there")


def _values_of(metrics: Metrics) -> dict[str, float]:
    """Channels in the metrics; NaN for what the board does not report. No powered board draws 0 W."""

    def value(name: str, *, zero: bool = True) -> float:
        number = getattr(metrics, name)
        return float(number) if known(number) and (number or zero) else math.nan

    activity, edge_c, junction_c = value("gfx_percent"), value("edge_c", zero=False), value("junction_c", zero=False)
    bits = metrics.throttle_bits
    idle = activity == 0.0
    reasons = event_reasons(bits if known(bits, 64) else 0, idle=idle) if known(bits, 64) or idle else None
    return {
        "power_instant_w": value("current_w", zero=False),
        "power_average_w": value("average_w", zero=False),
        "graphics_clock_mhz": value("graphics_mhz", zero=False),
        "memory_clock_mhz": value("memory_mhz", zero=False),
        "video_clock_mhz": value("video_mhz"),
        "core_voltage_mv": value("graphics_mv", zero=False),
        "temperature_c": junction_c if math.isnan(edge_c) else edge_c,
        "junction_temperature_c": junction_c,
        "memory_temperature_c": value("memory_c", zero=False),
        "utilisation_percent": activity,
        "memory_utilisation_percent": value("memory_percent"),
        "event_reasons": math.nan if reasons is None else float(reasons),
    }
