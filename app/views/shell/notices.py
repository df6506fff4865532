"""`Notices`: everything that the window reports, each with its time and its end. `Banner` shows one of them at a time.

News, such as a file that was written, ends once it was in sight for some seconds; a failure of what was tried once it
was in sight for minutes, or another session has started. What lasts, such as a lost sensor, ends with its cause.

What a program that ended badly left behind, offered once at the start: a cut-off session, settings of a board.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, SignalInstance, Slot

from ...base.errors import WattridgeError
from ...base.paths import data_folder
from ...engine.results.state import Purpose, SessionState
from ...engine.session.events import Apply, EngineFault, SessionStarted, SettingApplied
from ...sensors.gpu import Gpu
from ..shared.bridge import EngineBridge
from ..shared.captions import measured_words
from ..shared.settings import Settings
from ..shared.tasks import LatestTask
from ..shared.turns import timer
from .log import LOG

if TYPE_CHECKING:
    from ...engine.control.left_over import LeftOver
    from ...engine.store.record import SessionRecord


class Severity(Enum):
    """The value is for how many seconds one is shown, of those in which the window is in use; None: until it ends."""

    NEWS = 10
    FAILURE = 120
    LASTING = None


@dataclass(slots=True, eq=False)
class Notice:
    """One line, and the remedy."""

    text: str
    remedy: str
    severity: Severity
    since_s: float  # wall clock, s since the epoch
    left_s: float | None  # for which it is still shown, of those in which the window is in use
    ended_s: float | None = None
    dismissed: bool = False  # out of sight, and not over
    button: str = ""  # what is offered
    do: Callable[[], object] | None = None

    @property
    def words(self) -> str:
        """The text with its remedy."""
        return f"{self.text} · {self.remedy}" if self.remedy else self.text


_KEPT = 200
_TICK_MS = 1000
_FULL = re.compile("no space left|disk is full|disk quota", re.IGNORECASE)
_ENOUGH_BYTE = 50_000_000


class Notices(QObject):
    """`all` holds the last ones, the newest last; `current` is the one in sight."""

    changed = Signal()
    added = Signal(object)  # Notice

    def __init__(self, in_use: Callable[[], bool], parent: QObject | None = None) -> None:
        """`in_use`: whether the user looks at the window."""
        super().__init__(parent)
        self._in_use = in_use
        self.all: deque[Notice] = deque(maxlen=_KEPT)
        self._timer = timer(self, self._tick, _TICK_MS)
        self._disk = LatestTask(self, self._room_found)

    def follow(self, bridge: EngineBridge) -> None:
        """Show faults of the engine and of views; those of a session are over once another has started."""
        bridge.subscribe(EngineFault, self.show_fault)
        for roofline in (False, True):
            bridge.subscribe(SessionStarted, self._session_started, roofline=roofline)
        bridge.resolved.connect(self.end)

    @property
    def open(self) -> list[Notice]:
        """Those that are neither over nor dismissed, the newest last."""
        return [notice for notice in self.all if notice.ended_s is None and not notice.dismissed]

    @property
    def problems(self) -> list[Notice]:
        """What is wrong now, dismissed or not."""
        return [notice for notice in self.all if notice.ended_s is None and notice.severity is not Severity.NEWS]

    @property
    def current(self) -> Notice | None:
        """The newest of them."""
        return next(reversed(self.open), None)

    @Slot(object)
    def show_fault(self, fault: EngineFault) -> None:
        """Report a fault of the engine or of a view."""
        self.fail(fault.what, fault.remedy)

    @Slot(str, str)
    def fail(self, what: str, remedy: str = "") -> None:
        """Report that something that was tried has failed."""
        self._add(what, remedy, Severity.FAILURE)
        self._look_at_disk()

    @Slot(object)
    def written(self, path: object) -> None:
        """Report a file that was written."""
        self.inform(f"Written: {path}")

    @Slot(str)
    def inform(self, what: str) -> None:
        """Report what needs no action, in place of the news before."""
        self._end([notice for notice in self.open if notice.severity is Severity.NEWS and notice.text != what])
        self._add(what, "", Severity.NEWS)

    def warn(self, what: str, button: str = "", do: Callable[[], object] | None = None) -> None:
        """Report what lasts until `end`, or until a button has done something about it."""
        self._add(what, "", Severity.LASTING, button, do)

    @Slot(str, str)
    def end(self, what: str, remedy: str = "") -> None:
        """The cause is gone; nothing where there is no such notice."""
        self._end([notice for notice in self.all if (notice.text, notice.remedy) == (what, remedy)])

    def end_on(self, signal: SignalInstance, is_over: Callable[[Any], bool], what: str) -> None:
        """End one with the first signal of which that is true."""
        _End(self, signal, is_over, what)

    @Slot()
    def dismiss(self) -> None:
        """Put the one in sight out of sight; what lasts stays in the list as it is."""
        if (notice := self.current) is not None:
            notice.dismissed = True
            self.changed.emit()

    def accept(self, notice: Notice) -> None:
        """Do what it offers."""
        do, notice.do, notice.button = notice.do, None, ""
        self._end([notice])
        if do is not None:
            do()

    def _add(
        self, what: str, remedy: str, severity: Severity, button: str = "", do: Callable[[], object] | None = None
    ) -> None:
        """One that is there already is the newest again."""
        notice = Notice(what, remedy, severity, time.time(), severity.value, button=button, do=do)
        LOG.log(20 if severity is Severity.NEWS else 30, "%s", notice.words)
        for same in [each for each in self.all if each.words == notice.words and each.ended_s is None]:
            if same.severity is Severity.LASTING:
                notice.since_s = same.since_s
            self.all.remove(same)
        self.all.append(notice)
        self._timer.start()
        self.changed.emit()
        self.added.emit(notice)

    def _end(self, notices: Sequence[Notice]) -> None:
        over = [notice for notice in notices if notice.ended_s is None]
        for notice in over:
            notice.ended_s, notice.do, notice.button = time.time(), None, ""
        if over:
            self.changed.emit()

    @Slot()
    def _tick(self) -> None:
        shown = [notice for notice in self.all if notice.ended_s is None]
        if not shown:
            self._timer.stop()
        elif self._in_use():
            for notice in shown:
                notice.left_s = None if notice.left_s is None else notice.left_s - _TICK_MS / 1000
            self._end([notice for notice in shown if notice.left_s is not None and notice.left_s <= 0])
        self._look_at_disk()

    @Slot(object)
    def _session_started(self, event: SessionStarted) -> None:
        if event.running:
            self._end([notice for notice in self.all if notice.severity is Severity.FAILURE])

    # --- a full disk lasts --------------------------------------------------------------------------------------------

    def _look_at_disk(self) -> None:
        if not self._disk.busy and any(_FULL.search(notice.words) and notice.ended_s is None for notice in self.all):
            self._disk.run(lambda _stop: _free_byte())

    @Slot(object)
    def _room_found(self, free_byte: int) -> None:
        """While the disk of the data folder is full, notices of full disks last; then they are over."""
        full = [notice for notice in self.all if notice.ended_s is None and _FULL.search(notice.words)]
        if free_byte >= _ENOUGH_BYTE:
            self._end([notice for notice in full if notice.severity is Severity.LASTING])
        else:
            for notice in full:
                notice.severity, notice.left_s = Severity.LASTING, None


def _free_byte() -> int:
    try:
        return shutil.disk_usage(data_folder()).free
    except (OSError, WattridgeError):
        return _ENOUGH_BYTE  # it is not known: the notice is one as any other


class _End(QObject):
    """Ends a notice once. A function that a signal holds would keep the notices, and their window, for ever."""

    def __init__(self, notices: Notices, signal: SignalInstance, is_over: Callable[[Any], bool], what: str) -> None:
        super().__init__(notices)
        self._notices, self._is_over, self._what = notices, is_over, what
        signal.connect(self._received)

    @Slot(object)
    def _received(self, sent: object) -> None:
        if self._is_over(sent):
            self._notices.end(self._what)
            self.deleteLater()


_RECOVERY = "recovery"


def offer_left_over(notices: Notices, left_over: LeftOver | None, gpu: Gpu, bridge: EngineBridge) -> None:
    """Offer to restore, in one click, what a crash left set, until that is done wherever."""
    if left_over is None or not left_over.unfinished:
        return
    uuid, unknown = gpu.info.uuid, bool(left_over.unreadable)
    if unknown:
        what = f"{gpu.info.label} may still be set, and its settings before are not known: {left_over.unreadable}."
    else:
        differences = "; ".join(left_over.differences(gpu)) or "it looks as before"
        what = f"A session that ended badly left {gpu.info.label} set ({differences})."
    label = "Unlock, default limit" if unknown else "Put back"
    notices.warn(what, label, lambda: bridge.submit(Apply(uuid, reset=True, defaults=unknown)))
    notices.end_on(bridge.signal(SettingApplied), lambda event: event.board == uuid and not event.prior, what)


def offer_recovery(
    notices: Notices,
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
    notices.warn(what, label, lambda: do(cut_off.id))
    for roofline in (False, True):
        started = bridge.signal(SessionStarted, roofline=roofline)
        notices.end_on(started, lambda event: event.session == cut_off.id, what)
