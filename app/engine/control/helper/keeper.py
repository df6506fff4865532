"""`Keeper`: sets one board, with what was there before on disk first, and puts it back.

What cannot be recorded is not set, and what cannot be confirmed is put back: the record in memory only ever becomes
what was written to disk, and nothing is set unless the record on disk is known to cover it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .board import Board
from .grammar import NO_PROFILE, SETTINGS, Failed
from .record import KNOBS, KNOBS_OF, Record, RecordError, Records, boot

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
        elif found is not None and found.boot != boot():
            found = self._after_a_restart(found)
        self._record = found if found is not None else Record(board.uuid, board.name)
        self._on_disk = False  # whether `_record` is known to be on disk, with this process as its holder
        self.left_over = self._record.open

    @property
    def uuid(self) -> str:
        return self._board.uuid

    # --- the verbs ----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What is set now, what was before, and what is in force."""
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
        self._put_back_all(to, names)
        kept = {knob: value for knob, value in self._record.kept.items() if knob not in _knobs_of(names)}
        if to == "prior" and kept != self._record.kept:
            self._commit(replace(self._record, kept=kept), "put back, but still recorded as confirmed")
        if not (self._in_force or self.left_over):
            self._all_back("start")

    def put_back(self, to: str, order: Iterable[str] = KNOBS, *, forget: bool = True) -> None:
        """As `reset` of all, one knob after the other in that order; unless `forget`, the record stays as it is."""
        self._put_back_all(to, (), order)
        if self._record.unreadable:
            raise Failed(
                "unreadable", f"{self._record.unreadable}; what can be read was put back, the rest is not known"
            )
        if forget:
            self._all_back(to)

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
            made = {knob: value for knob, value in self._in_force.items() if knob in self._supported}
            kept = {**self._record.kept, **made}
            self._commit(replace(self._record, kept=kept, open=False), "not confirmed")
        except Failed as failed:
            try:
                self.reset("start")
            except Failed as again:
                raise Failed(again.kind, f"{failed}; {again}") from None
            raise Failed(failed.kind, f"{failed}; the board is as it was before") from None
        self.left_over = self._touched = False
        self._in_force.clear()

    def end(self) -> None:
        """Put back what was set here and not confirmed."""
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

    def _put_back_all(self, to: str, names: tuple[str, ...], order: Iterable[str] = KNOBS) -> None:
        """Put back knobs, each as far as it goes. Raises Failed for those that are not back."""
        wanted = _knobs_of(names) if names else set(KNOBS)
        for name in names or SETTINGS:
            self._applied.pop(name, None)
        failures: list[Failed] = []
        for knob in order:
            mine = not names or knob in self._in_force or (to == "prior" and knob in self._record.kept)
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
        _raise_all(failures, "not put back")

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
        fresh = {knob: self._board.read(knob) for knob in knobs if knob not in self._record.prior}
        if fresh or not (self._on_disk and self._record.open):
            prior = {**self._record.prior, **fresh}
            self._commit(replace(self._record, prior=prior, open=True), "not set, for what was before is not recorded")
        self._touched = True

    def _all_back(self, to: str) -> None:
        """Nothing of ours is left on the board; the record says so too, or goes. Raises Failed where it does not."""
        self._applied.clear()
        self._in_force.clear()
        kept = self._record.kept if to == "start" else {}
        empty = Record(self._board.uuid, self._board.name)
        record = replace(self._record, open=False) if kept else empty
        self._commit(record, "the board is as it was before, but its record stays")
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

    def _after_a_restart(self, record: Record) -> Record | None:
        """The board has forgotten its settings; what it had before may be gone with them."""
        record.kept = {}
        record.open = True
        readable = {knob: value for knob, value in record.prior.items() if value is not None}
        if all(self._board.read_or_none(knob) == value for knob, value in readable.items()):
            with contextlib.suppress(RecordError):  # it is as it was: a lock never outlives a restart
                self._records.remove(record.uuid)
                return None
        return record


def _raise_all(failures: list[Failed], what: str) -> None:
    """Raise the failures as one, of the first one's kind; nothing where there are none."""
    if failures:
        raise Failed(failures[0].kind, "{}: {}".format(what, "; ".join(str(each) for each in failures)))


def _knobs_of(names: Iterable[str]) -> set[str]:
    return {knob for name in names for knob in KNOBS_OF[name]}
