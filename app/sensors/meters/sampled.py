"""`SampledMeter`: an open meter with its record and the thread that fills it, through unplugging and back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from ..errors import SensorError
from ..sampler import SensorEvent
from .meter import MeterLost, PowerMeter
from .record import MeterRecord

RETRY_S: Final = 1.0  # between looks for a meter that was lost


class SampledMeter:
    """A meter that is read from now on. It owns the meter. `on_event` is called on its thread, once per change."""

    def __init__(self, meter: PowerMeter, on_event: Callable[[SensorEvent], None] | None = None) -> None:
        self.meter = meter
        self.info = meter.info
        self.channels = meter.channels
        self.record = MeterRecord(meter.info, meter.channels)
        self.lost = False
        self._on_event = on_event
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"meter {meter.info.kind}", daemon=True)
        if not meter.info.on_demand:
            self._thread.start()

    def wait_until(self, time_ns: int, patience_s: float) -> bool:
        """Wait for samples up to a time on the meter's clock that has passed; False where they do not come."""
        if self.info.on_demand:
            self.record.add(self.meter.read())
            return self.record.newest_ns >= time_ns - round(self.info.period_s * 1e9)
        deadline = time.monotonic() + patience_s
        while self.record.newest_ns < time_ns:
            if time.monotonic() > deadline or not self._thread.is_alive():
                return False
            time.sleep(0.002)
        return True

    def close(self) -> None:
        """Stop reading and close the meter. Safe to call twice."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()
        self.meter.close()

    # --- on the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stop.is_set():
            try:
                self.record.add(self.meter.read())
            except SensorError as error:
                self._lose(error)
                if not self._find_again():
                    return
                due = time.monotonic()
            except Exception as error:  # noqa: BLE001 - the thread's last line of defence: it reports and goes on
                self._lose(MeterLost(f"{type(error).__name__}: {error}", self.info.label))
                if not self._find_again():
                    return
            due = max(due + self.info.poll_s, time.monotonic())
            self._stop.wait(max(0.0, due - time.monotonic()) or self.info.poll_s)

    def _lose(self, error: SensorError) -> None:
        self.lost = True
        now_ns = time.monotonic_ns()
        self.record.gap(now_ns)
        self._report(SensorEvent(now_ns, "lost", self.info.kind, str(error)))

    def _find_again(self) -> bool:
        """Try once a second; False once it is to stop."""
        while not self._stop.wait(RETRY_S):
            try:
                self.meter.reopen()
            except Exception:  # noqa: BLE001 - it is not back yet, whatever is in its place
                continue
            if self.meter.channels != self.channels:
                self.meter.close()
                continue  # another device is in its place
            self.lost = False
            self._report(SensorEvent(time.monotonic_ns(), "back", self.info.kind, f"{self.info.label} answers again"))
            return True
        return False

    def _report(self, event: SensorEvent) -> None:
        if self._on_event is not None:
            self._on_event(event)
