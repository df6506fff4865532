"""The monitors of TI's INA family that a computer's own board has on its supply rails, as every Jetson does.

Linux shows them through hwmon (INA3221: volts and amperes of three rails; INA238 and others: watts of one), and the
kernels of JetPack 4 and older through iio. What a rail feeds is known from its name alone. On boards with a rail in
front of the module, such as `VDD_IN`, that one is the total; elsewhere it is the sum of rails, which is not the module.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from ...base.errors import InputError
from ..gpu import SensorError
from .meter import MeterInfo, MeterLost, Samples, Scope, meter_channels

KIND: Final = "ina"
SYSFS: Final = Path("/sys")
PERIOD_S: Final = 0.05  # a register takes 0.55 ms over I2C on an AGX Orin, and a rail of an INA3221 has two
SUM: Final = "sum"
INPUTS: Final = ("VIN", "VDD_IN", "POM_5V_IN", "5V_IN")  # of the carrier board; of the module
_UNCONNECTED: Final = ("", "NC")
_MOST_CHARACTERS: Final = 80


class Rail(NamedTuple):
    """A supply rail: its watts are the product of what its files hold, times the unit."""

    name: str
    files: tuple[Path, ...]
    unit_w: float

    def watts(self) -> float:
        """What it carries now; NaN where its monitor does not answer, as that of a rail that is switched off."""
        try:
            return math.prod(int(file.read_text(encoding="ascii")) for file in self.files) * self.unit_w
        except (OSError, ValueError):
            return math.nan


def rails(sysfs: Path = SYSFS) -> list[Rail]:
    """The rails whose monitors answer, in the order of the monitors."""
    return [rail for rail in (*_of_hwmon(sysfs), *_of_iio(sysfs)) if math.isfinite(rail.watts())]


def default_total(names: list[str]) -> str:
    """The rail in front of all others, or `SUM` where none is."""
    return next((name for name in INPUTS if name in names), SUM)


def words(total: str, names: list[str]) -> str:
    """What a total is, and what it is not."""
    if total == SUM:
        return f"sum of {len(names)} rails, not the module"
    if total in INPUTS:
        return f"rail {total}, all of the {'carrier board' if total == INPUTS[0] else 'module'}"
    return f"rail {total} and all it feeds, not a program's share"


class Ina:
    """Implements `PowerMeter`: one rail or the sum of them as the total, and each beside it."""

    def __init__(self, asked: str = "", sysfs: Path = SYSFS) -> None:
        """`asked` is a rail or `sum`; the input where it is empty, or the sum. Raises InputError."""
        self._rails = rails(sysfs)
        names = [rail.name for rail in self._rails]
        if not names:
            remedy = "boards without such monitors need a meter of their own"
            raise InputError("no monitor of a supply rail answers", str(sysfs / "class" / "hwmon"), remedy)
        total = asked or default_total(names)
        if total not in (SUM, *names):
            choice = ", ".join((SUM, *names))
            raise InputError(f"there is no rail '{total}'", f"--meter {KIND}:", f"choose one of {choice}")
        self._sums = total == SUM
        if not self._sums:
            self._rails.insert(0, self._rails.pop(names.index(total)))
        parts = tuple(rail.name for rail in self._rails)
        first, *each = meter_channels(KIND, f"Rails ({KIND}), {total}", parts)
        self.channels = (first, *each[0 if self._sums else 1 :])
        self.missed = 0
        averaging_s = max(_update_s(rail) for rail in self._rails) or PERIOD_S
        scope: Scope = "node" if total in INPUTS else "host"
        self.info = MeterInfo(KIND, words(total, names), scope, PERIOD_S, averaging_s, poll_s=PERIOD_S)

    def read(self) -> Samples:
        power_w = [rail.watts() for rail in self._rails]
        if all(map(math.isnan, power_w)):
            raise MeterLost("the monitors of the rails do not answer", self.info.label, "they are tried again")
        if self._sums and len(power_w) > 1:
            power_w.insert(0, sum(power_w))
        return Samples(np.asarray([time.monotonic_ns()]), np.asarray([power_w]))

    def reopen(self) -> None:
        if all(math.isnan(rail.watts()) for rail in self._rails):
            raise SensorError("the monitors of the rails do not answer", self.info.label)

    def close(self) -> None:
        """Nothing is held."""


def _of_hwmon(sysfs: Path) -> Iterator[Rail]:
    folders = (sysfs / "class" / "hwmon").glob("hwmon*")
    for folder in sorted(folders, key=lambda folder: (len(folder.name), folder.name)):
        chip = _text(folder / "name")
        if not chip.startswith("ina"):
            continue
        if (folder / "power1_input").exists():
            at = (folder / "device").resolve().name
            name = _text(folder / "power1_label") or _text(folder / "label") or f"{chip} {at}"
            yield Rail(name, (folder / "power1_input",), 1e-6)
            continue
        for number in (1, 2, 3):  # beyond them stands what an INA3221 sums up
            name = _text(folder / f"in{number}_label") or _text(folder / f"curr{number}_label")
            if name not in _UNCONNECTED:
                yield Rail(name, (folder / f"in{number}_input", folder / f"curr{number}_input"), 1e-6)


def _of_iio(sysfs: Path) -> Iterator[Rail]:
    for folder in sorted((sysfs / "bus" / "i2c" / "drivers" / "ina3221x").glob("*/iio:device*")):
        for number in (0, 1, 2):
            name = _text(folder / f"rail_name_{number}")
            if name not in _UNCONNECTED:
                yield Rail(name, (folder / f"in_power{number}_input",), 1e-3)


def _update_s(rail: Rail) -> float:
    """How long its monitor averages; 0 where that is not reported."""
    text = _text(rail.files[0].with_name("update_interval"))
    return int(text) / 1e3 if text.isascii() and text.isdigit() else 0.0


def _text(file: Path) -> str:
    """The first line of a file of the kernel's, for display; empty where there is none."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
    return "".join(letter for letter in text if letter.isprintable())[:_MOST_CHARACTERS]
