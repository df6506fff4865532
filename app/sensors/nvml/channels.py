"""Sources of a real NVIDIA board's channels: NVML queries, the driver's power buffer, and nvidia-smi for the voltage.

A query states the NVML call that reports a channel, its unit, and how often it is worth a call. The time stamps of the
driver's buffer of power samples (20 ms each on an H200) are converted from wall-clock to monotonic time.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..channel import PowerSample
from ..gpu import GpuLost, Held, NotSupported, SensorError
from .library import NothingThere

EVERY_READ_S = 0.0
SLOW_S = 1.0  # changes slowly, or a call of milliseconds (the energy counter takes 4 ms on an H200)
SLOWEST_S = 5.0  # PCIe throughput is counted over 20 ms while the caller waits

# nvmlClockType_t and other numbers of nvml.h, which never change
_GRAPHICS, _SM, _MEMORY, _VIDEO = 0, 1, 2, 3
_PCIE_SENT, _PCIE_RECEIVED = 0, 1
_GPU_SENSOR = 0
_UNKNOWN_STATE = 32  # NVML_PSTATE_UNKNOWN

# Field values: channel -> (field, scope, factor to the channel's unit). Read together in one call.
_POWER_AVERAGE, _POWER_INSTANT, _MEMORY_TEMPERATURE = 185, 186, 82
_MODULE_SCOPE, _MEMORY_SCOPE = 1, 2  # NVML_POWER_SCOPE_*; a module is GPU and processor together, as a GH200
POWER_FIELDS: dict[str, tuple[int, int]] = {
    "power_instant_w": (_POWER_INSTANT, 0),
    "power_average_w": (_POWER_AVERAGE, 0),
    "memory_power_w": (_POWER_AVERAGE, _MEMORY_SCOPE),
    "module_power_w": (_POWER_INSTANT, _MODULE_SCOPE),
}

_OF_THE_BOARD = ("Power", "Energy", "Samples")  # in the names of functions


def of_the_board(function: str, arguments: Sequence[Any]) -> bool:
    """Whether the driver answers for a MIG slice with the whole board's watts, joules or limits, or time under them."""
    is_power = any(word in function for word in _OF_THE_BOARD)
    return is_power or (function == "nvmlDeviceGetFieldValues" and arguments[0] != [_MEMORY_TEMPERATURE])


# nvmlValueType_t -> member of the nvmlValue_t union
_UNION_MEMBER = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


def union_number(value_type: int, value: Any) -> float:
    """The number in an nvmlValue_t; NaN for a type that we do not know."""
    return float(getattr(value, _UNION_MEMBER[value_type])) if 0 <= value_type < len(_UNION_MEMBER) else math.nan


def watts(value_type: int, value: Any) -> float:
    """A power in mW as W. No powered board draws exactly nothing: a zero is a sensor that is not there."""
    return union_number(value_type, value) * 1e-3 or math.nan


@dataclass(frozen=True, slots=True)
class Query:
    """A call for one or more channels. `ways` are tried in order when a board is opened; the first to work counts."""

    channels: tuple[str, ...]
    ways: tuple[tuple[str, tuple[Any, ...]], ...]  # (NVML function, arguments after the handle)
    values: Callable[[Any], tuple[float, ...]]
    pace_s: float


def _as_it_is(answer: Any) -> tuple[float, ...]:
    return (float(answer),)


def _from_milli(answer: Any) -> tuple[float, ...]:
    return (answer * 1e-3,)


def _state(answer: Any) -> tuple[float, ...]:
    return (math.nan if answer == _UNKNOWN_STATE else float(answer),)


def _utilisation(answer: Any) -> tuple[float, ...]:
    return float(answer.gpu), float(answer.memory)


def _memory_used(answer: Any) -> tuple[float, ...]:
    return (answer.used / 2**20,)


def _first_field(answer: Any) -> tuple[float, ...]:
    """A single field value. Its own return code is checked: a failed field is NaN."""
    field = answer[0]
    return (union_number(field.valueType, field.value) if field.nvmlReturn == 0 else math.nan,)


def _one(
    channel: str,
    function: str,
    *arguments: Any,
    values: Callable[[Any], tuple[float, ...]] = _as_it_is,
    pace_s: float = SLOW_S,
    other: str | None = None,
) -> Query:
    ways = ((function, arguments), (other, arguments)) if other else ((function, arguments),)
    return Query((channel,), ways, values, pace_s)


