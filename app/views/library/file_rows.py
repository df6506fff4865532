"""`FileRow`: the profile of a program or the history of an energy test, as a row among the stored sessions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...base.formatting import counted, number
from ...engine.profile.kept_profile import DELETED, KeptProfile, kept_profiles
from ...engine.results.state import SessionState
from ...engine.session.check_history import KeptHistory, kept_histories
from ...engine.store.record import SessionRecord
from ..shared.widgets import local_time

if TYPE_CHECKING:
    from ...engine.store.database import Store

PROFILE: Final = "profile"
HISTORY: Final = "energy test"


@dataclass(frozen=True, slots=True)
class FileRow:
    """Its number is below zero; what it lacks of a session is empty."""

    id: int
    kept: KeptProfile | KeptHistory
    state: ClassVar = SessionState.DONE
    evaluated: ClassVar = 0

    @property
    def kind(self) -> str:
        return HISTORY if isinstance(self.kept, KeptHistory) else PROFILE

    @property
    def title(self) -> str:
        return self.kept.benchmark.what if isinstance(self.kept, KeptHistory) else self.kept.profile.title

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of the columns."""
        if isinstance(self.kept, KeptHistory):
            board, words = self.kept.benchmark.gpu, counted(len(self.kept.benchmark.compared), "comparison")
        else:
            of = self.kept.profile
            board, words = f"{of.gpu} ({of.source})", f"{number(of.energy_j)} J in {number(of.time_s)} s"
        return "", self.title, self.kind, words, "", board, "", "", local_time(self.created_s)

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys of the columns, to sort by."""
        return True, self.id, self.kind, 0, (), self.cells[5], "", "", self.created_s

    @property
    def created_s(self) -> float:
        return self.kept.created_s


Row = SessionRecord | FileRow


def all_rows(store: Store) -> list[Row]:
    """Sessions and what lies in files, the newest first. Raises WattridgeError if they cannot be read."""
    files: list[KeptProfile | KeptHistory] = [*kept_profiles(), *kept_histories()]
    rows = [FileRow(-place, kept) for place, kept in enumerate(files, 1)]
    return sorted([*store.sessions(), *rows], key=lambda row: -row.created_s)


def delete(store: Store, row: Row) -> None:
    """So that it can be undone. Raises WattridgeError, OSError."""
    if isinstance(row, FileRow):
        os.replace(row.kept.path, _deleted(row.kept.path))
    else:
        store.delete(row.id)


def undelete(store: Store, row: Row) -> None:
    """Put it back. Raises WattridgeError, OSError."""
    if isinstance(row, FileRow):
        os.replace(_deleted(row.kept.path), row.kept.path)
    else:
        store.undelete(row.id)


def _deleted(path: Path) -> Path:
    return path.with_name(path.name + DELETED)
