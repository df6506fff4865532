"""Specifications on several boards at the same time, for `wattridge compare`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.operators.shapes import is_operator
from ..errors import InputError, WattridgeError
from ..numbers import number
from .sources import specification_path
from .terminal import ProgressBar, say, stop_on_interrupt

if TYPE_CHECKING:
    from ..engine.session.opened import Opened
    from ..engine.specification.model import Specification


def is_specification(source: str) -> bool:
    """Whether a source of `compare` is to be measured rather than read."""
    return Path(source).suffix.lower() == ".toml" or is_operator(source)


def measured_sessions(sources: Sequence[str], arguments: Namespace) -> list[Opened]:
    """Tune these specifications on every board of --gpu, all boards at once; the sessions, board by board.

    Raises InputError where no boards are named, or one twice, and WattridgeError where a session fails.
    """
    from ..engine.session.events import EngineFault, MeasurementsAdded, SessionRemark
    from ..engine.session.load import load_specification
    from ..engine.session.opened import stored_session
    from ..engine.session.planning import plan_specification
    from ..engine.session.side_by_side import run_side_by_side
    from ..engine.session_state import SessionState
    from ..engine.store.database import Store
    from ..sensors.select import open_gpu
    from .control import guard_of
    from .search import search_options

    specifications = [load_specification(specification_path(source)) for source in sources]
    names = _boards(arguments, specifications)
    speed = arguments.speed if all(spec.command is None for spec in specifications) else 1.0  # programs take real time
    bar, options = ProgressBar(quiet=arguments.json), search_options(arguments, arguments.repeats)
    with ExitStack() as stack:
        plans = []
        for name in names:
            gpu = stack.enter_context(closing(open_gpu(name, seed=arguments.sim_seed, speed=speed)))
            guard = stack.enter_context(closing(guard_of(gpu, allow_control=arguments.allow_control)))
            plans.append([plan_specification(spec, gpu, options, guard=guard) for spec in specifications])
        total = sum(plan.budget for of_board in plans for plan in of_board)
        evaluated: dict[int, int] = {}

        def on_event(event: object) -> None:
            if isinstance(event, MeasurementsAdded):
                evaluated[event.session] = event.progress.evaluated
                done = sum(evaluated.values())
                bar.show(done, max(done, total), f"on {number(len(plans))} boards")
            elif isinstance(event, SessionRemark):
                say(event.text)
            elif isinstance(event, EngineFault):
                say(f"{event.what} {event.remedy}".strip())

        store = stack.enter_context(Store())
        with stop_on_interrupt() as stop:
            results = run_side_by_side(plans, store, on_event, stop)
        done = sum(evaluated.values())
        bar.show(done, done, f"{len(results)} sessions on {len(plans)} boards", final=True)
        failed = next((each for each in results if each.state is SessionState.FAILED), None)
        if failed is not None:
            raise WattridgeError(failed.reason or "it failed", f"session {failed.session}", "see the line above")
        say(f"sessions {', '.join(str(each.session) for each in results)} hold every measurement")
        return [stored_session(store, each.session) for each in results]


def _boards(arguments: Namespace, specifications: Sequence[Specification]) -> list[str]:
    """The boards that the user names."""
    names = [text.strip() for text in (arguments.gpu or "").split(",") if text.strip()]
    if not names:
        what = f"{specifications[0].name} is a specification, and no board is named to measure it on"
        raise InputError(what, "compare", "--gpu A,B names boards; sessions and files are compared as they are")
    if len(set(names)) < len(names):
        raise InputError("a GPU is named twice", "--gpu", "name each once")
    return names
