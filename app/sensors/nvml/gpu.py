"""`NvmlGpu`: a real NVIDIA board through NVML, with its processes, workload power profiles and PCI address.

It only reads: nothing in this module sets anything or requests a profile.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from ctypes import byref
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from ..channel import CHANNELS, PowerSample, Reading, channel
from ..clock import Clock, HostClock
from ..gpu import GpuInfo, GpuLost, GpuProcess, Held, NoDriver, NotSupported, PowerLimit, SensorError, Use
from ..power_profiles import MOST_PROFILES, PowerProfile, PowerProfiles, profile_name
from .channels import (
    CORES_PER_MULTIPROCESSOR,
    EVERY_READ_S,
    POWER_FIELDS,
    POWER_USAGE,
    QUERIES,
    SLOW_S,
    PowerBuffer,
    Query,
    VoltageReader,
    of_the_board,
    power_usage_query,
    watts,
)
from .devfreq import SYSFS, integrated_gpu
from .fields import LIMITS, answered_fields, read_fields, throttle_fields
from .library import LIBRARY, NvmlLibrary

_PREFIX = "nvmlDeviceWorkloadPowerProfile"


def read_power_profiles(ask: Callable[..., Any], structure: Callable[[str], Any]) -> PowerProfiles:
    """Ask a board; `structure` makes one of nvidia-ml-py's by name. Raises NotSupported and what `ask` raises."""
    info = structure("c_nvmlWorkloadPowerProfileProfilesInfo_v1_t")
    ask(f"{_PREFIX}GetProfilesInfo", byref(info))
    now = structure("c_nvmlWorkloadPowerProfileCurrentProfiles_v1_t")
    ask(f"{_PREFIX}GetCurrentProfiles", byref(now))
    supported = {}
    for number in _numbers(info.perfProfilesMask):
        each = info.perfProfile[number]
        name = profile_name(int(each.profileId))
        supported[number] = PowerProfile(name, int(each.priority), _numbers(each.conflictingmask))
    return PowerProfiles(supported, _numbers(now.requestedProfilesMask), _numbers(now.enforcedProfilesMask))


