"""How long a session takes on a simulated board, on the board's clock: it is run on a clock that is free."""

from __future__ import annotations

import math
from threading import Event
from typing import TYPE_CHECKING

import numpy as np

from ...sensors.clock import VirtualClock
from ...sensors.simulated.gpu import SimulatedGpu
from ..results.measurement import Depth
from ..runner.boards import open_runner
from ..space.result_table import ResultTable
from ..strategies import base as strategies
from ..strategies.base import Batch, Outcome
from .finals import play
from .planning import plan_specification
from .run import background_of

if TYPE_CHECKING:
    from ...sensors.simulated.twin import Twin
    from ..specification.model import Specification


def trial_time_s(spec: Specification, twin: Twin, stop: Event) -> float | None:
    """Predict the time of a session as its specification has it, within a third on the examples. Nothing is stored.

    Parameters
    ----------
    spec : Specification
        What is to be measured. A program takes its own time, on whichever board.
    twin : Twin
        The simulated board.
    stop : threading.Event
        Ends the trial.

    Returns
    -------
    float or None
        Seconds on the board's clock; None where `stop` was set, and for a program.

    Raises
    ------
    InputError
        If the board cannot run it.
    """
    if spec.command is not None:
        return None
    gpu = SimulatedGpu(twin, clock=VirtualClock())
    plan = plan_specification(spec, gpu, stop=stop)
    strategy = strategies.get(plan.strategy)
    options = strategies.make_options(strategy, dict(plan.strategy_options))
    table, begun_ns = ResultTable(plan.space), gpu.clock.now_ns()
    best, best_after, evaluated = math.inf, 0, 0
    outcomes: list[Outcome] | None = None
    with open_runner(plan, plan.boards) as runner:
        informed = strategy.informed(background_of(runner, plan, stop))
        search = informed.search(plan.space, np.random.default_rng(plan.seed), runner.batch, options)
        while evaluated < plan.budget and evaluated - best_after < (plan.patience or math.inf) and not stop.is_set():
            try:
                batch = Batch.of(next(search) if outcomes is None else search.send(outcomes))
            except StopIteration:
                break
            left = plan.budget - evaluated if batch.depth is Depth.ENERGY else len(batch)
            measured = {each.row: each for each in runner.measure(batch[:left], stop, batch.depth)}
            found = {row: Outcome.of(each, plan.objective) for row, each in measured.items()}
            table.extend(measured.values())
            if batch.depth is Depth.ENERGY:
                evaluated += len(measured)
                least = min((outcome.cost for outcome in found.values()), default=math.inf)
                best, best_after = (least, evaluated) if least < best else (best, best_after)
            outcomes = [found[row] for row in batch if row in found]
        play(runner, table, plan, stop, (), lambda _: None)
    return None if stop.is_set() else (gpu.clock.now_ns() - begun_ns) / 1e9
