"""What a program that ended badly left behind, offered once at the start: a cut-off session, settings of a board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...engine.results.state import Purpose, SessionState
from ...engine.session.events import Apply, SessionStarted, SettingApplied
from ...sensors.gpu import Gpu
from ..shared.captions import measured_words
from ..shared.settings import Settings
from .banner import Banner

if TYPE_CHECKING:
    from ...engine.control.left_over import LeftOver
    from ...engine.store.record import SessionRecord
    from ..shared.bridge import EngineBridge

_RECOVERY = "recovery"


def offer_left_over(banner: Banner, found: LeftOver | None, gpu: Gpu, bridge: EngineBridge) -> None:
    """Offer to restore, in one click, what a crash left set, until that is done wherever."""
    if found is None or not found.unfinished:
        return
    uuid, unknown = gpu.info.uuid, bool(found.unreadable)
    if unknown:
        what = f"{gpu.info.label} may still be set, and its settings before are not known: {found.unreadable}."
    else:
        differences = "; ".join(found.differences(gpu)) or "it looks as before"
        what = f"A session that ended badly left {gpu.info.label} set ({differences})."
    label = "Unlock, default limit" if unknown else "Put back"
    banner.offer(what, label, lambda: bridge.submit(Apply(uuid, reset=True, defaults=unknown)))
    banner.withdraw_on(bridge.signal(SettingApplied), lambda event: event.board == uuid and not event.prior, what)


def offer_recovery(
    banner: Banner,
    records: Sequence[SessionRecord],
    board: str,
    settings: Settings,
    open_session: Callable[[int], None],
    resume_session: Callable[[int], None],
    bridge: EngineBridge,
) -> None:
    """Offer, once, the newest session that was running when its program ended; `board` is the label of the window's.

    What is shown or continued otherwise is offered no more.
    """
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
    here = cut_off.purpose is Purpose.REPLAY or cut_off.board == board
    resumed = here and cut_off.purpose is not Purpose.ROOFLINE
    if not here and cut_off.purpose is not Purpose.ROOFLINE:
        what += f" It was measured on {cut_off.board}."
    label, do = ("Resume", resume_session) if resumed else ("Open", open_session)
    banner.offer(what, label, lambda: do(cut_off.id))
    for roofline in (False, True):
        started = bridge.signal(SessionStarted, roofline=roofline)
        banner.withdraw_on(started, lambda event: event.session == cut_off.id, what)