def _numbers(mask: Any) -> tuple[int, ...]:
    """The bits that are set in a mask of 255."""
    return tuple(index for index in range(MOST_PROFILES) if mask.mask[index // 32] >> index % 32 & 1)


UNSEEN = "not visible here"  # a process of another user's container, or one that has just ended

# what for -> NVML's functions, newest first: an older driver lacks the newer ones. The name without a version raises an
# error of pynvml's own where the driver is older than it.
_FUNCTIONS: tuple[tuple[Use, tuple[str, ...]], ...] = (
    ("compute", ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")),
    ("graphics", ("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2")),
)
_SHARES = "nvmlDeviceGetProcessUtilization"
_SHARES_S = 3.0  # how old a sample of a process's share may be; the driver takes them about every second


def nvml_processes(ask: Callable[..., Any]) -> list[GpuProcess]:
    """The processes on a board; `ask` calls an NVML function by name on it. Raises NotSupported, GpuLost, NoDriver.

    Where the driver reports only one kind of use, those are all.
    """
    by_pid: dict[int, GpuProcess] = {}
    refused: SensorError | None = None
    answered = False
    for use, functions in _FUNCTIONS:
        try:
            answer = _first_answer(ask, functions)
        except (GpuLost, NoDriver):
            raise
        except SensorError as error:
            refused = error
            continue
        answered = True
        for item in answer:
            pid = int(item.pid)
            used = item.usedGpuMemory
            before = by_pid.get(pid)
            memory_mib = math.nan if used is None else used / 2**20
            if before is not None:
                memory_mib = memory_mib if math.isnan(before.memory_mib) else before.memory_mib
            both: Use = use if before is None or before.use == use else "compute and graphics"
            by_pid[pid] = GpuProcess(pid, process_name(pid), memory_mib, both)
    if not answered:
        assert refused is not None
        raise refused
    shares = _shares(ask) if by_pid else {}
    described = (replace(match, share_percent=shares.get(match.pid, math.nan)) for match in by_pid.values())
    return sorted(described, key=lambda p: -p.memory_mib if not math.isnan(p.memory_mib) else math.inf)


def _shares(ask: Callable[..., Any]) -> dict[int, float]:
    """The newest share of each process, in %; empty if the driver reports none. Raises GpuLost, NoDriver."""
    try:
        samples = ask(_SHARES, time.time_ns() // 1000 - round(_SHARES_S * 1e6))
    except (GpuLost, NoDriver):
        raise
    except SensorError:
        return {}
    oldest_first = sorted(samples, key=lambda sample: int(sample.timeStamp))
    return {int(item.pid): float(item.smUtil) for item in oldest_first if item.smUtil <= 100}


def process_name(pid: int, proc: Path = Path("/proc")) -> str:
    """A process's name: of its program, and for an interpreter of its script; UNSEEN where it cannot be read."""
    try:
        words = (proc / str(pid) / "cmdline").read_bytes()[:4096].decode("utf-8", "replace").split("\0")
        short = (proc / str(pid) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return UNSEEN
    program = Path(words[0]).name or short
    script = next((word for word in words[1:] if word.endswith(".py")), "")
    name = f"{program} {Path(script).name}" if script and program.startswith("python") else program
    return "".join(letter if letter.isprintable() else "?" for letter in name)[:80] or UNSEEN


def _first_answer(ask: Callable[..., Any], functions: Sequence[str]) -> Any:
    problem: SensorError | None = None
    for function in functions:
        try:
            return ask(function)
        except NotSupported as error:
            problem = problem or error
    assert problem is not None
    raise problem


_GRAPHICS_CLOCK, _MEMORY_CLOCK = 0, 2  # NVML_CLOCK_GRAPHICS, NVML_CLOCK_MEM
_DEFAULT_APPLICATION = 2  # NVML_CLOCK_ID_APP_CLOCK_DEFAULT
SLICE = "a MIG slice has no power of its own: the driver reports the whole board's, under its GPU- UUID"
_TOO_SLOW_S = 0.25e-3  # a call that takes longer is not made at every read
_CLOCKS_TIMEOUT_S = 5.0

# setting -> the least compute capability that locks it, and the words for less
NO_PROFILES = "this board, or its driver, has no workload power profiles: they need Blackwell or newer"
_LOCKS = {
    "graphics_clock_mhz": ((7, 0), "locked clocks need Volta or newer"),
    "memory_clock_mhz": ((8, 0), "locked memory clocks need Ampere or newer"),
}

T = TypeVar("T")
_Asked = tuple[Query, str, tuple[Any, ...]]  # what is asked, by which function, with which arguments


def boards(library: NvmlLibrary = LIBRARY, addresses: Sequence[str] | None = None) -> list[tuple[int, str, str]]:
    """(index, UUID, name) of every board the driver shows to this user. Raises NoDriver and SensorError.

    With `addresses`, of the boards at these PCI addresses alone: asking for a board's handle wakes it.
    """
    results = []
    for place in range(library.call("nvmlDeviceGetCount")) if addresses is None else addresses:
        try:
            handle = library.call(f"nvmlDeviceGetHandleBy{'Index' if addresses is None else 'PciBusId'}", place)
            index = place if isinstance(place, int) else int(library.call("nvmlDeviceGetIndex", handle))
            name = _text(library.call("nvmlDeviceGetName", handle))
            results.append((index, _text(library.call("nvmlDeviceGetUUID", handle)), name))
        except NoDriver:
            raise
        except SensorError:  # lost, or not ours to see; the others still answer
            continue
    return results


class NvmlGpu:
    """One real board. Quick channels are asked at every read, slow ones by a thread of their own and held meanwhile.

    Opening asks everything once: what fails then is a channel that is not available, with the driver's reason.
    Raises NoDriver, GpuLost or SensorError when opened. `voltage` None leaves nvidia-smi alone. `index` may be the UUID
    of a MIG slice, whose power, energy and limits are not available.
    """

    def __init__(
        self,
        index: int | str,
        *,
        library: NvmlLibrary = LIBRARY,
        clock: Clock | None = None,
        voltage: Callable[[str], VoltageReader] | None = VoltageReader,
        sysfs: Path = SYSFS,
    ) -> None:
        self.clock: Clock = clock or HostClock()
        self._library = library
        self._lost = False
        library.open()
        self._generation = library.generation
        self._handle = library.call(f"nvmlDeviceGetHandleBy{'UUID' if isinstance(index, str) else 'Index'}", index)
        self._slice = False
        self._uuid = _text(self._ask("nvmlDeviceGetUUID"))
        self._slice = self._uuid.startswith("MIG-") or bool(self._ask_or_none("nvmlDeviceIsMigDeviceHandle"))
        self._voltage = voltage(self._uuid) if voltage else None  # begins now, since nvidia-smi takes longest
        self._missing = {"junction_temperature_c": "NVML does not report it"}  # channel -> why it is not available
        self._held: dict[str, float] = {}  # what the slow thread read last
        self._ages: dict[str, Held] = {}  # of what is held
        self._locked: dict[str, float] = {}  # channel -> what this program has locked
        self._fields: list[tuple[str, tuple[int, int]]] = []
        self._quick: list[_Asked] = []
        self._slow: list[_Asked] = []
        try:
            capability: tuple[int, int] | None = self._ask_or_none("nvmlDeviceGetCudaComputeCapability")
            self._probe_fields()
            for query in QUERIES:
                self._probe(query)
            self._devfreq = integrated_gpu(sysfs) if "graphics_clock_mhz" in self._missing else None
            if self._devfreq is not None:
                known = self._devfreq.read()
                self._missing = {n: why for n, why in self._missing.items() if math.isnan(known.get(n, math.nan))}
            self._probe_power_usage(capability)
            self._buffer = PowerBuffer(self._ask)
            self._probe_voltage()
            self.info = self._describe(0 if isinstance(index, str) else index, capability)
            self._throttle_fields = answered_fields(self._ask_or_none, throttle_fields(self.info.driver))
        except SensorError:
            if self._voltage is not None:
                self._voltage.stop()
            raise
        self.channels = tuple(channel(name, self._missing.get(name)) for name in CHANNELS)
        self._clocks: dict[int, tuple[int, ...]] = {}
        self._memory_clocks: tuple[int, ...] | None = None
        self._stop = threading.Event()
        self._slow_thread: threading.Thread | None = None
        self._start_lock = threading.Lock()

    # --- the Gpu seam -------------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """All channels now; one that fails is NaN. Raises GpuLost when the board is gone; the next read tries again."""
        if self._lost or self._generation != self._library.generation:
            self._attach_again()
        if self._slow_thread is None:
            self._start_slow()
        values = self._held.copy()
        if self._voltage is not None:
            values["core_voltage_mv"] = self._voltage.latest_mv()
        time_ns = self.clock.now_ns()
        try:
            values.update(self._read_fields())
            for query, function, arguments in self._quick:
                values.update(zip(query.channels, self._values(query, function, arguments), strict=True))
        except (GpuLost, NoDriver) as error:
            self._lost = True
            raise GpuLost(f"{self.info.name}: {error.what}", remedy="it is tried again every few seconds") from error
        values.update(self._locked)
        if self._devfreq is not None:
            values = {**self._devfreq.read(), **values}
        return Reading(time_ns, tuple(values.get(name, math.nan) for name in CHANNELS))

    def held(self, channel: str) -> Held | None:
        """The age of what `read()` reports for a channel that is not asked at every read; None for the others."""
        if channel == "core_voltage_mv" and self._voltage is not None:
            return self._voltage.held()
        return self._ages.get(channel)

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """The driver's 20 ms samples newer than `since_ns`, oldest first; new ones appear about every 100 ms.

        Raises NotSupported if the driver keeps none, GpuLost when the board is gone.
        """
        return self._buffer.since(since_ns)

    def energy_j(self) -> float:
        """The energy counter, asked now (about 4 ms). Raises NotSupported, GpuLost."""
        return float(self._ask("nvmlDeviceGetTotalEnergyConsumption")) * 1e-3

    def throttled_ns(self) -> Mapping[str, int]:
        """For how long each reason has held the clock back, asked now. Raises GpuLost, SensorError."""
        return read_fields(self._ask, self._throttle_fields)

    def ask_power_w(self, channel: str) -> float:
        """One power channel asked alone, as a measure of what a read costs. Raises NotSupported, GpuLost."""
        field = dict(self._fields).get(channel)
        if field is None:  # an old driver, see _probe_power_usage
            return float(self._ask(POWER_USAGE)) * 1e-3
        answer = self._ask("nvmlDeviceGetFieldValues", [field])[0]
        if answer.nvmlReturn != 0:
            raise self._library.error(answer.nvmlReturn, channel)
        return watts(answer.valueType, answer.value)

    def graphics_clocks_mhz(self) -> Sequence[int]:
        """Supported graphics clocks at the present memory clock (the nearest supported one), ascending."""
        if self._devfreq is not None:
            return self._devfreq.clocks_mhz()
        memory = self.memory_clocks_mhz()
        present = self._ask_or_none("nvmlDeviceGetClockInfo", _MEMORY_CLOCK)
        if not memory or present is None:
            return ()
        nearest = min(memory, key=lambda clock_mhz: abs(clock_mhz - present))
        if nearest not in self._clocks:
            self._clocks[nearest] = self._clock_list("nvmlDeviceGetSupportedGraphicsClocks", nearest)
        return self._clocks[nearest]

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Supported memory clocks, ascending; empty if unknown."""
        if self._memory_clocks is None:
            self._memory_clocks = self._clock_list("nvmlDeviceGetSupportedMemoryClocks")
        return self._memory_clocks

    def base_clock_mhz(self) -> float | None:
        """The default application clock, which is a boost clock where no other lies above it: None then."""
        clock = self._ask_or_none("nvmlDeviceGetDefaultApplicationsClock", _GRAPHICS_CLOCK)
        clock = clock or self._ask_or_none("nvmlDeviceGetClock", _GRAPHICS_CLOCK, _DEFAULT_APPLICATION)
        return float(clock) if clock and clock < max(self.graphics_clocks_mhz(), default=0) else None

    def processes(self) -> Sequence[GpuProcess]:
        """What runs on the board now (about 1 ms). Raises NotSupported, GpuLost."""
        return nvml_processes(self._ask)

    def power_profiles(self) -> PowerProfiles:
        """The workload power profiles now. Raises NotSupported where driver or board has none, GpuLost."""
        return read_power_profiles(self._ask, self._library.structure)

    def note_locks(self, locks_mhz: Mapping[str, float]) -> None:
        """Clocks that are locked by this program, by setting: no driver reports a lock, so the readings show these.

        They stand for the requested clocks in place of application clocks, where the board has that channel.
        """
        self._locked = {
            f"requested_{name}": mhz for name, mhz in locks_mhz.items() if f"requested_{name}" not in self._missing
        }

    def standing(self) -> dict[str, float | None]:
        """Persistence mode (1: on), and application clocks with their defaults in MHz; None where not reported."""
        found = {"persistence_mode": self._ask_or_none("nvmlDeviceGetPersistenceMode")}
        for name, kind in (("graphics_clock_mhz", 0), ("memory_clock_mhz", _MEMORY_CLOCK)):
            found[name] = self._ask_or_none("nvmlDeviceGetApplicationsClock", kind)
            found[f"default_{name}"] = self._ask_or_none("nvmlDeviceGetDefaultApplicationsClock", kind)
        return found

    def why_not_set(self, setting: str) -> str | None:
        """Why this board would refuse a setting, power_limit_w or graphics_clock_mhz for instance, if that is known.

        None if no reason is known; only trying is certain.
        """
        if setting == "workload_power_profile":
            try:
                return None if self.power_profiles().supported else NO_PROFILES
            except NotSupported:
                return NO_PROFILES
        if setting == "power_limit_w":
            limit = self.info.power_limit
            if limit.minimum_w is None or limit.maximum_w is None:
                return "this board does not let its power limit be set"
            return None if limit.minimum_w < limit.maximum_w else "this board has but one power limit"
        if self._slice or self._partitioned:
            return "the board is partitioned (MIG), and its clocks cannot be set then"
        least, words = _LOCKS[setting]
        if (self.info.compute_capability or least) < least and "requested_graphics_clock_mhz" in self._missing:
            return f"{words}, and this board has no application clocks"
        return None

    def close(self) -> None:
        """End the threads. NVML itself stays loaded: other boards may be open."""
        self._stop.set()
        if self._voltage is not None:
            self._voltage.stop()
            self._voltage.join()
        if self._slow_thread is not None:
            self._slow_thread.join(2.0)

    # --- asking -------------------------------------------------------------------------------------------------------

    def _ask(self, function: str, *arguments: Any) -> Any:
        if self._slice and of_the_board(function, arguments):
            raise NotSupported(SLICE)
        return self._library.call(function, self._handle, *arguments)

    def _ask_or_none(self, function: str, *arguments: Any) -> Any:
        """An answer, or None if there is none. Raises GpuLost."""
        try:
            return self._ask(function, *arguments)
        except GpuLost:
            raise
        except SensorError:
            return None

    @property
    def _partitioned(self) -> bool:
        mode = self._ask_or_none("nvmlDeviceGetMigMode")
        return bool(mode and mode[0])

    def _values(self, query: Query, function: str, arguments: tuple[Any, ...]) -> tuple[float, ...]:
        """A query's values, NaN if it failed. Raises GpuLost, NoDriver."""
        try:
            return query.values(self._ask(function, *arguments))
        except (GpuLost, NoDriver):
            raise
        except SensorError:
            return (math.nan,) * len(query.channels)

    def _read_fields(self) -> list[tuple[str, float]]:
        """The power fields in one call; each has a return code of its own. Raises GpuLost, NoDriver."""
        if not self._fields:
            return []
        try:
            answers = self._ask("nvmlDeviceGetFieldValues", [field for _, field in self._fields])
        except (GpuLost, NoDriver):
            raise
        except SensorError:
            return []
        out = []
        for (name, _), answer in zip(self._fields, answers, strict=True):
            if answer.nvmlReturn == 0:
                out.append((name, watts(answer.valueType, answer.value)))
            elif isinstance(error := self._library.error(answer.nvmlReturn, name), GpuLost):
                raise error
        return out

    def _attach_again(self) -> None:
        """After the board was lost or NVML was initialised again: find the board by its UUID. Raises GpuLost."""
        try:
            if self._lost:
                self._library.reopen(self._generation)
            self._handle = self._library.call("nvmlDeviceGetHandleByUUID", self._uuid)
        except SensorError as error:
            self._lost = True
            raise GpuLost(f"{self.info.name}: {error.what}", remedy="it is tried again every few seconds") from error
        self._generation = self._library.generation
        self._lost = False

    def _clock_list(self, function: str, *arguments: Any) -> tuple[int, ...]:
        """A list of clocks, ascending. This query hangs on some boards, so it is given a few seconds."""
        answer = _within(_CLOCKS_TIMEOUT_S, lambda: self._ask_or_none(function, *arguments))
        return tuple(sorted({int(clock) for clock in answer or ()}))

    # --- the slow channels --------------------------------------------------------------------------------------------

    def _start_slow(self) -> None:
        with self._start_lock:
            if self._slow_thread is None and not self._stop.is_set():
                self._slow_thread = threading.Thread(target=self._read_slow, name="slow channels", daemon=True)
                self._slow_thread.start()
                if self._voltage is not None:
                    self._voltage.start()

    def _read_slow(self) -> None:
        due_s = dict.fromkeys(range(len(self._slow)), 0.0)
        while not self._stop.is_set():
            for number, (query, function, arguments) in enumerate(self._slow):
                if time.monotonic() < due_s[number] or self._stop.is_set():
                    continue
                pace_s = max(query.pace_s, SLOW_S)
                due_s[number] = time.monotonic() + pace_s
                asked_ns = self.clock.now_ns()
                try:
                    values = self._values(query, function, arguments)
                except (GpuLost, NoDriver):
                    values = (math.nan,) * len(query.channels)  # the quick channels report that the board is gone
                self._hold(query, values, Held(asked_ns, 2 * pace_s))
            self._stop.wait(max(0.01, min(due_s.values(), default=math.inf) - time.monotonic()) if due_s else None)

    def _hold(self, query: Query, values: Sequence[float], age: Held) -> None:
        """Keep values until the next answer. Their age last: a value is then never older than an age read before it."""
        self._held.update(zip(query.channels, values, strict=True))
        self._ages.update(dict.fromkeys(query.channels, age))

    # --- opening ------------------------------------------------------------------------------------------------------

    def _probe_fields(self) -> None:
        """Find the power fields that this board reports, one by one: old drivers refuse a call with an unknown one."""
        for name, field in POWER_FIELDS.items():
            try:
                answer = self._ask("nvmlDeviceGetFieldValues", [field])[0]
                if answer.nvmlReturn != 0:
                    raise self._library.error(answer.nvmlReturn, name)
                if math.isnan(watts(answer.valueType, answer.value)):
                    raise NotSupported("the driver reports 0 W, which is no measurement")
                self._fields.append((name, field))
            except GpuLost:
                raise
            except SensorError as error:
                self._missing[name] = error.what

    def _probe(self, query: Query) -> None:
        """Find the way of asking that works here, and whether it is quick enough for every read. Raises GpuLost."""
        reason = ""
        for function, arguments in query.ways:
            asked_ns = self.clock.now_ns()
            try:
                values = query.values(self._ask(function, *arguments))
                if all(math.isnan(value) for value in values) and query.pace_s > EVERY_READ_S:
                    raise NotSupported(f"this board does not report it ({function})")
            except GpuLost:
                raise
            except SensorError as error:
                reason = reason or error.what
                continue
            quick = query.pace_s == EVERY_READ_S and self._duration_s(function, arguments) < _TOO_SLOW_S
            (self._quick if quick else self._slow).append((query, function, arguments))
            if not quick:
                self._hold(query, values, Held(asked_ns, 2 * max(query.pace_s, SLOW_S)))
            return
        self._missing.update(dict.fromkeys(query.channels, reason))

    def _duration_s(self, function: str, arguments: tuple[Any, ...]) -> float:
        """The shortest of three calls: the first after a pause may be slower."""
        stamps = [time.perf_counter()]
        for _ in range(3):
            self._ask_or_none(function, *arguments)
            stamps.append(time.perf_counter())
        return min(after - before for before, after in pairwise(stamps))

    def _probe_power_usage(self, capability: tuple[int, int] | None) -> None:
        query = power_usage_query(capability)
        if query.channels[0] in self._missing:
            reason = self._missing.pop(query.channels[0])
            self._probe(query)
            if query.channels[0] in self._missing:
                self._missing[query.channels[0]] = reason

    def _probe_voltage(self) -> None:
        if self._voltage is None:
            self._missing["core_voltage_mv"] = "NVML has no voltage, and nvidia-smi was not asked"
            return
        reason = self._voltage.unavailable()
        if reason is not None:
            self._missing["core_voltage_mv"] = reason
            self._voltage.stop()
            self._voltage = None

    def _describe(self, index: int, capability: tuple[int, int] | None) -> GpuInfo:
        limits = self._ask_or_none("nvmlDeviceGetPowerManagementLimitConstraints")
        memory = self._ask_or_none("nvmlDeviceGetMemoryInfo")
        if self._slice:
            power_source = SLICE
        elif self._buffer.unavailable is None:
            power_source = "the driver's buffer of power samples"
        elif {"power_instant_w", "power_average_w"} <= self._missing.keys():
            rails = "; for the rails of a Jetson: --meter ina" if self._devfreq is not None else ""
            power_source = f"none: NVML reports no power of this board: {self._missing['power_instant_w']}{rails}"
        else:
            polled = "average" if "power_instant_w" in self._missing else "instant"
            power_source = f"{polled} power, polled: {self._buffer.unavailable}"
        if self._partitioned:
            power_source += ", of the whole board with all its MIG slices"
        enforced_w = _watt_or_none(self._ask_or_none("nvmlDeviceGetEnforcedPowerLimit"))
        limits_mw = read_fields(self._ask, answered_fields(self._ask_or_none, LIMITS))
        acting_w = [limit_w for limit_w in (enforced_w, _watt_or_none(limits_mw.get("current"))) if limit_w]
        try:
            driver = _text(self._library.call("nvmlSystemGetDriverVersion"))
        except SensorError:
            driver = ""
        return GpuInfo(
            index=index,
            uuid=self._uuid,
            name=_text(self._ask("nvmlDeviceGetName")),
            source="nvml",
            driver=driver,
            power_limit=PowerLimit(
                minimum_w=limits[0] * 1e-3 if limits else None,
                maximum_w=limits[1] * 1e-3 if limits else None,
                default_w=_watt_or_none(self._ask_or_none("nvmlDeviceGetPowerManagementDefaultLimit")),
                current_w=min(acting_w, default=None),
                set_w=_watt_or_none(self._ask_or_none("nvmlDeviceGetPowerManagementLimit")),
                requested_w=_watt_or_none(limits_mw.get("requested")),
                enforced_w=enforced_w,
            ),
            compute_capability=capability,
            multiprocessors=self._count_multiprocessors(capability),
            memory_mib=memory.total / 2**20 if memory else None,
            power_source=power_source,
        )

    def _count_multiprocessors(self, capability: tuple[int, int] | None) -> int | None:
        """Reported by boards that can be partitioned, else cores over cores per multiprocessor."""
        attributes = self._ask_or_none("nvmlDeviceGetAttributes")
        if attributes is not None and attributes.multiprocessorCount:
            return int(attributes.multiprocessorCount)
        cores = self._ask_or_none("nvmlDeviceGetNumGpuCores")
        each = CORES_PER_MULTIPROCESSOR.get(capability) if capability else None
        return int(cores) // each if cores and each else None


def _text(answer: Any) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)


def _watt_or_none(milliwatt: Any) -> float | None:
    return None if milliwatt is None else milliwatt * 1e-3


def _within(seconds: float, ask: Callable[[], T]) -> T | None:
    """What `ask` returns, or None if it does not return in time; the thread that hangs is left behind."""
    answers: list[T] = []

    def run() -> None:
        try:
            answers.append(ask())
        except SensorError:
            return

    thread = threading.Thread(target=run, name="supported clocks", daemon=True)
    thread.start()
    thread.join(seconds)
    return answers[0] if answers else None


def pci_address(uuid: str, library: NvmlLibrary = LIBRARY) -> str:
    """DOMAIN:BUS:DEVICE.FUNCTION, hexadecimal; empty if the driver does not tell it."""
    try:
        address = library.call("nvmlDeviceGetPciInfo", library.call("nvmlDeviceGetHandleByUUID", uuid)).busId
    except SensorError:
        return ""
    return address.decode("ascii", "replace") if isinstance(address, bytes) else str(address)
