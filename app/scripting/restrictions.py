"""Restrictions in the forms that Kernel Tuner accepts: expressions as text, and functions that filter the space.

Constraints of python-constraint become text where they are sums or products, and are called otherwise.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ..base.errors import InputError
from ..engine.results.measurement import Configuration
from ..engine.space.search_space import SearchSpace, compacted

Accepts = Callable[[Configuration], object]
_SUMS: Final = {  # of all parameters, by the classes of python-constraint; each keeps its bound under `_` and this name
    f"{which}{kind}Constraint": (sign, compared, f"_{which.lower()}{kind.lower()}")
    for which, compared in (("Max", "<="), ("Min", ">="), ("Exact", "=="))
    for kind, sign in (("Sum", " + "), ("Prod", " * "))
}


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The expressions, which prune while the space is built, and the functions, which filter it afterwards."""

    texts: tuple[str, ...]
    functions: Mapping[str, Accepts]  # by the names under which the space counts what they removed


def read_restrictions(given: Any, parameters: Sequence[str]) -> Restrictions:
    """Read restrictions in the forms that Kernel Tuner accepts.

    A function is called with a dict of the parameters, one of a list by their names, as Kernel Tuner calls them.
    A pair of a function and names of parameters is called with those.

    Parameters
    ----------
    given : str, callable, Constraint of python-constraint, sequence of these, or None
        The restrictions; None for none.
    parameters : sequence of str
        Names of the parameters.

    Returns
    -------
    Restrictions
        Expressions and functions.

    Raises
    ------
    InputError
        For anything else.
    """
    if given is None:
        return Restrictions((), {})
    whole = callable(given)  # as constraints are, too
    listed = [given] if whole or isinstance(given, str) else list(given) if isinstance(given, Sequence) else None
    if listed is None:
        raise InputError(f"they are of type {type(given).__name__}", "restrictions", "pass text, functions, or a list")
    texts: list[str] = []
    functions: dict[str, Accepts] = {}
    for index, item in enumerate(listed):
        where = "restrictions" if whole else f"restrictions[{index}]"
        if isinstance(item, str):
            texts.append(item)
        elif _is_constraint(item):
            if text := _as_text(item, parameters):
                texts.append(text)
            else:
                functions[f"{where}: {type(item).__name__}"] = _by_constraint(item, tuple(parameters))
        elif isinstance(item, tuple) and len(item) >= 2 and inspect.isroutine(item[0]):
            functions[_name(item[0], where)] = _by_names(item[0], tuple(item[1]))
        elif inspect.isroutine(item) or inspect.isfunction(item):
            functions[_name(item, where)] = item if _takes_a_dict(item, parameters) else _by_names(item, parameters)
        else:
            remedy = "write it as text or as a function of the parameters"
            raise InputError(f"it is of type {type(item).__name__}", where, remedy)
    return Restrictions(tuple(texts), functions)


def _takes_a_dict(function: Callable[..., Any], parameters: Sequence[str]) -> bool:
    """One argument that is not called as a parameter is."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return True
    return len(names) == 1 and names[0] not in parameters


def _by_names(function: Callable[..., Any], names: Sequence[str]) -> Accepts:
    return lambda configuration: function(**{name: configuration[name] for name in names})


def _is_constraint(item: Any) -> bool:
    """Of python-constraint, which need not be installed."""
    of = (each for each in type(item).__mro__ if each.__name__ == "Constraint")
    return any(each.__module__.partition(".")[0] == "constraint" for each in of)


def _as_text(constraint: Any, names: Sequence[str]) -> str:
    sign, compared, bound = _SUMS.get(type(constraint).__name__, ("", "", ""))
    value = getattr(constraint, bound, None)
    plain = isinstance(value, int | float) and not getattr(constraint, "_multipliers", None)
    return f"{sign.join(names)} {compared} {value!r}" if plain else ""


def _by_constraint(constraint: Any, names: tuple[str, ...]) -> Accepts:
    kind = type(constraint).__name__
    if kind in ("InSetConstraint", "NotInSetConstraint"):  # these only prune the values of a solver
        within, wanted = constraint._set, kind == "InSetConstraint"
        return lambda configuration: all((configuration[name] in within) is wanted for name in names)
    return lambda configuration: constraint(names, {}, {name: configuration[name] for name in names})


def _name(function: Callable[..., Any], where: str) -> str:
    return f"{where}: {getattr(function, '__name__', 'function')}()"


_AT_ONCE = 4096  # configurations


def filtered(space: SearchSpace, accepts: Callable[[Configuration], object], name: str, where: str) -> SearchSpace:
    """The space reduced to the configurations that a function accepts.

    Parameters
    ----------
    space : SearchSpace
        The space.
    accepts : callable
        Of a configuration; its calls are in the order of the rows.
    name : str
        What the restriction is called among those that removed something.
    where : str
        What errors name as the place.

    Returns
    -------
    SearchSpace
        Its rows in the same order.

    Raises
    ------
    InputError
        If no configuration is left.
    """
    kept = np.zeros(space.size, dtype=np.bool_)
    for start in range(0, space.size, _AT_ONCE):
        rows = range(start, min(space.size, start + _AT_ONCE))
        kept[rows.start : rows.stop] = [bool(accepts(configuration)) for configuration in space.configurations(rows)]
    if not kept.any():
        raise InputError(f"{name} leaves no configuration", where, "look at what it returns")
    parameters, codes = compacted(space.parameters, space.codes[kept])
    removed = {**space.removed_by, name: int(space.size - kept.sum())}
    return replace(space, parameters=parameters, codes=codes, removed_by=removed)
