"""SciPy's local optimisers, started again from the best of a few random configurations whenever one has converged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import Search, strategy
from .blocking import Landscape, restarted, scipy_optimize
from .box import Box, Reals
from .moves import check_least

_CONVERGED = 0.5  # of the smallest step of a parameter: below it nothing changes any more


@dataclass(frozen=True)
class LocalOptions:
    """Options of every strategy here."""

    starts: int = field(default=16, metadata={"help": "random configurations before each run; the best is its start"})

    def __post_init__(self) -> None:
        check_least("starts", self.starts, 1)


class _Local:
    """One method of scipy.optimize.minimize over the box of the space."""

    method: ClassVar[str]
    gradient: ClassVar[bool] = False
    bounded: ClassVar[bool] = True  # False: SciPy's method takes no bounds; points outside count as on the edge
    Options = LocalOptions

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: LocalOptions) -> Search:
        return restarted(space, rng, options.starts, self._minimise)

    def _minimise(self, landscape: Landscape, points: Reals) -> None:
        scipy_optimize().minimize(
            landscape.cost,
            points[0],
            method=self.method,
            jac=landscape.gradient if self.gradient else None,
            bounds=landscape.bounds if self.bounded else None,
            options=self.settings(points[0], landscape.box),
        )

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        """The method's own options for a start."""
        return {}


@strategy
class NelderMead(_Local):
    """SciPy's: a simplex that reflects, stretches and shrinks; starts anew when it has converged."""

    name: ClassVar[str] = "nelder_mead"
    label: ClassVar[str] = "Nelder–Mead simplex"
    method = "Nelder-Mead"

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        side = np.maximum(0.3, 1 / box.steps)
        corners = start + np.diag(np.where(start > 0.5, -side, side))
        tolerance = _CONVERGED / float(box.steps.max())
        return {"initial_simplex": np.vstack([start, corners]), "xatol": tolerance, "fatol": np.inf}


@strategy
class Powell(_Local):
    """SciPy's: line searches along directions that it learns; starts anew when it has converged."""

    name: ClassVar[str] = "powell"
    label: ClassVar[str] = "Powell's method"
    method = "Powell"

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        return {"xtol": _CONVERGED / float(box.steps.max()), "ftol": 0.0}


@strategy
class Cobyla(_Local):
    """SciPy's: linear models within a trust region; starts anew when it has converged."""

    name: ClassVar[str] = "cobyla"
    label: ClassVar[str] = "COBYLA"
    method = "COBYLA"

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        step = 1.0 / float(box.steps.max())  # nearer, it thinks long and asks what is known
        return {"rhobeg": max(0.3, step), "tol": step}


@strategy
class Slsqp(_Local):
    """SciPy's: least squares over differences to the next values; starts anew when it has converged."""

    name: ClassVar[str] = "slsqp"
    label: ClassVar[str] = "SLSQP"
    method = "SLSQP"
    gradient = True


@strategy
class LBfgsB(_Local):
    """SciPy's: quasi-Newton over differences to the next values; starts anew when it has converged."""

    name: ClassVar[str] = "l_bfgs_b"
    label: ClassVar[str] = "L-BFGS-B"
    method = "L-BFGS-B"
    gradient = True


@strategy
class TruncatedNewton(_Local):
    """SciPy's: truncated Newton over differences to the next values; starts anew when it has converged."""

    name: ClassVar[str] = "tnc"
    label: ClassVar[str] = "Truncated Newton (TNC)"
    method = "TNC"
    gradient = True


@strategy
class ConjugateGradient(_Local):
    """SciPy's: conjugate directions over differences to the next values; restarts when it has converged."""

    name: ClassVar[str] = "cg"
    label: ClassVar[str] = "Conjugate gradient (CG)"
    method = "CG"
    gradient = True
    bounded = False


@strategy
class Bfgs(_Local):
    """SciPy's: quasi-Newton without bounds over differences to the next values; restarts when it has converged."""

    name: ClassVar[str] = "bfgs"
    label: ClassVar[str] = "BFGS"
    method = "BFGS"
    gradient = True
    bounded = False
