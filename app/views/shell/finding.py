"""What Ctrl+K finds: actions, boards, settings, stored sessions, and the pages and headings of the guide."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import shiboken6
from PySide6.QtGui import QAction, QKeySequence

from ..shared.captions import provenance
from ..shared.widgets import local_time
from .help import anchor_of, guide_pages
from .palette import TICKED, Entry

if TYPE_CHECKING:
    from ...engine.store.record import SessionRecord
    from ..shared.watched_boards import WatchedBoards

BOARDS_PATH = "GPU › Open"
_MARKUP = re.compile(r"[`*]|\]\([^)]*\)|\[")


def actions(offered: Sequence[tuple[str, QAction]]) -> list[Entry]:
    """Of (path of menus, action). A menu may be filled again while they are offered."""

    def trigger(action: QAction) -> Callable[[], None]:
        return lambda: action.trigger() if shiboken6.isValid(action) else None

    return [
        Entry(
            "Boards" if path == BOARDS_PATH else "Actions",
            (TICKED if action.isCheckable() and action.isChecked() else "") + action.text().replace("&", ""),
            path,
            trigger(action),
            action.statusTip(),
            keys=action.shortcut().toString(QKeySequence.SequenceFormat.NativeText),
            enabled=action.isEnabled(),
        )
        for path, action in offered
    ]


def boards(watched: WatchedBoards, offered: Sequence[tuple[str, QAction]]) -> list[Entry]:
    """The boards that are watched and in no menu: of other machines, and recordings that were opened."""
    known = {action.data() for path, action in offered if path == BOARDS_PATH}
    return [
        Entry("Boards", watched.name_of(board), BOARDS_PATH, _shows(watched.show, board.uuid), board.uuid)
        for board in watched.all
        if not known & {board.uuid, board.selector}
    ]


def settings(rows: Mapping[str, str], show: Callable[[str], object]) -> list[Entry]:
    """Of (name, what it is) of each row of the settings."""
    return [Entry("Settings", name, "Settings", _shows(show, name), tip) for name, tip in rows.items()]


def sessions(records: Sequence[SessionRecord], open_session: Callable[[int], object]) -> list[Entry]:
    """Of stored sessions."""
    return [
        Entry(
            "Sessions",
            f"{record.shown_name} · session {record.id}",
            f"{record.gpu} · {local_time(record.created_s)}",
            _shows(open_session, record.id),
            f"{record.state.value.capitalize()}, {provenance(record)}. Enter shows it; nothing is measured",
            " ".join((record.title, record.strategy, *record.label.tags, record.label.notes)),
        )
        for record in records
    ]


def guide(show_page: Callable[[str], object]) -> list[Entry]:
    """Of the pages of the guide and their headings, found by every word that stands below them."""
    return [
        Entry("Guide", heading, title, _shows(show_page, address), "A page of the user guide", words)
        for heading, title, address, words in _sections()
    ]


def _shows(show: Callable[[Any], object], what: object) -> Callable[[], object]:
    return lambda: show(what)


@cache
def _sections() -> list[tuple[str, str, str, str]]:
    """(heading, title of its page, address, words) of every section."""
    found = []
    for title, page in guide_pages():
        fenced, heading, lines = False, title, list[str]()
        for line in (*page.read_text(encoding="utf-8").splitlines(), "# "):
            fenced ^= line.startswith("```")
            if fenced or not re.match("#+ ", line):
                lines.append(line)
                continue
            address = page.name if heading == title else f"{page.name}#{anchor_of(heading)}"
            if any(lines) or heading != title:
                found.append((heading, title, address, "\n".join(lines)))
            heading, lines = _MARKUP.sub("", line.lstrip("# ")), []
    return found
