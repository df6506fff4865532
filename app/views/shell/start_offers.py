"""What a program that ended badly left behind, offered once at the start: a cut-off session, settings of a board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...engine.session.events import Apply
from ...engine.session_state import Purpose, SessionState
from ...sensors.gpu import Gpu
from ..session_words import measured_words
from ..settings import Settings
from .banner import Banner

if TYPE_CHECKING:
    from ...engine.control.left_over import LeftOver
    from ...engine.store.record import SessionRecord

_RECOVERY = "recovery"


def offer_left_over(banner: Banner, found: LeftOver | None, gpu: Gpu, submit: Callable[[Apply], None]) -> None:
    """Offer to restore, in one click, what a crash left set."""
    if found is None or not found.unfinished:
        return
    if found.unreadable:
        what = f"{gpu.info.label} may still be set, and its settings before are not known: {found.unreadable}."
        banner.offer(what, "Unlock, default limit", lambda: submit(Apply(gpu.info.uuid, reset=True, defaults=True)))
        return
    differences = "; ".join(found.differences(gpu)) or "it looks as before"
    what = f"A session that ended badly left {gpu.info.label} set ({differences})."
    banner.offer(what, "Put back", lambda: submit(Apply(gpu.info.uuid, reset=True)))


def offer_recovery(
    banner: Banner,
    records: Sequence[SessionRecord],
    board: str,
    settings: Settings,
    open_session: Callable[[int], None],
    resume_session: Callable[[int], None],
) -> None:
    """Offer, once, the newest session that was running when its program ended; `board` is the label of the window's."""
    cut_off = next((record for record in records if record.state is SessionState.INTERRUPTED), None)
    if cut_off is None:
        return
    mark = f"{cut_off.id} {cut_off.evaluated}"
    if settings.said(_RECOVERY) == mark:
        return
    settings.note_said(_RECOVERY, mark)
    what = (
        f"Session {cut_off.id}, {cut_off.shown_name}, was running when the program ended: "
        f"{measured_words(cut_off.evaluated, cut_off.budget, cut_off.timed)}, nothing of it is lost."
    )
    if cut_off.purpose is Purpose.ROOFLINE:
        banner.offer(what, "Open", lambda: open_session(cut_off.id))
    elif cut_off.purpose is Purpose.REPLAY or cut_off.board == board:
        banner.offer(what, "Resume", lambda: resume_session(cut_off.id))
    else:
        banner.offer(f"{what} It was measured on {cut_off.board}.", "Open", lambda: open_session(cut_off.id))
