"""`Settings`: what the window remembers over restarts: one file in the data folder, every key with its usual value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QSettings

from app.paths import data_folder

_RECENT = 12  # files remembered
THEMES = ("system", "light", "dark")


class Settings:
    """Reads and writes through; several of them on one file agree with one another."""

    def __init__(self) -> None:
        self._file = QSettings(str(data_folder() / "window.ini"), QSettings.Format.IniFormat)

    @property
    def theme(self) -> str:
        """One of THEMES."""
        mode = str(self._file.value("theme", "system"))
        return mode if mode in THEMES else "system"

    @theme.setter
    def theme(self, mode: str) -> None:
        self._file.setValue("theme", mode)

    @property
    def price_per_kwh(self) -> float:
        """What electricity costs, in the person's own currency per kWh."""
        return self._number("energy/price_per_kwh", 0.25)

    @price_per_kwh.setter
    def price_per_kwh(self, price: float) -> None:
        self._file.setValue("energy/price_per_kwh", price)

    @property
    def carbon_g_per_kwh(self) -> float:
        """Carbon intensity of electricity, in g of CO2 equivalent per kWh."""
        return self._number("energy/carbon_g_per_kwh", 300.0)

    @carbon_g_per_kwh.setter
    def carbon_g_per_kwh(self, grams: float) -> None:
        self._file.setValue("energy/carbon_g_per_kwh", grams)

    @property
    def load_hours_per_year(self) -> float:
        """How long the tuned work runs in a year, in hours."""
        return self._number("energy/load_hours_per_year", 4000.0)

    @load_hours_per_year.setter
    def load_hours_per_year(self, hours: float) -> None:
        self._file.setValue("energy/load_hours_per_year", hours)

    @property
    def recent(self) -> list[Path]:
        """Files that were opened, newest first, those that are still there."""
        kept: Any = self._file.value("recent", [])
        named = [kept] if isinstance(kept, str) else [str(each) for each in kept or ()]
        return [Path(name) for name in named if name and Path(name).is_file()]

    def add_recent(self, path: Path) -> None:
        """Remember a file as the one opened last."""
        path = path.absolute()
        self._file.setValue("recent", [str(path), *(str(p) for p in self.recent if p != path)][:_RECENT])

    def forget_recent(self) -> None:
        """Forget every file."""
        self._file.remove("recent")

    def kept(self, name: str) -> QByteArray | None:
        """A layout or a place on the screen, by name."""
        value = self._file.value(f"window/{name}")
        return value if isinstance(value, QByteArray) else None

    def keep(self, name: str, state: QByteArray) -> None:
        """Remember a layout or a place on the screen."""
        self._file.setValue(f"window/{name}", state)

    def said(self, what: str) -> str:
        """What was noted of something that is told but once; empty where nothing was."""
        return str(self._file.value(f"said/{what}", ""))

    def note_said(self, what: str, note: str = "yes") -> None:
        """Note that something was told."""
        self._file.setValue(f"said/{what}", note)

    def reset(self) -> None:
        """Everything as it was before the first start. Sessions are kept elsewhere and stay."""
        self._file.clear()

    def sync(self) -> None:
        """Write what is not written yet."""
        self._file.sync()

    def _number(self, key: str, usual: float) -> float:
        try:
            return float(str(self._file.value(key, usual)))
        except ValueError:  # a file edited by hand
            return usual
