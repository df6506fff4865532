"""SciPy's optimisers over the box of the space, restarted from the best of a few random configurations.

Local ones whenever they have converged; basin hopping and dual annealing when they learn nothing new.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..space.search_space import SearchSpace
from .base import CheckedOptions, Search, Strategy, option
from .blocking import Landscape, restarted, scipy_optimize
from .box import Box, Reals

_CONVERGED = 0.5  # of the smallest step of a parameter: below it nothing changes any more
_FOREVER = 1_000_000


class _Local(Strategy):
    """One method of scipy.optimize.minimize over the box of the space."""

    method: ClassVar[str]
    gradient: ClassVar[bool]
    bounded: ClassVar[bool]  # False: SciPy's method takes no bounds; points outside count as on the edge

    def __init_subclass__(cls, *, method: str, gradient: bool = False, bounded: bool = True, **shown: str) -> None:
        super().__init_subclass__(**shown)
        cls.method, cls.gradient, cls.bounded = method, gradient, bounded

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations before each run; the best is its start", least=1)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
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


class NelderMead(_Local, name="nelder_mead", label="Nelder–Mead simplex", method="Nelder-Mead"):
    """SciPy's: a simplex that reflects, stretches and shrinks; restarts when it has converged."""

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        side = np.maximum(0.3, 1 / box.steps)
        corners = start + np.diag(np.where(start > 0.5, -side, side))
        tolerance = _CONVERGED / float(box.steps.max())
        return {"initial_simplex": np.vstack([start, corners]), "xatol": tolerance, "fatol": np.inf}


class Powell(_Local, name="powell", label="Powell's method", method="Powell"):
    """SciPy's: line searches along directions that it learns; restarts when it has converged."""

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        return {"xtol": _CONVERGED / float(box.steps.max()), "ftol": 0.0}


class Cobyla(_Local, name="cobyla", label="COBYLA", method="COBYLA"):
    """SciPy's: linear models within a trust region; restarts when it has converged."""

    def settings(self, start: Reals, box: Box) -> dict[str, Any]:
        step = 1.0 / float(box.steps.max())  # below it, it computes long and asks for known rows
        return {"rhobeg": max(0.3, step), "tol": step}


class Slsqp(_Local, name="slsqp", label="SLSQP", method="SLSQP", gradient=True):
    """SciPy's: least squares over differences to the next values; restarts when it has converged."""


class LBfgsB(_Local, name="l_bfgs_b", label="L-BFGS-B", method="L-BFGS-B", gradient=True):
    """SciPy's: quasi-Newton over differences to the next values; restarts when it has converged."""


class TruncatedNewton(_Local, name="tnc", label="Truncated Newton (TNC)", method="TNC", gradient=True):
    """SciPy's: truncated Newton over differences to the next values; restarts when it has converged."""


class ConjugateGradient(_Local, name="cg", label="Conjugate gradient (CG)", method="CG", gradient=True, bounded=False):
    """SciPy's: conjugate directions over differences to the next values; restarts when it has converged."""


class Bfgs(_Local, name="bfgs", label="BFGS", method="BFGS", gradient=True, bounded=False):
    """SciPy's: quasi-Newton without bounds over differences to the next values; restarts when it has converged."""


class BasinHopping(Strategy, name="basin_hopping", label="Basin hopping"):
    """SciPy's: leaps from local minimum to local minimum; restarts when it learns nothing new."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations at first; the best is the start", least=1)
        temperature: float = option(0.2, "in units of the median's distance to the best", least=0.0)
        leap: float = option(0.15, "length of a leap, as a share of each parameter's range", least=1e-3)

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        def leap(point: Reals) -> Reals:
            return np.clip(point + rng.uniform(-options.leap, options.leap, len(point)), 0.0, 1.0)

        def hop(landscape: Landscape, points: Reals) -> None:
            scipy_optimize().basinhopping(
                landscape.cost,
                points[0],
                niter=_FOREVER,
                T=options.temperature,
                take_step=leap,
                seed=rng,
                minimizer_kwargs={"method": landscape.descent("hamming")},
            )

        return restarted(space, rng, options.starts, hop)


class DualAnnealing(Strategy, name="dual_annealing", label="Dual annealing"):
    """SciPy's: jumps over the whole space, long ones less and less often; restarts when it learns nothing new."""

    @dataclass(frozen=True)
    class Options(CheckedOptions):
        starts: int = option(16, "random configurations at first; the best is the start", least=1)
        local_search: bool = option(True, "descend to a local minimum from what it finds")

    def search(self, space: SearchSpace, rng: np.random.Generator, batch: int, options: Options) -> Search:
        def anneal(landscape: Landscape, points: Reals) -> None:
            scipy_optimize().dual_annealing(
                landscape.cost,
                landscape.bounds,
                maxiter=_FOREVER,
                maxfun=_FOREVER,
                x0=points[0],
                seed=rng,
                no_local_search=not options.local_search,
                minimizer_kwargs={"method": landscape.descent("adjacent")},
            )

        return restarted(space, rng, options.starts, anneal)
