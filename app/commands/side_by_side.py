"""Specifications on several boards at the same time, and their comparison, for `wattridge compare` and `tune`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack, closing
from itertools import chain
from typing import TYPE_CHECKING

from ..base.errors import InputError, WattridgeError
from ..base.formatting import number
from ..base.records import as_json
from ..engine.session.named import specification_path
from .arguments import search_options, store_of
from .terminal import ProgressBar, print_description, print_json, say, show, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.runner.boards import ReadyPlan
    from ..engine.runner.pool.pooled_gpu import PooledGpu
    from ..engine.session.opened import Opened
    from ..engine.specification.model import Specification


def measured_sessions(sources: Sequence[str], arguments: Namespace) -> list[Opened]:
    """Tune these specifications on every board of --gpu, all boards at once; the sessions, board by board.

    Raises InputError if no boards are named, or one twice, and WattridgeError if a session fails.
    """
    from ..engine.session.load import load_specification
    from ..engine.session.planning import plan_specification
    from ..sensors.select import open_gpu
    from .control import guard_of

    specifications = [load_specification(specification_path(source)) for source in sources]
    names = _boards(arguments, specifications)
    speed = arguments.speed if all(spec.command is None for spec in specifications) else 1.0  # programs take real time
    options = search_options(arguments, arguments.repeats)
    with ExitStack() as stack:
        plans = []
        for name in names:
            gpu = stack.enter_context(closing(open_gpu(name, seed=arguments.sim_seed, speed=speed)))
            guard = stack.enter_context(closing(guard_of(gpu, arguments)))
            plans.append([plan_specification(spec, gpu, options, guard=guard) for spec in specifications])
        return _tuned(plans, "boards", arguments)


def tuned_by_models(specification: Specification, models: Sequence[PooledGpu], arguments: Namespace) -> list[Opened]:
    """Tune it on the boards of each model of a pool, all models at once; the sessions, one for each.

    Raises InputError for what is for one session alone, and WattridgeError if a session fails.
    """
    from ..engine.session.planning import plan_specification

    for given, option in ((arguments.out, "--out"), (arguments.resume, "--resume")):
        if given is not None:
            choices = ", ".join(gpu.model for gpu in models)
            raise InputError(f"the pool has boards of several models: {choices}", option, "name one with --model")
    options = search_options(arguments, arguments.repeats)
    plans = [[plan_specification(specification, gpu, options)] for gpu in models]
    return _tuned(plans, "models", arguments)


def _tuned(plans: Sequence[Sequence[ReadyPlan]], places: str, arguments: Namespace) -> list[Opened]:
    """The sessions of these plans, those of each place after one another and the places beside each other."""
    from ..engine.results.state import SessionState
    from ..engine.session.events import EngineFault, MeasurementsAdded, PoolReported, SessionRemark
    from ..engine.session.opened import stored_session
    from ..engine.session.run import run_side_by_side

    bar, over = ProgressBar(quiet=arguments.json), f"{number(len(plans))} {places}"
    total = sum(plan.budget for of_place in plans for plan in of_place)
    evaluated: dict[int, int] = {}

    def on_event(event: object) -> None:
        if isinstance(event, MeasurementsAdded):
            evaluated[event.session] = event.progress.evaluated
            done = sum(evaluated.values())
            bar.show(done, max(done, total), f"on {over}")
        elif isinstance(event, SessionRemark):
            say(event.text)
        elif isinstance(event, PoolReported):
            if event.remark:
                say(event.remark)
        elif isinstance(event, EngineFault):
            say(f"{event.what} {event.remedy}".strip())

    with store_of(arguments) as store:
        with stop_on_interrupt() as stop:
            results = run_side_by_side(plans, store, on_event, stop)
        done = sum(evaluated.values())
        bar.show(done, done, f"{len(results)} sessions on {over}", final=True)
        failed = next((result for result in results if result.state is SessionState.FAILED), None)
        if failed is not None:
            raise WattridgeError(failed.reason or "it failed", f"session {failed.session}", "see the line above")
        say(f"sessions {', '.join(str(result.session) for result in results)} hold every measurement")
        return [stored_session(store, result.session) for result in results]


def show_comparison(sessions: Sequence[Opened], arguments: Namespace) -> None:
    """Several sessions side by side: fronts, kernels by boards, averages over the boards of a model.

    Of a session that boards shared, the one that decided is named.
    """
    from ..engine.analysis import across_boards
    from ..engine.analysis.compare import compare_sessions, figures_of
    from ..engine.analysis.describe_analysis import describe_comparison
    from ..engine.results.description import Description
    from ..engine.results.objectives import parse_front
    from ..engine.session.describe_session import describe_decision

    sides = [side for opened in sessions for side in opened.side.by_kernel()]
    comparison = compare_sessions(sides, parse_front(arguments.front) if arguments.front else ())
    crossed = across_boards.kernels_by_boards(comparison)
    machines = across_boards.over_machines(sides, figures_of(comparison))
    if arguments.json:
        decided = {session.side.name: board for session in sessions if (board := session.side.table.decided_on)}
        more = {"kernels_by_boards": crossed, "over_machines": machines, "decided_on": decided}
        print_json({**as_json(comparison), **more})
        return
    print_description(describe_comparison(comparison))
    shared_by = (
        (Description(f"{opened.side.gpu}, {opened.side.name}", "several boards", [decision]),)
        for opened in sessions
        for decision in describe_decision(opened.plan, opened.side.table)
    )
    described = (
        across_boards.describe_kernels_by_boards(crossed),
        *map(across_boards.describe_machines, machines),
        *shared_by,
    )
    for value in chain.from_iterable(described):
        show()
        print_description(value)


def _boards(arguments: Namespace, specifications: Sequence[Specification]) -> list[str]:
    """The boards that the user names."""
    names = [text.strip() for text in (arguments.gpu or "").split(",") if text.strip()]
    if not names:
        what = f"{specifications[0].name} is a specification, and no board is named to measure it on"
        raise InputError(what, "compare", "--gpu A,B names boards; sessions and files are compared as they are")
    if len(set(names)) < len(names):
        raise InputError("a GPU is named twice", "--gpu", "name each once")
    return names
