"""`SimulatedGpu`: a board that does not exist, seen through sensors like a real one's. All it reports is simulated.

The hardware counters of a simulated board: what the formulas of a kernel's cost count, by the names of a profiler.

The truth is the formula itself: device memory moves Q = `traffic_byte`, of which the output is written; instructions
and the bytes of caches and shared memory are those whose time and energy the board is charged for (`laws`). What no
formula counts is left out, never guessed.
"""

from __future__ import annotations

import dataclasses
import math
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Final

from ...base.errors import PermissionRefused
from ..channel import CHANNELS, Channel, PowerSample, Reading, channel
from ..clock import Clock, HostClock
from ..gpu import Counts, Execution, GpuInfo, GpuProcess, Load, NotSupported, PowerLimit, SensorError
from ..service import Argument, Served, ServiceLoad
from ..throttling import COUNTED
from . import laws
from .physics import Physics
from .sensor import BufferedPower, EnergyCounter, PolledPower
from .serving import SimulatedService
from .twin import Twin, noise_seed

_SECTOR_BYTE: Final = 32.0
_WAVEFRONT_BYTE: Final = 128.0
_SHARED: Final = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op"
_GLOBAL: Final = "l1tex__t_{}_pipe_lsu_mem_global_op_{}.sum"
_USED: Final = "smsp__sass_average_data_bytes_per_sector_mem_global_op_{}.pct"


def metrics_of(twin: Twin, load: Load, clock_mhz: float, memory_clock_mhz: int, limit_w: float) -> dict[str, float]:
    """Metrics of one launch in base units, by Nsight Compute's names, under clocks and a limit in force.

    Raises NotSupported for a precision the board lacks.
    """
    point, _, _ = laws.settled_under_limits(twin, load, clock_mhz, memory_clock_mhz, limit_w)
    time_s = point.launch_s - twin.rate.launch_overhead_us * 1e-6
    result = {
        "gpu__time_duration.sum": time_s,
        "sm__warps_active.avg.pct_of_peak_sustained_active": 100.0 * load.occupancy,
        "dram__bytes.sum": load.traffic_byte,
        "dram__throughput.avg.pct_of_peak_sustained_elapsed": 100.0 * _bandwidth_share(twin, load, time_s),
    }
    if load.work_flop:  # the time that it would not take if device memory were never waited for
        unbound, _ = laws.launch_time_s(
            twin, dataclasses.replace(load, traffic_byte=0.0), point.clock_mhz, memory_clock_mhz
        )
        waited = 1.0 - (unbound - twin.rate.launch_overhead_us * 1e-6) / time_s
        result["smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct"] = 100.0 * max(0.0, waited)
    if load.counts is None:
        return result
    counts = load.counts
    read_byte = max(0.0, load.traffic_byte - counts.written_byte)
    per_multiprocessor = time_s * point.clock_mhz * 1e6 * twin.board.multiprocessors
    sums = {
        "dram__bytes_read.sum": read_byte,
        "dram__bytes_write.sum": counts.written_byte,
        "lts__t_sectors_op_read.sum": counts.l2_read_byte / _SECTOR_BYTE,
        f"{_SHARED}_ld.sum": counts.shared_load_byte / _WAVEFRONT_BYTE,
    }
    return {
        **result,
        **sums,
        **_of_global_memory(counts, time_s),
        **{f"{name}.per_second": value / time_s for name, value in sums.items()},
        "lts__t_sectors_srcunit_tex_op_read.sum.per_second": counts.l2_read_byte / _SECTOR_BYTE / time_s,
        "lts__t_sector_op_read_hit_rate.pct": 100.0 * max(0.0, 1.0 - read_byte / max(counts.l2_read_byte, read_byte)),
        f"{_SHARED}_st.sum": counts.shared_store_byte / _WAVEFRONT_BYTE,
        "smsp__inst_executed.sum": counts.instructions,
        "smsp__inst_issued.sum": counts.instructions,  # no formula repeats one
        "sm__inst_executed.avg.per_cycle_active": counts.instructions / per_multiprocessor,
        "sm__inst_issued.avg.per_cycle_active": counts.instructions / per_multiprocessor,
    }


