"""PMT, ASTRON's Power Measurement Toolkit, where its Python package is installed.

`pmt:NAME` or `pmt:NAME:DEVICE` are what its `create` takes. The packages of the same name on PyPI and in GNU Radio are
unrelated: what has no `create`, `joules` and `seconds` is not it.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from types import ModuleType
from typing import Any, Final

from ...base.errors import InputError
from ..gpu import SensorError
from .meter import EnergyCounters, MeterInfo, MeterLost, Samples, Scope, meter_channels

KIND: Final = "pmt"
PERIOD_S: Final = 0.02
_OF_A_BOARD: Final = ("nvml", "nvidia", "rocm", "amdsmi", "powersensor2", "powersensor3", "xilinx")


def seems_installed() -> bool:
    """Whether there is a package of that name; nothing is imported for it."""
    try:
        return importlib.util.find_spec(KIND) is not None
    except (ImportError, ValueError):
        return False


def toolkit() -> ModuleType | None:
    """ASTRON's package; None if it is not installed."""
    try:
        module = importlib.import_module("pmt")
    except Exception:  # noqa: BLE001 - another package of that name may do anything
        return None
    return module if all(callable(getattr(module, name, None)) for name in ("create", "joules", "seconds")) else None


class Pmt:
    """Implements `PowerMeter`."""

    def __init__(self, asked: str) -> None:
        """`asked` is NAME or NAME:DEVICE. Raises InputError and SensorError."""
        name, _, device = asked.partition(":")
        module = toolkit()
        if module is None:
            remedy = "build it with its Python bindings from git.astron.nl/RD/pmt; `pmt` on PyPI is another package"
            raise InputError("ASTRON's Power Measurement Toolkit is not installed", f"--meter {KIND}:{asked}", remedy)
        if not name:
            raise InputError("no meter is named", f"--meter {KIND}:", f"as in {KIND}:rapl or {KIND}:nvml:0")
        self._toolkit = module
        self._arguments: tuple[Any, ...] = (name, *((int(device) if device.isdecimal() else device,) if device else ()))
        self.missed = 0
        self.channels = meter_channels(KIND, f"PMT {name}", ())
        scope: Scope = "board" if name.lower() in _OF_A_BOARD else "host"
        self.info = MeterInfo(KIND, f"PMT {asked}", scope, PERIOD_S, PERIOD_S, poll_s=PERIOD_S)
        self._counters = EnergyCounters(1)
        try:
            self.reopen()
        except MeterLost as error:
            raise SensorError(error.what, error.where, "see whether PMT's own tool reads it") from None

    def read(self) -> Samples:
        try:
            state = self._meter.read()
            energy_j = float(self._toolkit.joules(self._first, state))
            seconds = float(self._toolkit.seconds(self._first, state))
        except Exception as error:  # noqa: BLE001 - whatever its backend raises
            raise MeterLost(f"PMT fails: {error}", self.info.label, "it is tried again") from None
        return self._counters.sample(self._first_ns + round(seconds * 1e9), (energy_j,))

    def reopen(self) -> None:
        self._counters.forget()
        try:
            self._meter = self._toolkit.create(*self._arguments)
            self._first = self._meter.read()
        except Exception as error:  # noqa: BLE001
            raise MeterLost(f"PMT fails: {error}", self.info.label, "name another meter") from None
        self._first_ns = time.monotonic_ns()

    def close(self) -> None:
        self._meter = None
