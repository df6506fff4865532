"""What the command line says of a search, for the commands that tune."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from ..engine.objectives import Goal, parse_front, parse_limit

if TYPE_CHECKING:
    from ..engine.metering.condition import Condition
    from ..engine.session.plan import SearchOptions


def search_options(arguments: Namespace, repeats: int | None = None) -> SearchOptions:
    """What the command line says in place of the specification."""
    from ..engine.session.plan import SearchOptions

    goal = None
    if arguments.maximise:
        goal = Goal(arguments.maximise, True)
    elif arguments.minimise:
        goal = Goal(arguments.minimise, False)
    return SearchOptions(
        strategy=arguments.strategy,
        strategy_options=dict(arguments.strategy_option),
        objective=goal,
        front=parse_front(arguments.front) if arguments.front else None,
        limits=tuple(parse_limit(text) for text in arguments.limit) or None,
        max_evaluations=arguments.max_evaluations,
        max_seconds=arguments.max_seconds,
        patience=arguments.patience,
        seed=arguments.seed,
        repeats=repeats,
        condition=condition_of(arguments),
    )


def condition_of(arguments: Namespace) -> Condition | None:
    """The thermal condition that the command line names, of the commands that have one."""
    from ..engine.metering.condition import Condition

    given = getattr(arguments, "condition", None)
    return None if given is None else Condition.parse(given, "--condition")
