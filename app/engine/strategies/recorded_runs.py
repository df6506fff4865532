"""Runs of strategies on recorded spaces, which score them: no board, no store, the generators driven directly."""

from __future__ import annotations

import multiprocessing
import signal
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...base.errors import InputError
from ..children.ending import end_with_parent
from ..children.python import multiprocessing_without_working_directory
from ..formats.read import read_recording
from ..formats.recording import Recording
from ..results.measurement import Depth
from ..results.objectives import Goal, Objective
from ..runner.replay import at_time
from ..space.search_space import SearchSpace
from . import base, scoring
from .base import Batch, Outcome
from .scoring import Baseline, Floats, FrontBaseline, Interval, Yardstick

Task = tuple[str, str, int]  # space, strategy, repeat
_POLL_S = 0.1  # between checks of `stop` while other processes work


@dataclass(frozen=True)
class Recorded:
    """A recorded space: the outcome of each row, as a strategy would be sent it."""

    name: str
    space: SearchSpace
    outcomes: tuple[Outcome, ...]  # one per row
    seconds: Floats | None  # what evaluating each row cost, where that is known of all
    timed: tuple[Outcome, ...] = ()  # one per row, as it is sent where only its time was asked for
    timing_saves: bool = False  # timing tells something of the goals, and not all: as in a session, it is used then

    def front_values(self, maximise: Sequence[bool]) -> Floats:
        """The goals of the front as they were measured.

        Parameters
        ----------
        maximise : sequence of bool
            Of each goal, whether larger is better.

        Returns
        -------
        array, shape (rows, goals)
            NaN if a row failed or lacks one.
        """
        costs = np.array([outcome.front for outcome in self.outcomes])
        return np.where(np.isfinite(costs), np.where(maximise, -costs, costs), np.nan)

    @property
    def costs(self) -> Floats:
        """The cost of each row, inf if it failed."""
        return np.array([outcome.cost for outcome in self.outcomes])


def recorded(cache: Recording, goal: Goal | None = None, front: Sequence[Goal] = ()) -> Recorded:
    """A cache as strategies see it.

    Parameters
    ----------
    cache : Recording
        The recorded space.
    goal : Goal or None, optional
        What the costs are of; the cache's own objective if None.
    front : sequence of Goal, optional
        The goals of the front; empty if there is none.

    Returns
    -------
    Recorded

    Raises
    ------
    InputError
        If the cache does not hold a goal's value.
    """
    goal = goal or cache.goal
    for wanted in (goal, *front):
        if wanted.name not in cache.value_names:
            choices = ", ".join(cache.value_names)
            raise InputError(f"there is no value '{wanted.name}'", str(cache.path), f"known: {choices}")
    measured, objective, names = cache.measurements(), Objective(goal, tuple(front)), cache.names_at_time
    seconds = np.array([m.cost_s for m in measured])
    wanted_names = {wanted.name for wanted in (goal, *front)}
    return Recorded(
        name=cache.path.name.removesuffix(".gz").removesuffix(".json"),
        space=cache.space(),
        outcomes=tuple(Outcome.of(m, objective) for m in measured),
        timed=tuple(Outcome.of(at_time(m, names), objective) for m in measured),
        timing_saves="time_s" in names and not wanted_names <= names,
        seconds=seconds if (seconds > 0).all() else None,
    )


class Look(NamedTuple):
    """A row that a strategy looked at: timed, or evaluated."""

    row: int
    depth: Depth


class Allowance(Protocol):
    """How much a run may look at."""

    @property
    def budget(self) -> float: ...

    def spent(self, rows: Sequence[int], depth: Depth) -> float:
        """What looking at rows takes of the budget.

        Parameters
        ----------
        rows : sequence of int
            The rows.
        depth : Depth
            How deep all of them are looked at.

        Returns
        -------
        float
            In the unit of the budget.
        """
        ...


