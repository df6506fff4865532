"""Commands, which go into the engine thread by a queue, and immutable events, which come out by a callback."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...base.errors import WattridgeError
from ..results.state import Progress

if TYPE_CHECKING:
    from ..control.device_log import Change
    from ..models.fit.caps import CapFit
    from ..models.fit.frequency import FrequencyFit
    from ..results.settings import BoardSettings
    from ..runner.boards import ReadyPlan
    from ..runner.pool.pool import PoolStatus
    from ..space.result_table import ResultTable
    from ..specification.plan import SessionPlan
    from .profiling import Wanted


# --- commands -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Start:
    """Run a session. The engine opens the plan's runner and closes it at the end."""

    plan: ReadyPlan


@dataclass(frozen=True, slots=True)
class Pause:
    """Pause the running session."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Continue the paused session."""


@dataclass(frozen=True, slots=True)
class Stop:
    """End what runs; a session can be resumed later."""


@dataclass(frozen=True, slots=True)
class Open:
    """Show a stored session as if it had just ended. Nothing is measured."""

    session: int


@dataclass(frozen=True, slots=True)
class Show:
    """Show a recording as if its session had just ended. Nothing is measured, and nothing stored."""

    plan: SessionPlan
    table: ResultTable


@dataclass(frozen=True, slots=True)
class Fit:
    """Fit the frequency model to a sweep of about `points` clocks of a board; a running session waits.

    It may be made at each memory clock, and the same load be measured under power limits.
    """

    board: str = ""  # UUID
    points: int = 10
    memory_clocks: bool = False
    power_limits: bool = False


@dataclass(frozen=True, slots=True)
class Profile:
    """Take the hardware counters of configurations of a stored session, on the board of that UUID."""

    session: int
    board: str
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class ForBoard:
    """A command about the settings of the board of that UUID."""

    board: str


@dataclass(frozen=True, slots=True)
class Apply(ForBoard):
    """Make settings through the DeviceGuard; `reset` restores the prior state.

    With `defaults`, `reset` unlocks what an unreadable record does not hold, and sets the default power limit.
    """

    settings: BoardSettings = field(default_factory=dict)
    reset: bool = False
    defaults: bool = False
    confirm_s: float | None = None  # the prior state returns after so long unless confirmed; None: it does not


@dataclass(frozen=True, slots=True)
class Confirm(ForBoard):
    """The answer while settings wait for one: they stay, or the values before them return at once."""

    keep: bool = True


class Allow(ForBoard):
    """Switch control on; for a real board, the user may be asked for a password."""


class Forbid(ForBoard):
    """Put everything back and switch control off."""


class Release(ForBoard):
    """Put everything back, and let go of a board that is watched no longer; `BoardReleased` answers."""


Command = Start | Open | Show | Pause | Resume | Stop | Fit | Profile | ForBoard

# --- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A session began, or is only shown."""

    session: int  # 0: it has no number, as it is not stored
    plan: SessionPlan
    table: ResultTable  # of a resumed session, with the measurements before
    running: bool = True  # False: a stored session that is only shown


@dataclass(frozen=True, slots=True)
class StartFailed:
    """No session of the plan began; an `EngineFault` gives the reason, too."""

    plan: SessionPlan
    reason: str


@dataclass(frozen=True, slots=True)
class Preparing:
    """The preparation of a runner before it measures; it is not part of the session's time."""

    what: str  # in words
    done_s: float
    total_s: float  # at most; it never grows, and done / total never falls


@dataclass(frozen=True, slots=True)
class MeasurementsAdded:
    """The table grew to `length`; sent at most every 50 ms. All its measurements are on disk already."""

    session: int
    length: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class FiguresRestated:
    """All figures were corrected by what the session has learnt of its board, or got counters; on disk already."""

    session: int
    plan: SessionPlan  # its origin has the condition that they are stated for
    table: ResultTable  # in place of the one before, with the same rows
    progress: Progress


@dataclass(frozen=True, slots=True)
class SessionRemark:
    """A report of the strategy about its search, in words."""

    session: int
    text: str


@dataclass(frozen=True, slots=True)
class PoolReported:
    """The work of a pool's boards for the session, also before it starts; several a second at most."""

    status: PoolStatus
    remark: str = ""  # one line for the user


@dataclass(frozen=True, slots=True)
class SessionChanged:
    """Paused, resumed or ended; `reason` in words where it is not obvious."""

    progress: Progress
    reason: str = ""


@dataclass(frozen=True, slots=True)
class FitProgress:
    """Sent at the beginning too, with nothing done; `total` is 0 if nothing is swept."""

    done: int
    total: int
    what: str = "clocks"


@dataclass(frozen=True, slots=True)
class FitFinished:
    """The fit of a sweep."""

    fit: FrequencyFit
    source: str  # what it was fitted to, in words, with 'simulated' or 'recorded' where that applies
    caps: CapFit | None = None  # of the same load, where power limits were swept too


@dataclass(frozen=True, slots=True)
class FitFailed:
    """A sweep or its fit ended without a result; an `EngineFault` gives the reason."""


@dataclass(frozen=True, slots=True)
class ProfilingProgress:
    """Sent at the beginning too, with nothing done; `total` is 0 while it is not known."""

    session: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class ProfilingFinished:
    """A profiler's pass ended."""

    session: int
    words: str  # the outcome; empty if it failed, for the reason in an `EngineFault`


@dataclass(frozen=True, slots=True)
class SettingApplied:
    """The settings of a board after a command."""

    board: str  # UUID
    applied: dict[str, float | None]
    observed: dict[str, float | None]
    obeyed: bool
    message: str
    prior: dict[str, float | None] = field(default_factory=dict)
    confirm_s: float | None = None  # until the prior state returns; None: nothing waits to be confirmed


@dataclass(frozen=True, slots=True)
class ControlChanged:
    """Whether settings may be made by hand, and who holds the rights."""

    board: str
    allowed: bool
    holder: int | None  # their process; None while there is none
    notes: tuple[str, ...] = ()  # what the user should know before the first setting


@dataclass(frozen=True, slots=True)
class DeviceChanged:
    """A setting was made or put back, or refused; one line of the log."""

    change: Change


@dataclass(frozen=True, slots=True)
class BoardReleased:
    """The engine does not use the board any more: it may be closed."""

    board: str


@dataclass(frozen=True, slots=True)
class EngineFault:
    """A failure that is shown to the user, in one line with the remedy."""

    what: str
    remedy: str = ""

    @classmethod
    def of(cls, error: WattridgeError) -> EngineFault:
        """The fault of an error, with its place."""
        return cls(f"{error.where}: {error.what}" if error.where else error.what, error.remedy)


# Of a session, whether it tunes, replays or measures a board's roofline.
SessionEvent = SessionStarted | Preparing | MeasurementsAdded | FiguresRestated | SessionRemark | SessionChanged
Event = (
    SessionEvent
    | StartFailed
    | PoolReported
    | FitProgress
    | FitFinished
    | FitFailed
    | ProfilingProgress
    | ProfilingFinished
    | SettingApplied
    | ControlChanged
    | DeviceChanged
    | BoardReleased
    | EngineFault
)
