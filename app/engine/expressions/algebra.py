"""What a compiled expression calculates with: one field per kind of operation of the grammar."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Algebra:
    """Operations on operands of some kind. Those that take a callable need it only where it decides."""

    operators: Mapping[type[ast.operator], Callable[[Any, Any], Any]]
    comparisons: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]]
    functions: Mapping[str, Callable[..., Any]]
    negation: Callable[[Any], Any]
    conjunction: Callable[[Any, Callable[[], Any]], Any]
    disjunction: Callable[[Any, Callable[[], Any]], Any]
    choose: Callable[[Any, Callable[[], Any], Callable[[], Any]], Any]  # test, if true, if false
