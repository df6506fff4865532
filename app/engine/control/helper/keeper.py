"""`Keeper`: sets one board, with what was there before on disk first, and puts it back.

Only settings made here are put back, to the values read when they were first made here: between two sessions another
tool may have set the board. A confirmed setting counts as ours as long as the board has it, as far as it reports that.

A setting that cannot be recorded is not made, and one that cannot be confirmed is put back: the record in memory only
ever becomes what was written to disk, and nothing is set unless the record on disk is known to cover it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .board import Board
from .grammar import NO_PROFILE, SETTINGS, Failed
from .record import KNOBS, KNOBS_OF, Record, RecordError, Records

_TRIES, _BETWEEN_S = 3, 0.2  # of putting back


class Keeper:
    """One board's settings for as long as a helper lives. Raises Failed."""

    def __init__(self, board: Board, records: Records, holder: dict[str, int]) -> None:
        self._board = board
        self._records = records
        self._holder = holder
        self._applied: dict[str, Any] = {}  # setting -> value in force, made here
        self._in_force: dict[str, Any] = {}  # knob -> value put here
        self._supported: set[str] = set()  # knobs that the driver has turned here
        self._touched = False  # something may be set that was not confirmed
        found = records.read(board.uuid)
        if found is not None and found.unreadable:
            found.kept = {}  # what is put back of it is what was before everything
        elif found is not None and found.open and found.held_by not in (None, holder["pid"]):  # the lock was lost
            raise Failed("busy", f"another session is setting this board, process {found.held_by}")
        self._record = found if found is not None else Record(board.uuid, board.name)
        self._on_disk = False  # whether `_record` is known to be on disk, with this process as its holder
        self.left_over = self._record.open

    @property
    def uuid(self) -> str:
        return self._board.uuid

    # --- the verbs ----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The present values, those before, and the settings in force."""
        now = {knob: self._board.read_or_none(knob) for knob in KNOBS if not knob.startswith("locked_")}
        return {
            "name": self._board.name,
            "now": now,
            "prior": self._record.prior,
            "kept": self._record.kept,
            "applied": self._applied,
            "by": {name: self._way(name) for name in self._applied},
            "left_over": self.left_over,
            "unreadable": self._record.unreadable,
            "holder": self._holder["pid"],
        }

    def set(self, settings: dict[str, Any]) -> None:
        """Make settings, the profile first and the graphics clock last, each by the first way that works."""
        if self._record.unreadable:
            raise Failed("unreadable", f"not set, for what was before is not known: {self._record.unreadable}")
        self._board.check(settings, self._applied.get("memory_clock_mhz"))
        for name in SETTINGS:
            if name in settings:
                self._make(name, settings[name])

    def reset(self, to: str, names: tuple[str, ...] = ()) -> None:
        """Put back, and see that it is back: all of it, or some settings only. The record goes when nothing is left.

        To "defaults" only where the record cannot be read in full: what it does not hold is unlocked, or gets the
        board's default.
        """
        if to == "defaults":
            self._reset_to_defaults(names)
            return
        if not names:
            self.put_back(to)
            return
        touched = self._put_back_all(to, names)
        undone = _knobs_of(names) if to == "prior" else set()
        kept = {knob: value for knob, value in self._record.kept.items() if knob not in undone}
        if not (self._in_force or self.left_over):
            self._all_back(kept)
        elif (kept, touched) != (self._record.kept, self._record.touched):
            self._commit(replace(self._record, kept=kept, touched=touched), "put back, but still recorded as set")

    def put_back(self, to: str, order: Iterable[str] = KNOBS, *, forget: bool = True) -> None:
        """As `reset` of all, one knob after the other in that order; unless `forget`, the record stays as it is."""
        self._put_back_all(to, (), order)
        if self._record.unreadable:
            raise Failed(
                "unreadable", f"{self._record.unreadable}; what can be read was put back, the rest is not known"
            )
        if forget:
            self._all_back(self._record.kept if to == "start" else {})

    def confirm(self) -> None:
        """What is in force stays when this process ends, until a reset to the prior state.

        Where that cannot be recorded, everything is put back at once.
        """
        if not self._in_force or self.left_over:
            raise Failed("refused", "nothing is set that could be confirmed")
        try:
            if self._board.read_or_none("persistence_mode") == 0:  # a driver without users forgets its settings
                self._remember(["persistence_mode"])
                try:
                    self._put("persistence_mode", 1)
                except Failed:
                    self._in_force.pop("persistence_mode", None)
            made = {knob: self._read(knob, value) for knob, value in self._in_force.items() if knob in self._supported}
            self._commit(self._confirmed({**self._record.kept, **made}), "not confirmed")
        except Failed as failed:
            try:
                self.reset("start")
            except Failed as again:
                raise Failed(again.kind, f"{failed}; {again}") from None
            raise Failed(failed.kind, f"{failed}; the board is as it was before") from None
        self.left_over = self._touched = False
        self._in_force.clear()

    def end(self) -> None:
        """Put back the settings made here that were not confirmed."""
        if self._touched:
            self.reset("start")

    # --- inside -------------------------------------------------------------------------------------------------------

    def _make(self, name: str, value: Any) -> None:
        refused: Failed | None = None
        for knob in self._board.knobs(name):
            try:
                self._remember([knob])
                self._put(knob, self._value(knob, name, value))
                self._applied[name] = value
                return
            except Failed as failed:
                if failed.kind != "not_supported" or knob in self._supported:
                    raise
                self._board.lacks(knob, failed)
                self._in_force.pop(knob, None)
                refused = refused or failed
        raise refused or Failed("not_supported", "this board does not support it")

    def _value(self, knob: str, name: str, value: Any) -> Any:
        if knob == "power_limit_mw":
            return round(value * 1000)
        if knob == "workload_power_profiles":
            return [] if value == NO_PROFILE else [value]
        if knob == "locked_memory_mhz":
            return [value, value]
        if knob == "locked_graphics_mhz":
            return list(value)
        return self._application_clocks(self._board.read(knob), {name: value})

    def _application_clocks(self, otherwise: list[int], more: dict[str, Any] | None = None) -> list[int]:
        """The pair for what is applied by application clocks, `otherwise` where a clock is not."""
        mine = {name: value for name, value in self._applied.items() if self._way(name) == "application_clocks_mhz"}
        mine.update(more or {})
        memory = mine.get("memory_clock_mhz", otherwise[0])
        return [memory, mine["graphics_clock_mhz"][1] if "graphics_clock_mhz" in mine else otherwise[1]]

    def _way(self, name: str) -> str:
        return next((knob for knob in KNOBS_OF[name] if knob in self._in_force), "")

    def _put(self, knob: str, value: Any) -> None:
        self._in_force[knob] = value  # before the call: one that fails half way is put back too
        self._board.put(knob, value)
        self._supported.add(knob)

    def _put_back(self, knob: str, value: Any) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self._board.put(knob, value)
                if not self._board.is_at(knob, value):
                    raise Failed("driver", f"{knob} does not read back as it was")
                return
            except Failed as failed:
                turned = knob in self._supported or knob in self._record.kept
                if failed.kind == "not_supported" and not turned and self._board.is_at(knob, value):
                    return  # it was only tried, and never was there
                if not left or failed.kind not in ("driver", "lost"):
                    raise
                time.sleep(_BETWEEN_S)

    def _put_back_all(self, to: str, names: tuple[str, ...], order: Iterable[str] = KNOBS) -> list[str]:
        """Put back knobs, each as far as it goes; those that are still ours. Raises Failed for those not back."""
        wanted = _knobs_of(names) if names else set(KNOBS)
        for name in names or SETTINGS:
            self._applied.pop(name, None)
        failures: list[Failed] = []
        touched = list(self._record.touched)
        for knob in order:
            mine = knob in touched or (to == "prior" and self._still_has(knob))
            if knob in wanted and knob in self._record.prior and mine:
                value = self._record.prior[knob] if to == "prior" else self._record.base(knob)
                if knob == "application_clocks_mhz" and self._applied:
                    value = self._application_clocks(value)
                try:
                    self._put_back(knob, value)
                except Failed as failed:
                    failures.append(failed)
                    continue
                if any(self._way(name) == knob for name in self._applied):
                    self._in_force[knob] = value  # another setting still stands by the same knob
                else:
                    self._in_force.pop(knob, None)
                    touched = [other for other in touched if other != knob]
        _raise_all(failures, "not put back")
        return touched

    def _reset_to_defaults(self, names: tuple[str, ...]) -> None:
        if not self._record.unreadable or names:
            raise Failed("refused", "only a board whose record cannot be read is reset to defaults, and as a whole")
        self._put_back_all("prior", ())
        failures: list[Failed] = []
        for knob in KNOBS:
            if knob not in self._record.prior and knob != "persistence_mode":  # which changes nothing by itself
                try:
                    self._board.put_default(knob)
                except Failed as failed:
                    if failed.kind != "not_supported":
                        failures.append(failed)
        _raise_all(failures, "not at its default")
        try:
            self._records.set_aside(self._board.uuid)
        except RecordError as error:
            raise Failed("record", f"the board is at its defaults, but the record stays: {error}") from None
        self._record = Record(self._board.uuid, self._board.name)
        self._applied.clear()
        self._in_force.clear()
        self._on_disk = self.left_over = self._touched = False

    def _remember(self, knobs: list[str]) -> None:
        """Prior values to disk, before the first setting of each knob. Raises Failed: then it must not be set."""
        record = self._record
        fresh = [knob for knob in knobs if knob not in record.touched]
        if fresh or not (self._on_disk and record.open):
            found = {knob: self._board.read(knob) for knob in fresh}
            found = {knob: value for knob, value in found.items() if not self._still_has(knob)}
            prior = {**record.prior, **found}
            kept = {knob: value for knob, value in record.kept.items() if knob not in found}
            record = replace(record, prior=prior, kept=kept, touched=[*record.touched, *fresh], open=True)
            self._commit(record, "not set, for what was before is not recorded")
        self._touched = True

    def _still_has(self, knob: str) -> bool:
        """Whether the board has what was confirmed, and no other tool has set it since, as far as it reports that."""
        try:
            return knob in self._record.kept and self._board.is_at(knob, self._record.kept[knob])
        except Failed:
            return True

    def _read(self, knob: str, otherwise: Any) -> Any:
        """What a knob that can be read is set to now: a board does not obey every value."""
        found = self._board.read_or_none(knob)
        return otherwise if found is None else found

    def _confirmed(self, kept: dict[str, Any]) -> Record:
        """The record where nothing else of ours is on the board."""
        prior = {knob: self._record.prior[knob] for knob in kept}
        return Record(self._board.uuid, self._board.name, prior, kept)

    def _all_back(self, kept: dict[str, Any]) -> None:
        """Nothing else of ours is left on the board; the record says so too, or goes. Raises Failed where not."""
        self._applied.clear()
        self._in_force.clear()
        self._commit(self._confirmed(kept), "the board is as it was before, but its record stays")
        self.left_over = self._touched = False

    def _commit(self, record: Record, otherwise: str) -> None:
        """Make that the record, on disk first. Where that fails the old one is still right. Raises Failed."""
        record.holder = self._holder
        try:
            self._store(record)
        except RecordError as error:
            self._on_disk = False  # it may be the new one
            with contextlib.suppress(RecordError):
                self._store(self._record)
            raise Failed("record", f"{otherwise}: {error}") from None
        self._record, self._on_disk = record, True

    def _store(self, record: Record) -> None:
        """Put a record on disk; one that holds nothing is no file."""
        if record.prior:
            self._records.write(record)
        else:
            self._records.remove(record.uuid)


def _raise_all(failures: list[Failed], what: str) -> None:
    """Raise the failures as one, of the first one's kind; nothing if there are none."""
    if failures:
        raise Failed(failures[0].kind, "{}: {}".format(what, "; ".join(str(each) for each in failures)))


def _knobs_of(names: Iterable[str]) -> set[str]:
    return {knob for name in names for knob in KNOBS_OF[name]}
