"""Restrictions as Kernel Tuner takes them: expressions as text, and functions of the parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.measurement import Configuration
from ..errors import InputError

Accepts = Callable[[Configuration], object]


@dataclass(frozen=True, slots=True)
class Restrictions:
    """The expressions, which prune while the space is built, and the functions, which filter it afterwards."""

    texts: tuple[str, ...]
    functions: Mapping[str, Accepts]  # by the names under which the space counts what they removed


def read_restrictions(given: Any, parameters: Sequence[str]) -> Restrictions:
    """A function is called with a dict of the parameters, one of a list by their names, as Kernel Tuner calls them.

    A pair of a function and names of parameters is called with those. Raises InputError for anything else.
    """
    if given is None:
        return Restrictions((), {})
    whole = callable(given)
    listed = [given] if whole or isinstance(given, str) else list(given) if isinstance(given, Sequence) else None
    if listed is None:
        raise InputError(f"they are of type {type(given).__name__}", "restrictions", "pass text, functions, or a list")
    texts: list[str] = []
    functions: dict[str, Accepts] = {}
    for at, each in enumerate(listed):
        where = "restrictions" if whole else f"restrictions[{at}]"
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, tuple) and len(each) >= 2 and inspect.isroutine(each[0]):
            functions[_name(each[0], where)] = _by_names(each[0], tuple(each[1]))
        elif inspect.isroutine(each) or inspect.isfunction(each):
            functions[_name(each, where)] = each if _takes_a_dict(each, parameters) else _by_names(each, parameters)
        else:
            remedy = "write it as text or as a function of the parameters"
            raise InputError(f"it is of type {type(each).__name__}", where, remedy)
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


def _name(function: Callable[..., Any], where: str) -> str:
    return f"{where}: {getattr(function, '__name__', 'function')}()"
