"""Clock, load and temperature of a Jetson's GPU from Linux: NVML answers there from JetPack 6 on, but reports none."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

SYSFS: Final = Path("/sys")
_CHANNELS: Final = ("graphics_clock_mhz", "utilisation_percent", "temperature_c")
ZONES: Final = ("GPU-therm", "gpu-thermal")  # of the GPU, by older and newer kernels
# By its address or its name on Tegra X1 to Orin, and as a part of the GPU on Thor; other makers' GPUs have others.
_GPU: Final = re.compile(r"(17|57)000000\.(gpu|g[mpva][0-9]+b)|gpu-gpc-0")


class Devfreq:
    """One GPU's clock, load and temperature."""

    def __init__(self, folder: Path, zone: Path | None = None) -> None:
        self._folder, self._zone = folder, zone

    def clock_mhz(self) -> float:
        """The clock now; NaN where it is not known."""
        return _number(self._folder / "cur_freq") / 1e6

    def load_percent(self) -> float:
        """The share of the time in which the GPU was busy; NaN where it is not known."""
        return _number(self._folder / "device" / "load") / 10

    def read(self) -> dict[str, float]:
        """Everything now, by the names of channels; what is not known is NaN, as the heat of a GPU that is off."""
        heat = math.nan if self._zone is None else _number(self._zone / "temp") / 1e3
        return dict(zip(_CHANNELS, (self.clock_mhz(), self.load_percent(), heat), strict=True))

    def clocks_mhz(self) -> tuple[int, ...]:
        """Supported clocks, ascending; empty if unknown."""
        try:
            words = (self._folder / "available_frequencies").read_text(encoding="ascii").split()
            return tuple(sorted({round(int(word) / 1e6) for word in words}))
        except (OSError, ValueError):
            return ()


def thermal_zone(sysfs: Path = SYSFS) -> Path | None:
    """The folder of the GPU's sensor of temperature; None where there is none."""
    kinds = sorted((sysfs / "class" / "thermal").glob("thermal_zone*/type"))
    return next((kind.parent for kind in kinds if kind.read_text(encoding="latin-1").strip() in ZONES), None)


def integrated_gpu(sysfs: Path = SYSFS) -> Devfreq | None:
    """The GPU of this Jetson; None on any other computer."""
    folders = sorted((sysfs / "class" / "devfreq").glob("*gpu*")) + sorted((sysfs / "class" / "devfreq").glob("*.g*b"))
    found = (Devfreq(folder, thermal_zone(sysfs)) for folder in folders if _GPU.fullmatch(folder.name))
    return next((gpu for gpu in found if not math.isnan(gpu.clock_mhz())), None)


def _number(file: Path) -> float:
    try:
        return float(int(file.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return math.nan
