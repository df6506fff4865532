"""What a session is for, and where it stands: its state, and its counts and times so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .health import Health


class Purpose(StrEnum):
    """The purpose of a session. A roofline measures a board rather than a kernel, and is no tuning result."""

    TUNING = "tuning"
    REPLAY = "replay"  # answered from a recording
    ROOFLINE = "roofline"


class SessionState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"  # the strategy ended or the budget was reached
    STOPPED = "stopped"  # the user stopped it
    FAILED = "failed"  # the runner or the GPU went away, or most measurements lack the objective's figure
    INTERRUPTED = "interrupted"  # the program died; found at the next start

    @property
    def alive(self) -> bool:
        """Whether it may still measure."""
        return self in (SessionState.RUNNING, SessionState.PAUSED)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a session stands. Rates and times are on the wall clock."""

    session: int
    state: SessionState
    evaluated: int  # measured in full
    failed: int
    budget: int  # evaluations at most: the budget or the size of the space; 0 while unknown
    elapsed_s: float
    rate_per_s: float
    eta_s: float | None  # None until a rate is known
    best_index: int | None  # index into the result table
    best_value: float | None  # of the objective, in its own unit and sign
    timed: int = 0  # those that were only timed, beside the evaluated ones
    strategy_s: float = 0.0  # of them, what the strategy took to choose rows
    health: Health = field(default_factory=Health)  # a few seconds old while it runs