def _of_global_memory(counts: Counts, time_s: float) -> dict[str, float]:
    """What loads and stores of global memory count, without what the kernel's formulas do not tell."""
    metrics = {"smsp__inst_executed_pipe_lsu.sum": counts.loads_and_stores}
    moved = {"ld": (counts.loaded_byte, counts.wanted_byte), "st": (counts.stored_byte, counts.stored_byte)}
    for operation, (byte, wanted) in moved.items():
        metrics[_GLOBAL.format("sectors", operation)] = byte / _SECTOR_BYTE
        metrics[_GLOBAL.format("bytes", operation) + ".per_second"] = byte / time_s
        metrics[_USED.format(operation)] = 100.0 * wanted / byte
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


def _bandwidth_share(twin: Twin, load: Load, time_s: float) -> float:
    """Of the board's nominal bandwidth, 0..1."""
    return min(1.0, load.traffic_byte / time_s / (twin.rate.bandwidth_gb_s * 1e9))


_MOVING_S: Final = 0.02  # between looks at a clock that a limit moves, while a service runs
_UTILISATION_NS: Final = 200_000_000  # NVML averages it over 1/6 s to 1 s, depending on the board
_NOT_SIMULATED: Final = (
    "video_clock_mhz",
    "junction_temperature_c",
    "memory_temperature_c",
    "memory_used_mib",
    "fan_percent",
    "pcie_rx_mb_per_s",
    "pcie_tx_mb_per_s",
)


