"""RAPL: the energy that the host's processors and their memory count, read through Linux' powercap."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from ...base.errors import InputError
from ..gpu import NoPermission, SensorError
from .meter import EnergyCounters, MeterInfo, MeterLost, Samples, meter_channels

KIND: Final = "rapl"
FOLDER: Final = Path("/sys/class/powercap")
PERIOD_S: Final = 0.05  # the counters move every millisecond; so often is enough for a host
_REMEDY: Final = (
    "only root may read it: sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj, until the next start"
)


def zones(folder: Path = FOLDER) -> list[Path]:
    """The zones that add up to the host: packages, and the memory beside them. `psys` holds both, so it is left out."""
    results = []
    for path in sorted(folder.glob("intel-rapl:*")):
        name = _name(path)
        if name.startswith("package") or name == "dram":
            results.append(path)
    return results


def _name(zone: Path) -> str:
    try:
        return (zone / "name").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


class Rapl:
    """Implements `PowerMeter`: all zones together, and each beside it."""

    def __init__(self, folder: Path = FOLDER) -> None:
        """Raises InputError if this computer counts nothing, NoPermission where it may not be read."""
        self._zones = zones(folder)
        if not self._zones:
            remedy = "it needs an Intel or AMD processor, Linux, and no virtual machine"
            raise InputError("there are no RAPL counters", str(folder), remedy)
        names = tuple(
            _name(zone) if _name(zone) != "dram" else f"dram {zone.name.split(':')[1]}" for zone in self._zones
        )
        self.channels = meter_channels(KIND, "Host's processors (RAPL)", names)
        self.missed = 0
        label = f"RAPL of the host ({', '.join(names)})"
        self.info = MeterInfo(KIND, label, "host", PERIOD_S, PERIOD_S, poll_s=PERIOD_S)
        self._whole_uj = [self._number(zone / "max_energy_range_uj") for zone in self._zones]
        self._turns = [0] * len(self._zones)  # how often each began again at 0
        self._before_uj = [0] * len(self._zones)
        self._counters = EnergyCounters(len(self.channels))
        self.read()

    def read(self) -> Samples:
        energy_j = []
        for index, zone in enumerate(self._zones):
            now_uj = self._number(zone / "energy_uj")
            self._turns[index] += now_uj < self._before_uj[index]
            self._before_uj[index] = now_uj
            energy_j.append((now_uj + self._turns[index] * (self._whole_uj[index] + 1)) / 1e6)
        counted = [sum(energy_j)] if len(energy_j) < 2 else [sum(energy_j), *energy_j]
        return self._counters.sample(time.monotonic_ns(), counted)

    def reopen(self) -> None:
        self._counters.forget()
        self.read()

    def close(self) -> None:
        """Nothing is held."""

    @staticmethod
    def _number(path: Path) -> int:
        try:
            return int(path.read_text(encoding="ascii"))
        except PermissionError:
            raise NoPermission("this counter may not be read", str(path), _REMEDY) from None
        except OSError as error:
            raise MeterLost(f"the counter is gone: {error.strerror}", str(path), "it is tried again") from None
        except ValueError:
            raise SensorError("the counter holds no number", str(path), "check the file") from None
