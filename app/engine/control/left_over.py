"""Settings that a crash left: the helper's record, which everybody may read, against the board as it is now."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import WattridgeError
from ...base.records import figure
from ...sensors.gpu import Gpu
from ..results.settings import PROFILE, SETTINGS, WORDS, setting_of, with_unit
from .helper import record as records


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A board's record. `prior` and `kept` by setting, in its unit; None stands for 'not locked', or not known."""

    uuid: str = field(metadata=figure(key=None))
    name: str = field(metadata=figure(key=None))
    prior: dict[str, float | None]
    kept: dict[str, float | None]  # what the user confirmed
    written_s: float  # wall clock, since the epoch
    held_by: int | None  # the process that has it in hand just now
    unfinished: bool  # something is set that was not confirmed, and no process has it in hand
    unreadable: str = ""  # why the record cannot be read in full; empty if it can

    def differences(self, gpu: Gpu) -> list[str]:
        """How the board differs from its state before, as far as it reports that, in words."""
        limit_w = gpu.info.power_limit.current_w
        words, at_rest = [], self.held_by is None and not self.unfinished
        for name, value in self.prior.items():
            kept = self.kept.get(name)
            if name == "power_limit_w" and limit_w is not None:
                if at_rest and kept is not None and abs(limit_w - kept) > 1.0:
                    words.append(f"{WORDS[name]} {limit_w:g} W, set elsewhere since {kept:g} W was kept: it stays")
                elif value is not None and abs(limit_w - value) > 1.0:
                    words.append(f"{WORDS[name]} {limit_w:g} W, {value:g} before")
            elif name != "power_limit_w":
                now = "set too" if kept is None else with_unit(name, kept)
                unknown = "several" if name == PROFILE else "not locked, as far as is known"
                before = unknown if value is None else with_unit(name, value)
                words.append(f"{WORDS[name]} {now}, {before} before")
        return words


def left_over(uuid: str) -> LeftOver | None:
    """The record of a board; None if there is none, as is usual. A damaged record counts as one."""
    if os.name != "posix" or not records.is_uuid(uuid) or not os.path.lexists(records.FOLDER):
        return None
    try:
        with records.Records(records.FOLDER, make=False) as folder:
            record = folder.read(uuid)
    except records.RecordError as error:
        record = records.Record(uuid, open=True, unreadable=str(error))
    if record is None:
        return None
    return LeftOver(
        uuid=record.uuid,
        name=record.name,
        prior=_by_setting(record.prior),
        kept=_by_setting(record.kept),
        written_s=record.written_s,
        held_by=record.held_by,
        unfinished=record.open and record.held_by is None,
        unreadable=record.unreadable,
    )


def confirmed(uuid: str) -> dict[str, float | None]:
    """The settings of a board that the user confirmed, and that hold until they are put back."""
    record = left_over(uuid)
    return {} if record is None else record.kept


def all_left_over() -> list[LeftOver]:
    """The records of all boards. Raises WattridgeError if they cannot be listed."""
    if os.name != "posix" or not os.path.lexists(records.FOLDER):
        return []
    try:
        with records.Records(records.FOLDER, make=False) as folder:
            uuids = folder.uuids()
    except records.RecordError as error:
        remedy = "look at that folder as root: it is root's, with mode 755"
        raise WattridgeError("what was set before cannot be read", str(error), remedy) from None
    return [record for uuid in uuids if (record := left_over(uuid)) is not None]


def _by_setting(knobs: Mapping[str, Any]) -> dict[str, float | None]:
    """The settings that the knobs of a record make."""
    return {name: setting_of(name, knobs) for name in SETTINGS if not knobs.keys().isdisjoint(records.KNOBS_OF[name])}