def run(
    strategy: str,
    options: Mapping[str, Any],
    on: Recorded,
    allowance: Allowance,
    rng: np.random.Generator,
    batch: int,
    *,
    can_time: bool | None = None,
    boards: int = 1,
) -> list[Look]:
    """The rows a strategy looks at, in order, until it ends or its budget is spent.

    Parameters
    ----------
    strategy : str
        Its name.
    options : mapping of str to object
        Its options, as text or as TOML has them.
    on : Recorded
        The space that it searches.
    allowance : Allowance
        The budget, and what each look takes of it.
    rng : numpy.random.Generator
        Draws all that is random in the search.
    batch : int
        How many rows it may ask for at once.
    can_time : bool or None, optional
        Whether rows are timed where it asks for that. If None, they are where a session would: there timing saves
        something. If not, a strategy that asks for times is answered as by a board that cannot time rows: with their
        energy, at its price.
    boards : int, optional
        How many measure at the same time; the strategy hears of a batch when all of it is known.

    Returns
    -------
    list of Look

    Raises
    ------
    InputError
        If the strategy or an option is unknown, or the value of an option wrong.
    """
    chosen = base.get(strategy).informed(base.Background(boards=lambda: boards))
    search = chosen.search(on.space, rng, batch, base.make_options(chosen, dict(options)))
    can_time = on.timing_saves if can_time is None else can_time
    looks: list[Look] = []
    left = allowance.budget
    try:
        asked = Batch.of(next(search))
        while True:
            depth = asked.depth if can_time else Depth.ENERGY
            looks.extend(Look(row, depth) for row in asked)
            left -= allowance.spent(asked, depth)
            if left <= 0:
                break
            outcomes = on.outcomes if depth is Depth.ENERGY else on.timed
            asked = Batch.of(search.send([outcomes[row] for row in asked]))
    except StopIteration:
        pass
    finally:
        search.close()
    return looks


@dataclass(frozen=True)
class ScorePlan:
    """What to score: every strategy on every cache, `repeats` times."""

    caches: tuple[Path, ...]
    strategies: tuple[str, ...]
    repeats: int = 25
    seed: int = 1
    goal: Goal | None = None  # the cache's own objective if none is given
    front: tuple[Goal, ...] = ()  # two goals: the hypervolume counts instead
    over_time: bool = False  # seconds of evaluating, as the cache has them, instead of evaluations
    batch: int = 1  # rows a strategy may ask for at once
    boards: int = 1  # that measure at the same time
    options: Mapping[str, Any] = field(default_factory=dict)  # of every strategy
    jobs: int | None = None  # processes of their own that do it; None: this one


@dataclass(frozen=True)
class Scores:
    """The advantage over chance of each run at each of its space's points: space -> strategy -> (repeats, points)."""

    advantages: Mapping[str, Mapping[str, Floats]]
    points: Mapping[str, Floats]  # of each space, evaluations or seconds
    evaluations: Mapping[str, int]  # the budget of each space
    unit: str  # of the points: "evaluations" or "s"
    timed: Sequence[str] = ()  # the spaces in which a strategy may have a row timed first

    @cached_property
    def runs(self) -> dict[str, dict[str, Floats]]:
        """The score of each run: space -> strategy -> (repeats,)."""
        return {
            space: {name: np.nanmean(curves, axis=1) for name, curves in of_space.items()}
            for space, of_space in self.advantages.items()
        }

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(next(iter(self.advantages.values())))

    def score(self, space: str, strategy: str) -> Interval:
        """The score of a strategy on one space.

        Parameters
        ----------
        space, strategy : str
            Their names.

        Returns
        -------
        Interval
        """
        return scoring.mean_interval(self.runs[space][strategy])

    def overall(self, strategy: str) -> Interval:
        """The mean of a strategy's scores over the spaces.

        Parameters
        ----------
        strategy : str
            Its name.

        Returns
        -------
        Interval
        """
        return scoring.mean_over_spaces([of_space[strategy] for of_space in self.runs.values()])

    def curve(self, space: str, strategy: str) -> tuple[Floats, Floats, Floats]:
        """The mean advantage of a strategy on one space at each of its points, with its interval.

        Parameters
        ----------
        space, strategy : str
            Their names.

        Returns
        -------
        mean, low, high : array, shape (points,)
        """
        return scoring.mean_curve(self.advantages[space][strategy])

    @cached_property
    def wins(self) -> dict[str, dict[str, int]]:
        """wins[a][b]: on how many spaces a is significantly better than b."""
        return scoring.pairwise_wins(self.runs)