class SimulatedGpu:
    """Implements `Gpu`, `SettableGpu` and `ServesLoad`, and runs loads. Thread-safe.

    The same seed gives the same readings.
    """

    def __init__(self, twin: Twin, *, seed: int = 0, clock: Clock | None = None, index: int = 0) -> None:
        self.twin = twin
        self.clock: Clock = clock if clock is not None else HostClock()
        self.limits = twin.limits
        self.channels: tuple[Channel, ...] = tuple(channel(name, self._lacks(name)) for name in CHANNELS)
        self.info = self._describe(index)
        self._lock = threading.Lock()
        self._physics = Physics(twin, self.clock.now_ns())
        sensors = twin.sensors
        self.seed = seed
        seed = noise_seed(seed, twin.key)
        self._instant = PolledPower(sensors.instant, sensors, seed, 1) if sensors.instant else None
        self._average = PolledPower(sensors.average, sensors, seed, 2) if sensors.average else None
        self._memory = PolledPower(sensors.memory, sensors, seed, 3, memory=True) if sensors.memory else None
        self._buffer = BufferedPower(sensors.buffer, sensors, seed, 4) if sensors.buffer else None
        self._counter = EnergyCounter(sensors, seed, 5) if sensors.counter_refresh_ms else None
        self._service: SimulatedService | None = None
        self.service_assumptions = "" if twin.service is None else twin.service.assumed

    # --- looking ----------------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """All channels now; NaN if this board does not report one."""
        with self._lock:
            now_ns = self._now()
            physics, nan = self._physics, math.nan
            history = physics.history
            _, _, busy, memory_busy = history.means(now_ns - _UTILISATION_NS, now_ns)
            clock, memory_clock = float(physics.clock_mhz), float(physics.memory_clock_mhz)
            values = {
                "power_instant_w": self._instant.value_w(history, now_ns) if self._instant else nan,
                "power_average_w": self._average.value_w(history, now_ns) if self._average else nan,
                "memory_power_w": self._memory.value_w(history, now_ns) if self._memory else nan,
                "power_limit_w": physics.limit_w,
                "energy_j": self._counter.value_j(history, now_ns) if self._counter else nan,
                "graphics_clock_mhz": clock,
                "sm_clock_mhz": clock,
                "memory_clock_mhz": memory_clock,
                "requested_graphics_clock_mhz": self._requested_mhz(),
                "requested_memory_clock_mhz": (
                    nan if physics.locked_memory_mhz is None else float(physics.locked_memory_mhz)
                ),
                "core_voltage_mv": self._core_voltage_mv(),
                "temperature_c": float(round(physics.temperature_c(now_ns))),
                "utilisation_percent": float(round(100 * busy)),
                "memory_utilisation_percent": float(round(100 * memory_busy)),
                "performance_state": 8.0 if memory_clock < self.twin.clocks.memory_mhz[-1] and physics.at_rest else 0.0,
                "event_reasons": float(physics.reasons),
            }
            return Reading(now_ns, tuple(values.get(described.name, nan) for described in self.channels))

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """The driver's samples newer than `since_ns`, oldest first. Raises NotSupported if there is no buffer."""
        if self._buffer is None:
            raise NotSupported("this board's driver has no power sample buffer", self.info.label)
        with self._lock:
            now_ns = self._now()
            return self._buffer.samples(self._physics.history, since_ns, now_ns)

    def energy_j(self) -> float:
        """The energy counter since the board was opened. Raises NotSupported if there is none."""
        if self._counter is None:
            raise NotSupported("this board has no energy counter", self.info.label)
        with self._lock:
            now_ns = self._now()
            return self._counter.value_j(self._physics.history, now_ns)

    def drawn_j(self, time_ns: int) -> float:
        """The energy that it has drawn by a time of its last seconds, as a meter in its supply would count it."""
        with self._lock:
            self._now()
            return self._physics.history.energy_j(time_ns)

    def throttled_ns(self) -> Mapping[str, int]:
        """For how long each limit that is simulated has held the clock back, exactly."""
        with self._lock:
            now_ns = self._now()
            return {name: self._physics.throttled_ns(COUNTED[name], now_ns) for name in ("power", "thermal")}

    def graphics_clocks_mhz(self) -> Sequence[int]:
        """Supported graphics clocks, ascending."""
        return self.twin.clocks.graphics_mhz

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Supported memory clocks, ascending."""
        return self.twin.clocks.memory_mhz

    def processes(self) -> Sequence[GpuProcess]:
        """The load that runs, as one process: this one. Its memory is not simulated."""
        with self._lock:
            self._now()
            load = self._physics.load
        return [] if load is None else [GpuProcess(os.getpid(), f"{load.name} (simulated)", math.nan, "compute")]

    def close(self) -> None:
        """Nothing to release."""

    # --- running ----------------------------------------------------------------------------------------------------

    @property
    def busy(self) -> bool:
        with self._lock:
            self._now()
            return self._physics.busy

    def begin(self, load: Load) -> None:
        """Start back-to-back launches of `load` and return at once.

        Raises SensorError while something runs, NotSupported for a precision the board lacks.
        """
        with self._lock:
            now_ns = self._now()
            if self._physics.busy:
                raise SensorError("the simulated GPU runs something already", self.info.label, "end it first")
            self._physics.begin(load, now_ns)

    def end(self) -> Execution:
        """Let the launch that runs now be the last, wait for it, and return how long launches took.

        Raises SensorError when nothing runs.
        """
        with self._lock:
            now_ns = self._now()
            if not self._physics.busy or self._physics.ending:
                raise SensorError("nothing to end on the simulated GPU", self.info.label, "begin something first")
            self._physics.end(now_ns)
        while True:
            with self._lock:
                now_ns = self._now()
                left_s = self._physics.seconds_to_finish(now_ns)
                if left_s == 0.0:
                    return self._physics.execution
            self.clock.wait(left_s)

    def profile(self, load: Load) -> dict[str, float]:
        """The hardware counters of one launch, as `counters` has them, under the clocks and the limit in force.

        Raises NotSupported for a precision the board lacks.
        """
        clocks = self.twin.clocks
        with self._lock:
            self._now()
            clock_mhz = self._physics.locked_mhz or clocks.graphics_mhz[-1]
            memory_mhz = self._physics.locked_memory_mhz or clocks.memory_mhz[-1]
            limit_w = self._physics.limit_w
        return metrics_of(self.twin, load, clock_mhz, memory_mhz, limit_w)

    # --- serving ----------------------------------------------------------------------------------------------------

    def start_service(self, arguments: Mapping[str, Argument]) -> None:
        """(Re)start the service of this board's model. Raises NotSupported if there is none, or of another kind.

        Of the server's arguments it knows how many sequences are answered at once, as `serving.PLACES` names them.
        """
        self.stop_service()
        self._service = SimulatedService(self.twin, self.seed, arguments)
        self.clock.wait(self._service.start_s)

    def serve(self, load: ServiceLoad, seconds: float) -> Served:
        """Serve that load for so long on the board's clock. Raises SensorError while no service runs."""
        service = self._service
        if service is None:
            raise SensorError("no service runs on the simulated GPU", self.info.label, "start it first")
        with self._lock:
            start_ns = self._now()
            if self._physics.busy and not self._physics.serving:
                raise SensorError("the simulated GPU runs something already", self.info.label, "end it first")
            service.begin(load, start_ns)
        end_ns = start_ns + round(seconds * 1e9)
        while True:
            with self._lock:
                now_ns = self._now()
                event_s = service.advance(now_ns, self._physics.clock_mhz, self._physics.memory_clock_mhz)
                self._physics.serve(service.doing, now_ns)
                moving = self._physics.moving
            if now_ns >= end_ns:
                return service.served(start_ns, now_ns)
            wait_s = min(event_s, (end_ns - now_ns) / 1e9)
            self.clock.wait(max(1e-9, min(wait_s, _MOVING_S) if moving else wait_s))

    def stop_service(self) -> None:
        """End it, and the requests under way with it. Safe to call twice."""
        with self._lock:
            if self._service is not None:
                self._physics.serve(None, self._now())
                self._service = None

    # --- setting ----------------------------------------------------------------------------------------------------

    def lock_graphics_clock(self, clock_mhz: int | None) -> None:
        """Lock the graphics clock to a supported one, or to the nearest below; None unlocks.

        On a board that has application clocks instead, set those: they hold while work runs. Raises NotSupported on
        a board that has neither, PermissionRefused out of range.
        """
        if not self.twin.clocks.settable:
            raise NotSupported("this board cannot lock clocks", self.info.label, "that needs Volta or newer")
        locked = None if clock_mhz is None else self._within(clock_mhz, self.twin.clocks.graphics_mhz, "graphics")
        with self._lock:
            self._physics.lock_graphics(locked, self._now())

    def lock_memory_clock(self, clock_mhz: int | None) -> None:
        """Lock the memory clock to a supported one, or to the nearest below; None unlocks.

        Raises NotSupported on boards older than Ampere, PermissionRefused out of range.
        """
        if not self.twin.clocks.memory_lockable:
            raise NotSupported("this board cannot lock memory clocks", self.info.label, "that needs Ampere or newer")
        locked = None if clock_mhz is None else self._within(clock_mhz, self.twin.clocks.memory_mhz, "memory")
        with self._lock:
            self._physics.lock_memory(locked, self._now())

    def why_not_set(self, setting: str) -> str | None:
        """Why this board refuses a setting; None if it does not."""
        clocks = self.twin.clocks
        if setting == "workload_power_profile":
            return "simulated boards have no workload power profiles"
        if setting == "memory_clock_mhz" and not clocks.memory_lockable:
            return "locked memory clocks need Ampere or newer"
        if setting == "graphics_clock_mhz" and not clocks.settable:
            return "locked clocks need Volta or newer, and this board has no application clocks"
        return None

    def set_power_limit(self, limit_w: float | None) -> None:
        """Set the power limit in W; None sets the default. Raises PermissionRefused out of range."""
        wanted = self.twin.power.limit_default_w if limit_w is None else float(limit_w)
        self.twin.require_limit(wanted)
        with self._lock:
            self._physics.set_limit(wanted, self._now())
            limit = dataclasses.replace(self.info.power_limit, current_w=wanted)
            self.info = dataclasses.replace(self.info, power_limit=limit)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _now(self) -> int:
        """The physics brought up to the present. Call with the lock held."""
        now_ns = self.clock.now_ns()
        self._physics.advance(now_ns)
        return now_ns

    def _requested_mhz(self) -> float:
        """The locked clock, NaN if none is; on a board with application clocks the one that work gets."""
        locked_mhz = self._physics.locked_mhz
        if locked_mhz is None and not self.twin.clocks.lockable and self.twin.clocks.application_clocks:
            locked_mhz = self.twin.clocks.graphics_mhz[-1]
        return math.nan if locked_mhz is None else float(locked_mhz)

    def _core_voltage_mv(self) -> float:
        """As `nvidia-smi -q -d VOLTAGE` reports it on some boards."""
        floor_mv = self.twin.voltage.floor_mv
        if not floor_mv:
            return math.nan
        return round(floor_mv * laws.relative_voltage(self.twin, self._physics.clock_mhz), 3)

    def _within(self, clock_mhz: float, supported: tuple[int, ...], which: str) -> int:
        if not supported[0] <= clock_mhz <= supported[-1]:
            raise PermissionRefused(
                f"a {which} clock of {clock_mhz:g} MHz is out of range",
                self.info.label,
                f"choose {supported[0]} to {supported[-1]} MHz",
            )
        return max(clock for clock in supported if clock <= clock_mhz)

    def _lacks(self, name: str) -> str | None:
        """Why this board does not report a channel; None if it does."""
        twin = self.twin
        lacking = {
            "power_instant_w": (twin.sensors.instant is None, "this board reports average power only"),
            "power_average_w": (twin.sensors.average is None, "this board reports instant power only"),
            "memory_power_w": (twin.sensors.memory is None, "only Hopper and newer boards report it"),
            "energy_j": (not twin.sensors.counter_refresh_ms, "this board has no energy counter"),
            "requested_graphics_clock_mhz": (not twin.clocks.settable, "this board cannot lock clocks"),
            "requested_memory_clock_mhz": (not twin.clocks.memory_lockable, "this board cannot lock memory clocks"),
            "core_voltage_mv": (not twin.voltage.floor_mv, "this board's driver does not report it"),
        }
        if name in _NOT_SIMULATED:
            return "not simulated"
        lacks, reason = lacking.get(name, (False, ""))
        return reason if lacks else None

    def _describe(self, index: int) -> GpuInfo:
        twin, power, sensors = self.twin, self.twin.power, self.twin.sensors
        if sensors.buffer is not None:
            source = f"driver buffer ({sensors.buffer.sample_ms:g} ms samples)"
        else:
            kind, sensor = ("instant", sensors.instant) if sensors.instant else ("average", sensors.average)
            assert sensor is not None
            source = f"power {kind}, polled (new every {sensor.refresh_ms:g} ms, mean of {sensor.window_ms:g} ms)"
        return GpuInfo(
            index=index,
            uuid=f"simulated:{twin.key}",
            name=twin.name,
            source="simulated",
            driver="simulated",
            power_limit=PowerLimit(
                power.limit_minimum_w, power.limit_maximum_w, power.limit_default_w, power.limit_default_w
            ),
            compute_capability=twin.board.compute_capability,
            multiprocessors=twin.board.multiprocessors,
            memory_mib=twin.board.memory_mib,
            power_source=source,
        )