QUERIES: tuple[Query, ...] = (
    _one("graphics_clock_mhz", "nvmlDeviceGetClockInfo", _GRAPHICS, pace_s=EVERY_READ_S),
    _one("sm_clock_mhz", "nvmlDeviceGetClockInfo", _SM, pace_s=EVERY_READ_S),
    _one("memory_clock_mhz", "nvmlDeviceGetClockInfo", _MEMORY, pace_s=EVERY_READ_S),
    _one(
        "event_reasons",
        "nvmlDeviceGetCurrentClocksEventReasons",
        other="nvmlDeviceGetCurrentClocksThrottleReasons",
        pace_s=EVERY_READ_S,
    ),
    Query(
        ("utilisation_percent", "memory_utilisation_percent"),
        (("nvmlDeviceGetUtilizationRates", ()),),
        _utilisation,
        EVERY_READ_S,
    ),
    _one("performance_state", "nvmlDeviceGetPerformanceState", values=_state, pace_s=EVERY_READ_S),
    _one("temperature_c", "nvmlDeviceGetTemperatureV", _GPU_SENSOR, other="nvmlDeviceGetTemperature"),
    _one("memory_temperature_c", "nvmlDeviceGetFieldValues", [_MEMORY_TEMPERATURE], values=_first_field),
    _one(
        "power_limit_w",
        "nvmlDeviceGetEnforcedPowerLimit",
        other="nvmlDeviceGetPowerManagementLimit",
        values=_from_milli,
    ),
    _one("energy_j", "nvmlDeviceGetTotalEnergyConsumption", values=_from_milli),
    _one("video_clock_mhz", "nvmlDeviceGetClockInfo", _VIDEO),
    _one("requested_graphics_clock_mhz", "nvmlDeviceGetApplicationsClock", _GRAPHICS),
    _one("requested_memory_clock_mhz", "nvmlDeviceGetApplicationsClock", _MEMORY),
    _one("memory_used_mib", "nvmlDeviceGetMemoryInfo", values=_memory_used),
    _one("fan_percent", "nvmlDeviceGetFanSpeed"),
    _one("pcie_rx_mb_per_s", "nvmlDeviceGetPcieThroughput", _PCIE_RECEIVED, values=_from_milli, pace_s=SLOWEST_S),
    _one("pcie_tx_mb_per_s", "nvmlDeviceGetPcieThroughput", _PCIE_SENT, values=_from_milli, pace_s=SLOWEST_S),
)

# Where the driver lacks the power fields, nvmlDeviceGetPowerUsage is one or the other by generation
# [Yang2024]: a 1 s average on GA10x, Ada and Hopper, instant before and on GA100.
POWER_USAGE = "nvmlDeviceGetPowerUsage"


def power_usage_query(compute_capability: tuple[int, int] | None) -> Query:
    """What nvmlDeviceGetPowerUsage reports on a board of that compute capability."""
    averaged = compute_capability is not None and compute_capability > (8, 0)
    channel = "power_average_w" if averaged else "power_instant_w"
    return _one(channel, POWER_USAGE, values=_from_milli, pace_s=EVERY_READ_S)


# Cores per multiprocessor by compute capability (CUDA C++ Programming Guide, arithmetic throughput of FP32)
CORES_PER_MULTIPROCESSOR: dict[tuple[int, int], int] = {
    (3, 5): 192, (3, 7): 192, (5, 0): 128, (5, 2): 128, (6, 0): 64, (6, 1): 128, (7, 0): 64, (7, 5): 64,
    (8, 0): 64, (8, 6): 128, (8, 9): 128, (9, 0): 128, (10, 0): 128, (12, 0): 128,
}  # fmt: skip


_TOTAL_POWER_SAMPLES = 0  # NVML_TOTAL_POWER_SAMPLES
_KEPT_SAMPLES = 512  # the driver holds 119 on an H200
_CLOCK_STEP_NS = 500_000_000  # beyond this the wall clock was set, not slewed

Ask = Callable[..., Any]  # (NVML function, arguments after the handle) -> answer; raises SensorError


class PowerBuffer:
    """`unavailable` says why there is none. A sample keeps the time it was first given: all callers see the same."""

    def __init__(self, ask: Ask) -> None:
        """Asks once. Raises GpuLost."""
        self._ask = ask
        self._lock = threading.Lock()
        self._samples: deque[PowerSample] = deque(maxlen=_KEPT_SAMPLES)
        self._last_stamp_us = 0
        self._offset_ns = wall_minus_monotonic_ns()
        self.unavailable: str | None = None
        try:
            self._drain()
        except GpuLost:
            raise
        except SensorError as error:
            self.unavailable = f"the driver keeps no power samples: {error.what}"

    def since(self, since_ns: int) -> Sequence[PowerSample]:
        """Samples newer than a monotonic time, oldest first. Raises NotSupported, GpuLost, SensorError."""
        if self.unavailable is not None:
            raise NotSupported(self.unavailable)
        with self._lock:
            self._drain()
            return [sample for sample in self._samples if sample.time_ns > since_ns]

    def _drain(self) -> None:
        """Copy what is new. The offset between the clocks is measured at every drain, since it drifts."""
        offset_ns = wall_minus_monotonic_ns()
        if abs(offset_ns - self._offset_ns) > _CLOCK_STEP_NS:
            self._last_stamp_us = 0  # stamps have started again; known samples are recognised by their monotonic time
        self._offset_ns = offset_ns
        try:
            value_type, entries = self._ask("nvmlDeviceGetSamples", _TOTAL_POWER_SAMPLES, self._last_stamp_us)
        except NothingThere:
            return
        newest_ns = self._samples[-1].time_ns if self._samples else 0
        for entry in sorted(entries, key=lambda entry: int(entry.timeStamp)):
            self._last_stamp_us = max(self._last_stamp_us, int(entry.timeStamp))
            time_ns = int(entry.timeStamp) * 1000 - offset_ns
            power_w = watts(value_type, entry.sampleValue)
            if time_ns > newest_ns and not math.isnan(power_w):
                newest_ns = time_ns
                self._samples.append(PowerSample(time_ns, power_w))