class _Bench:
    """The spaces of a plan, read and ready."""

    def __init__(self, plan: ScorePlan) -> None:
        self.plan = plan
        self.spaces: dict[str, tuple[Recorded, Yardstick]] = {}
        for path in plan.caches:
            space = recorded(read_recording(path), plan.goal, plan.front)
            if plan.over_time and space.seconds is None:
                raise InputError("it lacks the cost of each evaluation", str(path), "leave out --over-time")
            if space.name in self.spaces:
                raise InputError(f"two caches are called {space.name}", str(path), "rename one")
            maximise = [goal.maximise for goal in plan.front]
            chance = FrontBaseline(space.front_values(maximise), maximise) if plan.front else Baseline(space.costs)
            self.spaces[space.name] = (space, Yardstick(chance, space.seconds if plan.over_time else None))

    def advantage(self, task: Task) -> Floats:
        """One run; its chance depends on the seed, the strategy and the repeat alone."""
        name, strategy, repeat = task
        space, yardstick = self.spaces[name]
        rng = np.random.default_rng((self.plan.seed, zlib.crc32(strategy.encode()), repeat))
        looks = run(strategy, self.plan.options, space, yardstick, rng, self.plan.batch, boards=self.plan.boards)
        return yardstick.advantage([look.row for look in looks], [look.depth for look in looks])


_bench: _Bench | None = None  # of a process of the pool


def _open(plan: ScorePlan) -> None:
    global _bench
    end_with_parent()
    _bench = _Bench(plan)


def _work(task: Task) -> tuple[Task, Floats]:
    assert _bench is not None
    return task, _bench.advantage(task)


def score(
    plan: ScorePlan,
    stop: threading.Event,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Scores | None:
    """Run and score. The same seed gives the same figures with any number of jobs.

    Parameters
    ----------
    plan : ScorePlan
        What to score.
    stop : threading.Event
        Ends the work early once it is set.
    on_progress : callable, optional
        Called after each run with the number of runs done and that of all.

    Returns
    -------
    Scores or None
        None where `stop` was set.

    Raises
    ------
    InputError
        For a bad file, an unknown strategy, option or goal, and a space if nothing is to be found.
    """
    for name in plan.strategies:
        base.make_options(base.get(name), dict(plan.options))
    if len(plan.front) not in (0, 2):
        raise InputError("a front is scored over two goals", "--front", "write max:A,min:B")
    bench = _Bench(plan)
    tasks = [(s, name, repeat) for repeat in range(plan.repeats) for s in bench.spaces for name in plan.strategies]
    curves: dict[Task, Floats] = {}
    here = ((task, bench.advantage(task)) for task in takewhile(lambda _: not stop.is_set(), tasks))
    work = _in_processes(plan, plan.jobs, tasks, stop) if plan.jobs else here
    for task, advantage in work:
        curves[task] = advantage
        on_progress(len(curves), len(tasks))
    if len(curves) < len(tasks):
        return None
    return Scores(
        advantages={
            space: {name: np.array([curves[space, name, r] for r in range(plan.repeats)]) for name in plan.strategies}
            for space in bench.spaces
        },
        points={name: yardstick.points for name, (_, yardstick) in bench.spaces.items()},
        evaluations={name: yardstick.chance.budget for name, (_, yardstick) in bench.spaces.items()},
        unit="s" if plan.over_time else "evaluations",
        timed=[name for name, (space, _) in bench.spaces.items() if space.timing_saves],
    )


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Processes started here never see Ctrl+C, which a terminal sends to all: they end when this one ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    resource_tracker.ensure_running()  # starting it later would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _in_processes(
    plan: ScorePlan, jobs: int, tasks: Sequence[Task], stop: threading.Event
) -> Iterator[tuple[Task, Floats]]:
    """Runs done by processes of their own, in any order; leaving it ends them at once."""
    with multiprocessing_without_working_directory(), _interrupts_held():
        workers = multiprocessing.get_context("spawn").Pool(jobs, initializer=_open, initargs=(plan,))
    with workers as pool:
        results = pool.imap_unordered(_work, tasks)
        while not stop.is_set():
            try:
                yield results.next(timeout=_POLL_S)
            except multiprocessing.TimeoutError:
                continue
            except StopIteration:
                return
