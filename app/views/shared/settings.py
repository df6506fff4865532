"""`Settings`: what the window remembers over restarts: one file in the data folder, every key with its usual value.

`SettingsSaver`: what the window remembers is written off Qt's thread, without the interpreter's lock.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from PySide6.QtCore import QByteArray, QCoreApplication, QEvent, QObject, QSettings, QThread, Slot

from ...base.errors import WattridgeError
from ...base.paths import data_folder, open_private, private_folder
from ...engine.metering.external_meters import NO_METERS, MeterChoice
from .text_size import TEXT_POINTS
from .turns import timer

if TYPE_CHECKING:
    from ...engine.analysis.tradeoff import Load
    from ...sensors.trace.alarms import AlarmRules

_SOON_MS = 1000  # whoever reads a setting while the file is written waits for that: most reads follow a change at once


class SettingsSaver(QObject):
    """Writes a file of settings some time after a change of any `QSettings` of this process that is on the same file.

    Qt writes twice through to the disk each time, a lock and the file, and waits for as long as the disk takes. The
    thread runs no Python: PySide's `sync` would keep the interpreter's lock meanwhile.
    """

    def __init__(self, path: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.path = path
        self._thread = QThread()
        self._file = QSettings(path, QSettings.Format.IniFormat)
        self._file.moveToThread(self._thread)
        self._timer = timer(self, self._save, _SOON_MS, once=True)
        self._thread.start()

    @Slot()
    def save_soon(self) -> None:
        """Something was changed."""
        if not self._timer.isActive():
            self._timer.start()

    @Slot()
    def _save(self) -> None:
        QCoreApplication.postEvent(self._file, QEvent(QEvent.Type.UpdateRequest))  # as Qt asks itself to save

    def close(self) -> None:
        """End the thread. The last changes are written by `Settings.sync` at the end."""
        self._timer.stop()
        self._thread.quit()
        self._thread.wait()


_RECENT = 12  # files remembered
MOST_BOARDS = 100_000
THEMES = ("system", "light", "dark")


class _File(QSettings):
    """Left to itself Qt writes it in the turn after a change, on the thread that made it."""

    saver: SettingsSaver | None = None  # who writes it instead

    def __init__(self, path: str) -> None:
        super().__init__(path, QSettings.Format.IniFormat)
        self._known: dict[str, Any] = {}  # what was read: Qt lets nobody read while it writes

    def value(self, key: str, usual: Any = None) -> Any:  # type: ignore[override]  # no type is asked for
        if key not in self._known:
            self._known[key] = super().value(key)
        kept = self._known[key]
        return usual if kept is None else kept

    def setValue(self, key: str, value: Any) -> None:
        super().setValue(key, value)
        self._known.pop(key, None)
        self._changed()

    def remove(self, key: str) -> None:
        super().remove(key)
        self._known.clear()
        self._changed()

    def clear(self) -> None:
        super().clear()
        self._known.clear()
        self._changed()

    def _changed(self) -> None:
        if self.saver is not None:
            self.saver.save_soon()

    def event(self, event: QEvent) -> bool:
        """Called by Qt to save the settings, which the saver does."""
        asked = event.type() == QEvent.Type.UpdateRequest
        return True if asked and self.saver is not None else super().event(event)


_OPEN: WeakValueDictionary[str, _File] = WeakValueDictionary()  # each is read, and written, where it is made and ends


class Settings:
    """Reads and writes through; several of them on one file agree with one another."""

    def __init__(self) -> None:
        path = str(data_folder() / "window.ini")
        opened = _OPEN.get(path)
        if opened is None:
            with suppress(OSError, WattridgeError):  # where it cannot be written, nothing is remembered
                open_private(private_folder() / "window.ini", "ab").close()
            opened = _OPEN[path] = _File(path)
        self._file = opened

    def save_beside(self, saver: SettingsSaver | None) -> None:
        """From now on changes are written by this one; with None by Qt, in the turn after each."""
        self._file.saver = saver

    @property
    def path(self) -> str:
        """The file."""
        return self._file.fileName()

    @property
    def theme(self) -> str:
        """One of THEMES."""
        mode = str(self._file.value("theme", "system"))
        return mode if mode in THEMES else "system"

    @theme.setter
    def theme(self, mode: str) -> None:
        self._file.setValue("theme", mode)

    @property
    def text_points(self) -> int:
        """Size of the text; 0: the system's."""
        points = round(self._number("text_points", 0))
        return points if TEXT_POINTS[0] <= points <= TEXT_POINTS[1] else 0

    @text_points.setter
    def text_points(self, points: int) -> None:
        self._file.setValue("text_points", points)

    @property
    def load(self) -> Load:
        """How much there is to do in a year, and what electricity costs."""
        from ...engine.analysis.tradeoff import HOURS_PER_YEAR, Load  # the first frame needs none of it

        return Load(
            hours_per_year=self._number("energy/load_hours_per_year", 4000.0, HOURS_PER_YEAR),
            boards=round(self._number("energy/boards", 1, MOST_BOARDS)) or 1,
            price_per_kwh=self._number("energy/price_per_kwh", 0.25),
            currency=str(self._file.value("energy/currency", "EUR")),
            carbon_g_per_kwh=self._number("energy/carbon_g_per_kwh", 300.0),
        )

    @load.setter
    def load(self, load: Load) -> None:
        self._file.setValue("energy/load_hours_per_year", load.hours_per_year)
        self._file.setValue("energy/boards", load.boards)
        self._file.setValue("energy/price_per_kwh", load.price_per_kwh)
        self._file.setValue("energy/currency", load.currency)
        self._file.setValue("energy/carbon_g_per_kwh", load.carbon_g_per_kwh)

    @property
    def alarms(self) -> AlarmRules:
        """What raises an alarm."""
        from ...sensors.trace.alarms import AlarmRules

        return AlarmRules(
            self._number("alarms/power_above_w", 0.0) or None,
            self._number("alarms/temperature_above_c", 0.0) or None,
            bool(self._number("alarms/cap_reached", 0)),
            bool(self._number("alarms/board_lost", 0)),
        )

    @alarms.setter
    def alarms(self, rules: AlarmRules) -> None:
        self._file.setValue("alarms/power_above_w", rules.power_above_w or 0.0)
        self._file.setValue("alarms/temperature_above_c", rules.temperature_above_c or 0.0)
        self._file.setValue("alarms/cap_reached", int(rules.cap_reached))
        self._file.setValue("alarms/board_lost", int(rules.board_lost))

    @property
    def samples_mb(self) -> int:
        """Samples that a session keeps of its measurements, at most, MB; 0: none."""
        return round(self._number("samples_mb", 64))

    @samples_mb.setter
    def samples_mb(self, value: int) -> None:
        self._file.setValue("samples_mb", value)

    @property
    def lanes(self) -> str:
        """Which traces are shown, and how; empty: as at the first start."""
        return str(self._file.value("lanes", ""))

    @lanes.setter
    def lanes(self, text: str) -> None:
        self._file.setValue("lanes", text)

    def meters(self, uuid: str) -> MeterChoice:
        """The meters that are assigned to a board."""
        try:
            kept: Any = json.loads(str(self._file.value("meters", "{}")))[uuid]
            selectors = tuple(str(value) for value in kept["meters"])[:_RECENT]
            return MeterChoice(selectors, str(kept["energy_from"]), kept["corrected"] is True)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            return NO_METERS

    def set_meters(self, uuid: str, choice: MeterChoice) -> None:
        """Remember them."""
        try:
            kept: Any = dict(json.loads(str(self._file.value("meters", "{}"))))
        except (ValueError, TypeError, RecursionError):
            kept = {}
        kept.pop(uuid, None)
        if choice:
            named = {"meters": choice.selectors, "energy_from": choice.energy_from, "corrected": choice.corrected}
            kept[uuid] = named
        self._file.setValue("meters", json.dumps(kept))

    @property
    def recent(self) -> list[Path]:
        """Files that were opened, newest first, those that are still there."""
        kept: Any = self._file.value("recent", [])
        named = [kept] if isinstance(kept, str) else [str(entry) for entry in kept or ()]
        return [Path(name) for name in named if name and Path(name).is_file()]

    def add_recent(self, path: Path) -> None:
        """Remember a file as the one opened last."""
        path = path.absolute()
        self._file.setValue("recent", [str(path), *(str(p) for p in self.recent if p != path)][:_RECENT])

    @property
    def hosts(self) -> list[str]:
        """Other machines whose boards were watched, newest first, as user@host."""
        kept: Any = self._file.value("hosts", [])
        return [kept] if isinstance(kept, str) and kept else [str(entry) for entry in kept or ()]

    def add_host(self, machine: str) -> None:
        """Remember a machine as the one that was named last."""
        self._file.setValue("hosts", [machine, *(host for host in self.hosts if host != machine)][:_RECENT])

    @property
    def pool(self) -> tuple[str, str]:
        """The scheduler that was connected to last, and the folder of its certificates; '' if none was named."""
        return str(self._file.value("pool/scheduler", "")), str(self._file.value("pool/certificates", ""))

    @pool.setter
    def pool(self, named: tuple[str, str]) -> None:
        scheduler, certificates = named
        self._file.setValue("pool/scheduler", scheduler)
        self._file.setValue("pool/certificates", certificates)

    @property
    def export(self) -> tuple[str, str]:
        """The kind of file that was exported last, '' for all of them, and the folder, '' for the session's own."""
        return str(self._file.value("export/kind", "")), str(self._file.value("export/folder", ""))

    @export.setter
    def export(self, chosen: tuple[str, str]) -> None:
        kind, folder = chosen
        self._file.setValue("export/kind", kind)
        self._file.setValue("export/folder", folder)

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

    def shown(self, what: str, usual: frozenset[str]) -> frozenset[str]:
        """Names of what is ticked in a menu."""
        kept = self._file.value(f"shown/{what}")
        return frozenset(str(kept).split()) if kept is not None else usual

    def note_shown(self, what: str, names: frozenset[str]) -> None:
        """Remember what is ticked in a menu."""
        self._file.setValue(f"shown/{what}", " ".join(sorted(names)))

    def forget_shown(self, what: str) -> None:
        """Forget what is ticked: as at the first start."""
        self._file.remove(f"shown/{what}")

    def said(self, what: str) -> str:
        """The note on something that is shown once; empty if there is none."""
        return str(self._file.value(f"said/{what}", ""))

    def note_said(self, what: str, note: str = "yes") -> None:
        """Note that something was shown."""
        self._file.setValue(f"said/{what}", note)

    def reset(self) -> None:
        """Everything as it was before the first start. Sessions are kept elsewhere and stay."""
        self._file.clear()

    def sync(self) -> None:
        """Write what is not written yet."""
        self._file.sync()

    def _number(self, key: str, usual: float, most: float = 1e6) -> float:
        """What is kept, where it is a number from 0 to `most`: the file may have been edited by hand."""
        try:
            kept = float(str(self._file.value(key, usual)))
        except ValueError:
            return usual
        return kept if 0 <= kept <= most else usual
