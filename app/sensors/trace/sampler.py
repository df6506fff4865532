"""`Sampler`: one thread per GPU that reads it at even times, drains the driver's power buffer and fills the `Trace`."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..channel import POWER_SAMPLES, Channel, Reading
from ..gpu import Gpu, GpuLost, NotSupported, SensorError, StreamsReadings
from .trace import Trace

if TYPE_CHECKING:
    from ..recorded.writer import Writer

_DRAIN_S = 0.1  # new entries appear in the driver's buffer about this often
_CHECK_S = 1.0  # how often channels are checked for values
_RETRY_S = 3.0  # how often a lost GPU is tried again
_SHORTEST_WALL_S = 0.005  # no sensor refreshes faster, and on a clock faster than the wall's the thread must not spin

_MAY_BE_UNKNOWN = frozenset({"requested_graphics_clock_mhz", "requested_memory_clock_mhz"})  # once nothing is requested

SensorEventKind = Literal["lost", "back", "failed", "recovered"]


@dataclass(frozen=True, slots=True)
class SensorEvent:
    """A change of state, reported once: the GPU went or came back, or a channel (or the reading itself) did."""

    time_ns: int  # on the GPU's clock
    kind: SensorEventKind
    what: str  # the channel's name; "" for the GPU as a whole
    message: str  # one line for the user

    def __str__(self) -> str:
        return self.message


class Sampler:
    """Reads `gpu` every `interval_s` of its clock (5 ms of the wall's at least) into `trace` until stopped.

    A failed read is a row of NaN. Missed deadlines are skipped, never made up for. `on_event` and `recorder` are
    called on the sampler's thread. `backlog_s` also takes what the driver's buffer holds from that long before now.
    With a `duration_s` it stops by itself, so long after it was started on the GPU's clock: where that runs as fast as
    it can be computed, no other thread could stop it in time.
    """

    def __init__(
        self,
        gpu: Gpu,
        trace: Trace,
        *,
        interval_s: float = 0.02,
        on_event: Callable[[SensorEvent], None] | None = None,
        recorder: Writer | None = None,
        backlog_s: float = 0.0,
        duration_s: float = math.inf,
    ) -> None:
        if not 0 < interval_s < math.inf:
            raise ValueError(f"interval_s must be positive and finite, not {interval_s}")
        self.gpu = gpu
        self._stream = gpu if isinstance(gpu, StreamsReadings) else None
        self.read_every(interval_s)
        self.trace = trace
        self._on_event = on_event
        self._recorder = recorder
        self._recording = threading.Lock()  # held while something is written to the recorder
        self._duration_s = duration_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sampler {gpu.info.index}", daemon=True)
        self._failing: set[str] = set()
        self._seen: set[str] = set()  # channels that have had a value at least once
        self._unreadable = ""  # the message of the failure that lasts
        self._buffered = True
        self._newest = self._nothing()
        self._newest_sample_ns = gpu.clock.now_ns() - round(backlog_s * 1e9)

    def start(self) -> None:
        """Begin to read. Once only."""
        self._thread.start()

    def read_every(self, interval_s: float) -> None:
        """Change how often it reads. Any thread may, at any time."""
        self._wanted_s = interval_s
        if self._stream is not None:
            self._stream.stream_every(interval_s)

    @property
    def interval_s(self) -> float:
        """How often it reads, on the GPU's clock as fast as that runs now."""
        speed = self.gpu.clock.speed
        return self._wanted_s if math.isinf(speed) else max(self._wanted_s, _SHORTEST_WALL_S * speed)

    def stop(self) -> None:
        """Ask the thread to end; returns at once."""
        self._stop.set()

    @property
    def running(self) -> bool:
        """It was started and has not ended."""
        return self._thread.is_alive()

    def join(self, timeout_s: float | None = 5.0) -> None:
        """Wait for the thread to end. Safe where it was never started."""
        if self._thread.ident is not None:
            self._thread.join(timeout_s)

    def record(self, recorder: Writer | None) -> None:
        """Write what is read from now on to a recording, None: to none. The one before is not written to afterwards.

        Waits for a write under way.
        """
        with self._recording:
            self._recorder = recorder

    @property
    def recording(self) -> bool:
        """What is read is written to a recording: there is one, and no error has ended it."""
        return self._recorder is not None

    @property
    def lost(self) -> bool:
        """The board does not answer; it is tried again every three seconds."""
        return self._unreadable == "lost"

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        clock = self.gpu.clock
        due_ns = clock.now_ns()
        drain_ns = check_ns = due_ns
        end_ns = due_ns + self._duration_s * 1e9
        while due_ns <= end_ns and not self._stop.is_set():
            pause_s = 0.0
            try:
                for reading in self._read():
                    self._keep(reading)
                reading = self._newest
                if reading.time_ns >= drain_ns:
                    drain_ns = reading.time_ns + round(_DRAIN_S * 1e9)
                    self._drain()
                if reading.time_ns >= check_ns:
                    check_ns = reading.time_ns + round(_CHECK_S * 1e9)
                    self._check(reading)
            except GpuLost as error:
                self._fail("lost", str(error))
                pause_s = _RETRY_S
            except Exception as error:  # noqa: BLE001 - the thread's last line of defence: it reports and goes on
                self._fail(
                    "failed", str(error) if isinstance(error, SensorError) else f"{type(error).__name__}: {error}"
                )
                pause_s = _RETRY_S
            interval_ns = max(1, round(self.interval_s * 1e9))
            due_ns += interval_ns
            late_ns = clock.now_ns() + round(pause_s * 1e9) - due_ns
            if late_ns > 0:
                due_ns += -(-late_ns // interval_ns) * interval_ns
            clock.wait((due_ns - clock.now_ns()) / 1e9, self._stop)
        try:
            self._drain()  # what the last tenth of a second left in the buffer
        except SensorError:
            return

    def _read(self) -> Sequence[Reading]:
        """What is new, mostly one reading; a row of NaN if the read failed. Raises GpuLost."""
        try:
            if self._stream is None:
                readings: Sequence[Reading] = (self.gpu.read(),)
            else:
                readings = self._stream.readings(self._newest.time_ns)
        except GpuLost:
            self.trace.append(self._nothing())
            raise
        except SensorError as error:
            self._fail("failed", str(error))
            return (self._nothing(),)
        if self._unreadable and readings:
            lost, self._unreadable = self._unreadable, ""
            self._report("back" if lost == "lost" else "recovered", "", f"{self.gpu.info.label} answers again")
        return readings

    def _nothing(self) -> Reading:
        return Reading(self.gpu.clock.now_ns(), (math.nan,) * len(self.gpu.channels))

    def _keep(self, reading: Reading) -> None:
        self._newest = reading
        self.trace.append(reading)
        self._record(lambda recorder: recorder.write(reading))

    def _drain(self) -> None:
        """Move what is new in the driver's buffer to the trace."""
        if not self._buffered:
            return
        try:
            samples = self.gpu.power_samples(self._newest_sample_ns)
        except NotSupported:
            self._buffered = False
            return
        except GpuLost:
            raise
        except SensorError as error:
            self._report_failing(POWER_SAMPLES, str(error))
            return
        self._report_recovered(POWER_SAMPLES)
        if not samples:
            return
        self._newest_sample_ns = samples[-1].time_ns
        self.trace.append_power_samples(samples)
        self._record(lambda recorder: recorder.write_power_samples(samples))

    def _record(self, write: Callable[[Writer], None]) -> None:
        """Write to the recording, where there is one; it ends with the first error."""
        try:
            with self._recording:
                if self._recorder is not None:
                    write(self._recorder)
        except OSError as error:
            self._recorder = None
            kept = f"; what was recorded is in {error.filename}" if error.filename else ""
            self._report("failed", "recording", f"the recording ends here: {error.strerror or error}{kept}")

    def _check(self, reading: Reading) -> None:
        """Report once each channel that has no values any more, or has them again."""
        for channel, value in zip(self.gpu.channels, reading.values, strict=True):
            if not channel.available or channel.name in _MAY_BE_UNKNOWN:
                continue
            if not math.isnan(value):
                self._seen.add(channel.name)
                self._report_recovered(channel)
            elif channel.name in self._seen and not self._unreadable:
                self._report_failing(channel, f"{channel.label} is no longer reported")

    def _report_failing(self, channel: Channel, message: str) -> None:
        if channel.name not in self._failing:
            self._failing.add(channel.name)
            self._report("failed", channel.name, message)

    def _report_recovered(self, channel: Channel) -> None:
        if channel.name in self._failing:
            self._failing.discard(channel.name)
            self._report("recovered", channel.name, f"{channel.label} is reported again")

    def _fail(self, kind: Literal["lost", "failed"], message: str) -> None:
        """Report a failure unless it is the one already reported."""
        if self._unreadable != kind:
            self._unreadable = kind
            self._report(kind, "", message)

    def _report(self, kind: SensorEventKind, what: str, message: str) -> None:
        if self._on_event is not None:
            self._on_event(SensorEvent(self.gpu.clock.now_ns(), kind, what, message))