def wall_minus_monotonic_ns() -> int:
    """The wall clock's lead over the monotonic one, from the tightest of three looks at both."""
    tightest, lead_ns = math.inf, 0
    for _ in range(3):
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        if after - before < tightest:
            tightest, lead_ns = after - before, wall - (before + after) // 2
    return lead_ns


MODULES = Path("/proc/driver/nvidia/version")
_PERIOD_S = 1.0  # never more often
_DUTY = 20  # and never more than a twentieth of the time: on some boards one call takes a second
_TIMEOUT_S = 5.0
_LONGEST_ANSWER = 100_000  # characters
_LINE = re.compile(r"^\s*Graphics\s*:\s*(.+?)\s*$", re.MULTILINE)
_MILLIVOLT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*mV")

AskVoltage = Callable[[str], str]  # a UUID -> nvidia-smi's answer; raises OSError or subprocess.SubprocessError


def ask_nvidia_smi(uuid: str) -> str:
    """What `nvidia-smi -q -d VOLTAGE` prints for one board. Raises OSError and subprocess.SubprocessError."""
    program = shutil.which("nvidia-smi")
    if program is None:
        raise FileNotFoundError("nvidia-smi is not installed")
    done = subprocess.run(
        [program, "-q", "-d", "VOLTAGE", "-i", uuid],
        capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout[:_LONGEST_ANSWER]


def parse_voltage_mv(answer: str) -> float | None:
    """The graphics voltage in mV from nvidia-smi's answer; None if the board does not report it."""
    line = _LINE.search(answer)
    match = _MILLIVOLT.fullmatch(line.group(1)) if line else None
    value = float(match.group(1)) if match else 0.0
    return value or None


class VoltageReader:
    """Asks once when made, then about once a second after `start()`. Thread-safe; no call here ever blocks for long."""

    def __init__(self, uuid: str, ask: AskVoltage = ask_nvidia_smi) -> None:
        self._uuid = uuid
        self._ask = ask
        self._value_mv = math.nan
        self._held = Held(time.monotonic_ns(), _PERIOD_S)
        self._unavailable: str | None = "nvidia-smi has not answered yet"
        self._answered = threading.Event()
        self._wanted = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="core voltage", daemon=True)
        self._thread.start()

    def unavailable(self, timeout_s: float = 2.0) -> str | None:
        """Why there is no voltage, or None; waits at most that long for nvidia-smi's first answer."""
        if not self._answered.wait(timeout_s):
            self.stop()  # a program so slow is not asked again
            return f"nvidia-smi did not answer within {timeout_s:g} s"
        return self._unavailable

    def start(self) -> None:
        """Continue to ask, about once a second."""
        self._wanted.set()

    def latest_mv(self) -> float:
        """The newest voltage in mV; NaN if there is none. Costs nothing."""
        return self._value_mv

    def held(self) -> Held:
        """The age of `latest_mv()`, on the host's monotonic clock. Ask before it: the value is then at least as new."""
        return self._held

    def stop(self) -> None:
        """Ask no more. A call under way ends by itself."""
        self._stop.set()
        self._wanted.set()

    def join(self, timeout_s: float = _TIMEOUT_S + 1) -> None:
        """Wait for the thread to end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        pause_s = self._ask_once()
        self._answered.set()
        if self._unavailable is not None:
            return
        self._wanted.wait()
        while not self._stop.wait(pause_s):
            pause_s = self._ask_once()

    def _ask_once(self) -> float:
        """Ask, keep the answer, and give the seconds to wait before the next question."""
        begin_ns = time.monotonic_ns()
        try:
            value = parse_voltage_mv(self._ask(self._uuid))
            is_open = MODULES.is_file() and "Open Kernel Module" in MODULES.read_text("utf-8", "replace")
            where = "with the open kernel modules" if is_open else "here"
            self._unavailable = (
                None if value is not None else f"NVML has no voltage and nvidia-smi reports none {where}"
            )
        except (OSError, subprocess.SubprocessError) as error:
            value = None
            reason = "it failed" if isinstance(error, subprocess.SubprocessError) else str(error)
            self._unavailable = f"NVML has no voltage, and nvidia-smi cannot be asked: {reason}"
        took_s = (time.monotonic_ns() - begin_ns) / 1e9
        pause_s = max(_PERIOD_S, _DUTY * took_s)
        self._value_mv = math.nan if value is None else value
        self._held = Held(begin_ns, pause_s + 2 * took_s)  # after the value, see `held`
        return pause_s
