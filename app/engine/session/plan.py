"""`SessionPlan`: all that a session needs, resolved: the space, the runner, the strategy, the objective, the budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..measurement import Measurement
from ..objectives import Objective
from ..runner.base import Runner
from ..space.search_space import SearchSpace


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A session ready to run. `make_runner` is called on the engine thread."""

    title: str  # the kernel's or the cache's name
    gpu: str  # the board's name
    driver: str
    source: str  # nvml, simulated or recorded
    space: SearchSpace
    objective: Objective
    strategy: str
    make_runner: Callable[[], Runner]
    strategy_options: Mapping[str, Any] = field(default_factory=dict)
    max_evaluations: int | None = None
    max_seconds: float | None = None
    patience: int | None = None  # evaluations without a better one after which the session ends
    seed: int = 0
    units: Mapping[str, str] = field(default_factory=dict)  # unit of a value where its name does not tell
    resume: int | None = None  # id of a stored session whose measurements are taken over
    follow: Path | None = None  # a growing cache that is shown instead of a search
    known: tuple[Measurement, ...] = ()  # of a file: they count as evaluated from the start
    origin: Mapping[str, str] = field(default_factory=dict)  # file and gpu selector: what a resume needs
