"""`Boards`, what a session measures on, and `open_runner`, the only place that opens devices for one.

A plan is data; a `ReadyPlan` is one with the boards that it was made for.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ...base.errors import WattridgeError
from ...sensors.gpu import Gpu
from ...sensors.limits import DeviceLimits
from ..metering.external_meters import Beside, MeterChoice
from ..results.measurement import Configuration
from ..space.device_settings import SettingValues
from ..space.search_space import SearchSpace
from ..specification.model import Specification
from ..specification.plan import SessionPlan
from .base import Runner

Report = Callable[[Any, str], None]  # `PoolStatus` of several boards; a line for the user that may come with it


def no_report(status: Any, remark: str) -> None:
    """What the boards do is not of interest."""


class Boards:
    """What a plan is measured on. By itself it measures nothing: a plan on it is for looking at."""

    def runner(self, plan: SessionPlan, report: Report = no_report) -> Runner:
        """The runner of a plan, its devices opened. Raises WattridgeError and InputError."""
        raise WattridgeError("this plan is for looking at", plan.title, "resume the session")

    def beside(self, meters: MeterChoice) -> AbstractContextManager[Beside | None]:
        """Put meters beside the board. Raises InputError and SensorError."""
        return nullcontext()


class InProcess(Boards):
    """What is in this process already: a recording that was read, or a script's functions."""

    def __init__(self, make: Callable[[SessionPlan], Runner]) -> None:
        self._make = make

    def runner(self, plan: SessionPlan, report: Report = no_report) -> Runner:
        return self._make(plan)


class TunedBoards(Boards, ABC):
    """Boards that a specification can be planned for: one, or several of one model as one."""

    gpu: Gpu  # its facts and clocks are those of a plan
    options: tuple[str, ...] | None = None  # of a command that uses the same boards, where they are several

    @abstractmethod
    def require_runnable(self, spec: Specification) -> tuple[DeviceLimits, tuple[str, ...]]:
        """The limits and notes on the session, once it is known that the specification can run.

        Nothing has been swept or measured then. Raises InputError and WattridgeError.
        """

    @abstractmethod
    def allowed_settings(self, wanted: Mapping[str, SettingValues]) -> tuple[dict[str, SettingValues], tuple[str, ...]]:
        """The settings that may be made, the rights for them obtained, and notes on the others.

        Raises WattridgeError, and InputError for clocks that would have to be swept first where that is not possible.
        """

    def offers(self, spec: Specification) -> tuple[Sequence[Configuration], str]:
        """Rows of other makers than the kernel's own for an operator, what the vendor's library does by itself first.

        And why the library does it not, where it has none.
        """
        return (), ""

    def model_range(
        self, on_progress: Callable[[int, int], None] | None, stop: threading.Event | None
    ) -> tuple[float, float]:
        """The clocks within 10 % of the optimum of a model, MHz, by a sweep made now. Raises WattridgeError."""
        raise NotImplementedError("settings by a model are not allowed here")

    @abstractmethod
    def require_settings(self, names: Sequence[str]) -> None:
        """Obtain the rights for settings that a session needs, so that it fails now rather than at its first
        measurement. Raises WattridgeError."""

    @abstractmethod
    def require_space(self, spec: Specification, space: SearchSpace) -> None:
        """Check what no configuration of the space could do. Raises WattridgeError and InputError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadyPlan(SessionPlan):
    """A plan with the boards that it was made for."""

    boards: Boards = field(default_factory=Boards, compare=False, repr=False)


@contextmanager
def open_runner(plan: SessionPlan, boards: Boards, report: Report = no_report) -> Iterator[Runner]:
    """Open what a plan is measured on, with its meters beside; both are released at the end.

    Parameters
    ----------
    plan
        What is to be measured.
    boards
        Where.
    report
        Called with what several boards do, as it changes.

    Yields
    ------
    The runner of the plan.
    """
    with boards.beside(plan.meters) as beside, closing(boards.runner(plan, report)) as runner:
        runner.meters = () if beside is None else beside.of_the_board
        yield runner


def as_they_are(refused: Mapping[str, str]) -> tuple[str, ...]:
    """Notes on settings that are left out, by the reasons."""
    return tuple(f"{name} stays as it is: {why}" for name, why in refused.items())
