"""`Keeper`: sets one board, with what was there before on disk first, and puts it back."""

from __future__ import annotations

import time
from typing import Any

from app.engine.control.helper.board import Board, Failed
from app.engine.control.helper.grammar import SETTINGS
from app.engine.control.helper.record import KNOBS, KNOBS_OF, Record, RecordError, Records, boot

_TRIES, _BETWEEN_S = 3, 0.2  # of putting back


class Keeper:
    """One board's settings for as long as a helper lives. Raises Failed."""

    def __init__(self, board: Board, records: Records, holder: dict[str, int]) -> None:
        self._board = board
        self._records = records
        self._holder = holder
        self._applied: dict[str, Any] = {}  # setting -> value in force, made here
        self._in_force: dict[str, Any] = {}  # knob -> value put here
        self._touched = False  # something may be set that nobody has confirmed
        try:
            found = records.read(board.uuid)
        except RecordError as error:
            raise Failed("record", str(error)) from None
        if found is not None and found.boot != boot():
            found = self._after_a_restart(found)
        self._record = found if found is not None else Record(board.uuid, board.name)
        self.left_over = self._record.open

    @property
    def uuid(self) -> str:
        return self._board.uuid

    # --- the verbs ----------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What is set now, what was before, and what is in force."""
        now = {knob: self._board.told(knob) for knob in KNOBS if not knob.startswith("locked_")}
        return {
            "name": self._board.name,
            "now": now,
            "prior": self._record.prior,
            "kept": self._record.kept,
            "applied": self._applied,
            "by": {name: self._way(name) for name in self._applied},
            "left_over": self.left_over,
            "holder": self._holder["pid"],
        }

    def set(self, settings: dict[str, Any]) -> None:
        """Make settings, the power limit first and the graphics clock last, each by the first way that works."""
        self._board.check(settings, self._applied.get("memory_clock_mhz"))
        for name in SETTINGS:
            if name in settings:
                self._make(name, settings[name])

    def reset(self, to: str, names: tuple[str, ...] = ()) -> None:
        """Put back, and see that it is back: all of it, or some settings only. The record goes when nothing is left."""
        wanted = {knob for name in names for knob in KNOBS_OF[name]} if names else set(KNOBS)
        for name in names or SETTINGS:
            self._applied.pop(name, None)
        failures: list[Failed] = []
        for knob in KNOBS:
            if knob in wanted and knob in self._record.prior and (not names or knob in self._in_force):
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
        if failures:
            raise Failed(failures[0].kind, "not put back: {}".format("; ".join(str(failed) for failed in failures)))
        if not names or not (self._in_force or self.left_over):
            self._all_back(to)

    def confirm(self) -> None:
        """What is in force stays when this process ends, until a reset to the prior state."""
        if not self._in_force or self.left_over:
            raise Failed("refused", "nothing is set that could be confirmed")
        if self._board.told("persistence_mode") == 0:  # a driver that nobody uses forgets its settings
            self._remember(["persistence_mode"])
            try:
                self._put("persistence_mode", 1)
            except Failed:
                self._in_force.pop("persistence_mode", None)
        self._record.kept.update(self._in_force)
        self._record.open = self.left_over = self._touched = False
        self._write()
        self._in_force.clear()

    def end(self) -> None:
        """Put back what was set here and nobody confirmed."""
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
                if failed.kind != "not_supported":
                    raise
                self._board.lacks(knob, failed)
                self._in_force.pop(knob, None)
                refused = refused or failed
        raise refused or Failed("not_supported", "this board does not support it")

    def _value(self, knob: str, name: str, value: Any) -> Any:
        if knob == "power_limit_mw":
            return round(value * 1000)
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

    def _put_back(self, knob: str, value: Any) -> None:
        for left in reversed(range(_TRIES)):
            try:
                self._board.put(knob, value)
                if not self._board.is_at(knob, value):
                    raise Failed("driver", f"{knob} does not read back as it was")
                return
            except Failed as failed:
                if failed.kind == "not_supported" and self._board.is_at(knob, value):
                    return  # it was only tried, and never was there
                if not left or failed.kind not in ("driver", "lost"):
                    raise
                time.sleep(_BETWEEN_S)

    def _remember(self, knobs: list[str]) -> None:
        """Prior values to disk, before the first setting of each knob."""
        fresh = [knob for knob in knobs if knob not in self._record.prior]
        if not fresh and self._touched:
            return
        self._record.prior.update({knob: self._board.read(knob) for knob in fresh})
        self._record.open = self._touched = True
        self._write()

    def _all_back(self, to: str) -> None:
        self._applied.clear()
        self._in_force.clear()
        self._record.open = self.left_over = self._touched = False
        if to == "start" and self._record.kept:
            self._write()
            return
        self._record = Record(self._board.uuid, self._board.name)
        self._forget()

    def _forget(self) -> None:
        try:
            self._records.remove(self._board.uuid)
        except RecordError as error:
            raise Failed("record", str(error)) from None

    def _write(self) -> None:
        self._record.holder = self._holder
        try:
            self._records.write(self._record)
        except RecordError as error:
            raise Failed("record", str(error)) from None

    def _after_a_restart(self, record: Record) -> Record | None:
        """The board has forgotten its settings; what it had before may be gone with them."""
        record.kept = {}
        record.open = True
        readable = {knob: value for knob, value in record.prior.items() if value is not None}
        if all(self._board.told(knob) == value for knob, value in readable.items()):
            self._forget()  # it is as it was: a lock never outlives a restart
            return None
        return record
