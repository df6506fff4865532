"""What a session begins with: the configurations that the user lists, and those that the maker of a kernel suggests.

The session measures the user's first, in full, whatever the strategy (`run.py`). Suggestions are for strategies that
fill a first sample (`strategies.Background`): nobody asked for them by name, so that one that fits nowhere is no news.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...base.errors import InputError
from ..results.measurement import Configuration
from ..runner.boards import ReadyPlan
from ..space.search_space import SearchSpace
from ..specification.model import Specification


def with_starts(plan: ReadyPlan, spec: Specification) -> ReadyPlan:
    """The plan of a specification with the rows that its search begins with.

    One that the user lists and the space lacks is named among the space's notes. Raises InputError where the budget
    leaves room for nothing but those listed, so that another would be measured in its place.
    """
    space = plan.space
    missing = [_why(each, space) for each in spec.starts if not len(space.rows_with(each))]
    if missing and plan.max_evaluations is not None and plan.max_evaluations <= len(spec.starts):
        where = f"{spec.path}: search.start"
        raise InputError(f"{missing[0]}, and no other is to be measured", where, "correct it, or raise max_evaluations")
    notes = (*space.notes, *(f"a start is left out: {why}" for why in missing))
    starts, suggestions = (start_rows(each, space) for each in (spec.starts, spec.suggestions))
    return replace(plan, space=replace(space, notes=notes), starts=starts, suggestions=suggestions)


def start_rows(configurations: Iterable[Configuration], space: SearchSpace) -> tuple[int, ...]:
    """Of each configuration a row, unless the space has none.

    Of what it leaves open the values listed last count, as far as they are valid: of clocks, the highest.
    """
    found = map(space.rows_with, configurations)
    return tuple(dict.fromkeys(int(rows[-1]) for rows in found if len(rows)))


def _why(missing: Configuration, space: SearchSpace) -> str:
    """Why the space has no such configuration: a value that none takes, else that together they are not valid."""
    for name, value in missing.items():
        if not len(space.rows_with({name: value})):
            return f"no configuration has {name} = {value} here"
    return f"{', '.join(f'{name} = {value}' for name, value in missing.items())} is not valid here"
