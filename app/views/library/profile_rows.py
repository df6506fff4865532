"""`ProfileRow`: a kept profile of a program as a row among the stored sessions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...base.formatting import number
from ...engine.profile.kept_profile import DELETED, KeptProfile, kept_profiles
from ...engine.results.state import SessionState
from ...engine.store.record import SessionRecord
from ..shared.widgets import local_time

if TYPE_CHECKING:
    from ...engine.store.database import Store

KIND: Final = "profile"


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """Its number is below zero; what it lacks of a session is empty."""

    id: int
    kept: KeptProfile
    state: ClassVar = SessionState.DONE
    evaluated: ClassVar = 0

    @property
    def cells(self) -> tuple[str, ...]:
        """What each column says."""
        of, when = self.kept.profile, local_time(self.created_s)
        energy = f"{number(of.energy_j)} J in {number(of.time_s)} s"
        return "", of.title, KIND, energy, "", f"{of.gpu} ({of.source})", "", "", when

    @property
    def keys(self) -> tuple[Any, ...]:
        """What each column is sorted by."""
        return True, self.id, KIND, 0, (), self.kept.profile.gpu, "", "", self.created_s

    @property
    def created_s(self) -> float:
        return self.kept.created_s


Row = SessionRecord | ProfileRow


def all_rows(store: Store) -> list[Row]:
    """Sessions and profiles, the newest first. Raises WattridgeError if they cannot be read."""
    profiles = [ProfileRow(-place, kept) for place, kept in enumerate(kept_profiles(), 1)]
    return sorted([*store.sessions(), *profiles], key=lambda row: -row.created_s)


def delete(store: Store, row: Row) -> None:
    """So that it can be undone. Raises WattridgeError, OSError."""
    if isinstance(row, ProfileRow):
        os.replace(row.kept.path, _deleted(row.kept.path))
    else:
        store.delete(row.id)


def undelete(store: Store, row: Row) -> None:
    """Put it back. Raises WattridgeError, OSError."""
    if isinstance(row, ProfileRow):
        os.replace(_deleted(row.kept.path), row.kept.path)
    else:
        store.undelete(row.id)


def _deleted(path: Path) -> Path:
    return path.with_name(path.name + DELETED)
