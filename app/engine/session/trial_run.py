"""How long a session takes on a simulated board, on the board's clock: its beginning is run on a clock that is free."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING, Final

import numpy as np

from ...sensors.clock import VirtualClock
from ...sensors.simulated.gpu import SimulatedGpu
from ..runner.boards import open_runner
from ..strategies import base as strategies
from ..strategies.base import Batch, Outcome
from .planning import plan_specification

if TYPE_CHECKING:
    from ...sensors.simulated.twin import Twin
    from ..specification.model import Specification

_TRIED: Final = 64  # evaluations at least: some tenths of a second of this computer
_FIRST: Final = 20  # which a search draws at random, and which say little of how long the later ones take


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
    begun_ns = gpu.clock.now_ns()
    reached = [0.0]  # the time until each evaluation, s
    outcomes: list[Outcome] | None = None
    with open_runner(plan, plan.boards) as runner:
        search = strategy.search(plan.space, np.random.default_rng(plan.seed), runner.batch, options)
        while (left := min(_TRIED, plan.budget) - len(reached) + 1) > 0 and not stop.is_set():
            try:
                batch = Batch.of(next(search) if outcomes is None else search.send(outcomes))
            except StopIteration:
                return reached[-1]
            measured = {}
            for measurement in runner.measure(batch[:left], stop, batch.depth):
                measured[measurement.row] = Outcome.of(measurement, plan.objective)
                reached.append((gpu.clock.now_ns() - begun_ns) / 1e9)
            outcomes = [measured[row] for row in batch if row in measured]
    if stop.is_set():
        return None
    done = len(reached) - 1
    first = min(_FIRST, done // 2)
    return reached[-1] + (plan.budget - done) * (reached[-1] - reached[first]) / max(1, done - first)
