"""Arguments that depend on parameters, and the error of what a kernel writes, as Kernel Tuner's `accuracy` has them."""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..base.errors import InputError
from ..engine.space.expression import parse
from .observers import OutputObserver

Array = npt.NDArray[np.float64]
Error = Callable[[Array, Array], Any]  # of the answer and the output
_TINY: Final = 1e-8
_WORDS: Final = {  # what names of errors may say instead
    **dict.fromkeys(("average", "avg"), "mean"),
    **dict.fromkeys(("square", "sq"), "squared"),
    "max": "maximum",
    "rel": "relative",
    "abs": "absolute",
    "log": "logarithmic",
}
_SHORT: Final = {
    "mse": "mean squared",
    "rmse": "root mean squared",
    "nrmse": "normalized root mean squared",
    "rmsre": "root mean squared relative",
    "rmsle": "root mean squared logarithmic",
    **dict.fromkeys(("mae", "absolute"), "mean absolute"),
    **dict.fromkeys(("mre", "relative"), "mean relative"),
    "male": "mean absolute logarithmic",
    "maximum": "maximum absolute",
}
_PRECISIONS: Final = {"half": np.float16, "float": np.float32, "double": np.float64}


class Tunable(UserDict[Any, Any]):
    """An argument that is chosen among several by a parameter, or by an expression or a function of the parameters."""

    def __init__(self, param_key: Any, arrays: Mapping[Any, Any] | Sequence[Any]) -> None:
        super().__init__(arrays if isinstance(arrays, Mapping) else dict(enumerate(arrays)))
        self.param_key = param_key

    def select_for_configuration(self, params: Mapping[str, Any]) -> Any:
        """Choose the argument for a configuration.

        Parameters
        ----------
        params : mapping
            Values of the parameters by name.

        Returns
        -------
        object
            The chosen argument; one that is itself chosen among several is resolved too.

        Raises
        ------
        KeyError
            If there is no argument for the value.
        InputError
            If `param_key` is text, and neither a parameter nor an expression of the parameters.
        """
        key = self.param_key
        if callable(key):
            option = key(params)
        else:
            option = params[key] if key in params else parse(str(key), type(self).__name__).evaluate(params)
        if option not in self.data:
            raise KeyError(f"{option!r} is not one of {', '.join(map(str, self.data))}")
        chosen = self.data[option]
        return chosen.select_for_configuration(params) if isinstance(chosen, Tunable) else chosen

    __call__ = select_for_configuration


class TunablePrecision(Tunable):
    """An argument in the precision that a parameter names: half, float or double, unless `dtypes` says which."""

    def __init__(self, param_key: Any, array: Any, dtypes: Mapping[str, Any] | Sequence[str] | None = None) -> None:
        named = _PRECISIONS if not dtypes else dtypes if isinstance(dtypes, Mapping) else _named(dtypes)
        numbers = array if isinstance(array, np.generic) else np.asarray(array)
        super().__init__(param_key, {name: numbers.astype(kind) for name, kind in named.items()})


class AccuracyObserver(OutputObserver):
    """Reports the error of a kernel's outputs against the answer, the largest over all of them.

    With it outputs are not compared otherwise, as in Kernel Tuner. It watches no launches: kernels stay isolated.
    """

    watches_launches = False

    def __init__(self, metric: str | Error | None = None, key: str = "error", *, atol: float = _TINY) -> None:
        """`metric` names an error, as "rmse" or "maximum relative", or is a function of answer and output.

        `atol` keeps relative errors finite where the answer is 0. Raises InputError.
        """
        self.key = key
        self._error = metric if callable(metric) else error_by_name(metric or "rmse", atol)
        self._largest = float("nan")

    def process_output(self, answer: Sequence[Any] | None, output: Sequence[Any]) -> None:
        """Compute the error of each output, and keep the largest.

        Parameters
        ----------
        answer : sequence or None
            The answer of the script, with None for an argument that has none; None if it gives no answer.
        output : sequence
            What a first launch has written, one entry for each argument.
        """
        pairs = (pair for pair in zip(answer or (), output, strict=False) if pair[0] is not None)
        self._largest = max(float(self._error(expected, written)) for expected, written in pairs)

    def get_results(self) -> dict[str, float]:
        return {self.key: self._largest}


def error_by_name(name: str, tiny: float = _TINY) -> Error:
    """Look up a measure of error between arrays of any precision.

    Parameters
    ----------
    name : str
        As "rmse" or "maximum relative error"; case, hyphens, underscores and usual abbreviations do not matter.
    tiny : float, optional
        Least magnitude of the answer that relative errors divide by, and what is added before a logarithm is taken.

    Returns
    -------
    callable
        Of the answer and the output, both as double precision; it returns the error.

    Raises
    ------
    InputError
        For another name, with the list.
    """
    words = re.sub(r"[\s_-]+", " ", re.sub(r"\berror\b", " ", re.sub(r"[_-]", " ", name.lower()))).split()
    normal = " ".join(_WORDS.get(word, word) for word in words)
    errors = dict(_errors(tiny))
    error = errors.get(_SHORT.get(normal, normal))
    if error is None:
        raise InputError(f"there is no error '{name}'", "AccuracyObserver", f"one of {', '.join(errors)}")
    return lambda answer, output: error(np.asarray(answer, np.float64), np.asarray(output, np.float64))


def leaves(argument: Any) -> Iterator[Any]:
    """All arguments that a tunable one may be chosen from.

    Parameters
    ----------
    argument : Tunable
        The argument, of this module or of Kernel Tuner; its choices may be tunable themselves.

    Yields
    ------
    object
        Each argument that is not tunable.
    """
    for value in argument.data.values():
        if hasattr(value, "select_for_configuration"):
            yield from leaves(value)
        else:
            yield value


def _named(names: Sequence[str]) -> dict[str, Any]:
    return {name: _PRECISIONS.get(name) or np.dtype(name) for name in names}


def _errors(tiny: float) -> Iterator[tuple[str, Error]]:
    def apart(a: Array, b: Array) -> Array:
        return np.abs(a - b)

    def relative(a: Array, b: Array) -> Array:
        return apart(a, b) / np.maximum(np.abs(a), tiny)

    def logarithmic(a: Array, b: Array) -> Array:
        return apart(np.log10(a + tiny), np.log10(b + tiny))

    yield "mean squared", lambda a, b: np.mean(apart(a, b) ** 2)
    yield "root mean squared", lambda a, b: np.sqrt(np.mean(apart(a, b) ** 2))
    yield "normalized root mean squared", lambda a, b: np.sqrt(np.mean(apart(a, b) ** 2) / np.mean(a**2))
    yield "root mean squared relative", lambda a, b: np.sqrt(np.mean(relative(a, b) ** 2))
    yield "root mean squared logarithmic", lambda a, b: np.sqrt(np.mean(logarithmic(a, b) ** 2))
    yield "mean absolute", lambda a, b: np.mean(apart(a, b))
    yield "mean relative", lambda a, b: np.mean(relative(a, b))
    yield "mean absolute logarithmic", lambda a, b: np.mean(logarithmic(a, b))
    yield "maximum absolute", lambda a, b: np.max(apart(a, b))
    yield "maximum relative", lambda a, b: np.max(relative(a, b))
