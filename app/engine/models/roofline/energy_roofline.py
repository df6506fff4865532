"""The energy roofline of one board and precision: time, energy and power over intensity [Holtmann2024, eqs. 1 to 13].

Three figures of energy and two of speed determine it. Units: pJ/flop, pJ/B, W, flop/s, B/s; intensity I in flop/B.
Methods take an intensity or an array of them, greater than zero, and return an array of the same shape.

`resources/boards.toml` holds the published figures of boards: theoretical peaks, power limits, fitted energy rooflines.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..arrays import Floats
from ..boards_file import board_tables, folded

PJ = 1e-12
_HALVINGS: Final = 40  # of an interval of clocks


@dataclass(frozen=True, slots=True)
class ClockLaw:
    """The law by which the energies follow the clock; clocks g are shares of that at which they are stated.

    eps_flop becomes u eps_flop, pi_0 becomes pi_0 (1 - clocked + clocked g u), and eps_mem stays, with
    u = (v(g) / v(1))^2, v(g) / v(1) = 1 - slope (1 - max(g, ridge)): a voltage that falls down to the ridge
    [Schoonhoven2024, eqs. 6.1, 6.3].
    """

    slope: float
    ridge: float
    clocked: float  # share of pi_0 that switches with the clock
    lowest: float  # clock that was measured: below it nothing is known

    def switching(self, clock: npt.ArrayLike) -> Floats:
        """Energy of a switching over that at the stated clock.

        Parameters
        ----------
        clock : array_like, any shape
            Clocks g, of the stated one.

        Returns
        -------
        array, same shape
            u, no unit.
        """
        return np.asarray((1 - self.slope * (1 - np.maximum(clock, self.ridge))) ** 2)

    def constant(self, clock: npt.ArrayLike) -> Floats:
        """Constant power over pi_0.

        Parameters
        ----------
        clock : array_like, any shape
            Clocks g, of the stated one.

        Returns
        -------
        array, same shape
            1 - clocked + clocked g u, no unit.
        """
        return np.asarray(1 - self.clocked + self.clocked * np.asarray(clock) * self.switching(clock))


FIXED: Final = ClockLaw(0.0, 1.0, 0.0, 1.0)  # energies that no clock changes


@dataclass(frozen=True, slots=True)
class EnergyRoofline:
    """E = W eps_flop + Q eps_mem + T pi_0 [Holtmann2024, eq. 5], at the peak speeds `peak_flops` and `bandwidth`."""

    eps_flop_pj: float
    eps_mem_pj_per_b: float
    pi_0_w: float
    peak_flops: float
    bandwidth: float
    law: ClockLaw = FIXED

    # --- what follows from the five -------------------------------------------------------------------------------

    @property
    def time_balance(self) -> float:
        """B_tau, flop/B: from there on the work takes longer than the traffic."""
        return self.peak_flops / self.bandwidth

    @property
    def energy_balance(self) -> float:
        """B_eps, flop/B: from there on the work itself takes more energy than the traffic itself."""
        return self.eps_mem_pj_per_b / self.eps_flop_pj if self.eps_flop_pj else np.inf

    @property
    def eps_0_pj(self) -> float:
        """Constant energy per flop at peak speed, tau_flop pi_0."""
        return self.pi_0_w / self.peak_flops / PJ

    @property
    def effective_eps_flop_pj(self) -> float:
        """eps_flop + eps_0, the least energy of a flop."""
        return self.eps_flop_pj + self.eps_0_pj

    @property
    def eta_flop(self) -> float:
        """Share of a flop's least energy that is the flop's own [eq. 13]."""
        return self.eps_flop_pj / self.effective_eps_flop_pj

    @property
    def pi_flop_w(self) -> float:
        """Power of the flops alone at peak speed."""
        return self.eps_flop_pj * PJ * self.peak_flops

    @property
    def pi_mem_w(self) -> float:
        """Power of the traffic alone at full bandwidth."""
        return self.eps_mem_pj_per_b * PJ * self.bandwidth

    def eps_mop_pj(self, word_byte: int) -> float:
        """Energy to move one word [section 3.1].

        Parameters
        ----------
        word_byte : int
            Bytes of a word.

        Returns
        -------
        float
            Energy, pJ per word.
        """
        return self.eps_mem_pj_per_b * word_byte

    @property
    def effective_energy_balance(self) -> float:
        """The intensity at which the effective balance equals the intensity itself (I = hat B(I)), flop/B.

        Below B_tau hat B falls with slope -(1 - eta), above it is constant, so there is exactly one.
        """
        eta, b_tau = self.eta_flop, self.time_balance
        constant = eta * self.energy_balance
        if constant >= b_tau:
            return constant
        return (constant + (1 - eta) * b_tau) / (2 - eta)

    # --- over intensity -------------------------------------------------------------------------------------------

    def effective_balance(self, intensity: npt.ArrayLike) -> Floats:
        """Effective energy balance hat B(I) = eta B_eps + (1 - eta) max(0, B_tau - I) [eq. 8].

        Parameters
        ----------
        intensity : array_like, any shape
            Intensities I, flop/B.

        Returns
        -------
        array, same shape
            hat B(I), flop/B.
        """
        eta = self.eta_flop
        gap = np.maximum(0.0, self.time_balance - np.asarray(intensity, dtype=np.float64))
        return np.asarray(eta * self.energy_balance + (1 - eta) * gap)

    def roofline(self, intensity: npt.ArrayLike) -> Floats:
        """Speed over intensity: min(peak, I x bandwidth).

        Parameters
        ----------
        intensity : array_like, any shape
            Intensities I, flop/B.

        Returns
        -------
        array, same shape
            Speed, flop/s.
        """
        return np.minimum(self.peak_flops, np.asarray(intensity, dtype=np.float64) * self.bandwidth)

    def archline(self, intensity: npt.ArrayLike) -> Floats:
        """Work per energy over intensity: 1 / (hat eps_flop (1 + hat B(I) / I)) [from eq. 9].

        Parameters
        ----------
        intensity : array_like, any shape
            Intensities I, flop/B.

        Returns
        -------
        array, same shape
            Work per energy, flop/J.
        """
        intensities = np.asarray(intensity, dtype=np.float64)
        return np.asarray(
            1.0 / (self.effective_eps_flop_pj * PJ * (1.0 + self.effective_balance(intensities) / intensities))
        )

    def powerline(self, intensity: npt.ArrayLike) -> Floats:
        """Power over intensity [eq. 10]: (pi_flop / eta) (min(I, B_tau) / B_tau + hat B(I) / max(I, B_tau)).

        Parameters
        ----------
        intensity : array_like, any shape
            Intensities I, flop/B.

        Returns
        -------
        array, same shape
            Power, W.
        """
        intensities, b_tau = np.asarray(intensity, dtype=np.float64), self.time_balance
        share = np.minimum(intensities, b_tau) / b_tau + self.effective_balance(intensities) / np.maximum(
            intensities, b_tau
        )
        return np.asarray(self.pi_flop_w / self.eta_flop * share)

    def capped(self, intensity: npt.ArrayLike, limit_w: float) -> tuple[Floats, Floats, Floats]:
        """Speed, work per energy and power under a power limit, as in `predict`.

        Parameters
        ----------
        intensity : array_like, any shape
            Intensities I, flop/B.
        limit_w : float
            Power limit, W.

        Returns
        -------
        speed, efficiency, power_w : array, same shape
            Speed in flop/s, work per energy in flop/J and power in W. NaN at intensities where the powerline exceeds
            the limit, if constant power alone is not below it.
        """
        intensities = np.asarray(intensity, dtype=np.float64)
        time_s, power_w = self._within(intensities, np.ones_like(intensities), limit_w)
        return intensities / time_s, intensities / time_s / power_w, power_w

    def _within(self, work: Floats, traffic: Floats, limit_w: float) -> tuple[Floats, Floats]:
        """Time and power of work and traffic within a limit: the highest clock there, slowed where none is enough."""

        def at(clock: Floats) -> tuple[Floats, Floats, Floats]:
            time_s = np.maximum(work / (self.peak_flops * clock), traffic / self.bandwidth)
            active_j = (work * self.eps_flop_pj * self.law.switching(clock) + traffic * self.eps_mem_pj_per_b) * PJ
            return time_s, active_j / time_s, self.pi_0_w * self.law.constant(clock)

        low, high = np.full_like(work, self.law.lowest), np.ones_like(work)
        free = sum(at(high)[1:]) <= limit_w
        for _ in range(_HALVINGS if self.law.lowest < 1 else 0):
            middle = (low + high) / 2
            within = sum(at(middle)[1:]) <= limit_w
            low, high = np.where(within, middle, low), np.where(within, high, middle)
        time_s, active_w, constant_w = at(np.where(free, 1.0, low))
        headroom_w = np.where(limit_w > constant_w, limit_w - constant_w, np.nan)
        slow = np.where(free, 1.0, np.maximum(1.0, active_w / headroom_w))
        return time_s * slow, constant_w + active_w / slow

    def predict(
        self, work_flop: float, traffic_byte: float, limit_w: float | None = None
    ) -> tuple[float, float, float]:
        """Predict time, energy and power of a kernel at full overlap of work and traffic, within a power limit.

        T = max(W tau_flop, Q tau_mem, (W eps_flop + Q eps_mem) / (limit - pi_0)) [Choi2014], at the highest clock whose
        power is within the limit by the clock law, or at the lowest clock that was measured. Where no clock law is
        known, the energies are those of the peak clock; a lower voltage makes them smaller, so this is what a board
        reaches at least.

        Parameters
        ----------
        work_flop : float
            Work of the kernel, flop.
        traffic_byte : float
            Its traffic with device memory, bytes. One of the two must be greater than zero.
        limit_w : float or None, optional
            Power limit, W; None for no limit. One that constant power alone reaches is not applied.

        Returns
        -------
        time_s, energy_j, power_w : float
            Time in seconds, energy in joules and mean power in W.
        """
        work, traffic = np.array([work_flop]), np.array([traffic_byte])
        time_s, power_w = self._within(work, traffic, math.inf if limit_w is None else limit_w)
        if np.isnan(time_s).any():
            time_s, power_w = self._within(work, traffic, math.inf)
        return float(time_s[0]), float((time_s * power_w)[0]), float(power_w[0])


@dataclass(frozen=True, slots=True)
class PublishedBoard:
    """A board by its data sheet and by published fits."""

    name: str
    gflops: Mapping[str, float]  # theoretical peak per precision, GFLOP/s
    bandwidth_gb_s: float  # theoretical
    tdp_w: float
    source: str  # of the peaks, in words
    citation: str  # of the rooflines; empty if there are none
    rooflines: Mapping[str, EnergyRoofline]  # per precision


@functools.cache
def published_boards() -> tuple[PublishedBoard, ...]:
    """All boards on file, in the order of the file."""
    return tuple(board for board, _ in _read())


def board_named(name: str) -> PublishedBoard | None:
    """Look up the published figures of a board.

    Parameters
    ----------
    name : str
        What a driver calls the board. Case, punctuation and a maker in front of the name do not matter.

    Returns
    -------
    PublishedBoard or None
        None if no figures of it are on file.
    """
    wanted = folded(name)
    return next((board for board, names in _read() if wanted in names), None)


@functools.cache
def _read() -> tuple[tuple[PublishedBoard, frozenset[str]], ...]:
    return tuple((_board(table), names) for table, names in board_tables())


def _board(table: Mapping[str, Any]) -> PublishedBoard:
    gflops = {precision: float(peak) for precision, peak in table["gflops"].items()}
    bandwidth_gb_s = float(table["bandwidth_gb_s"])
    return PublishedBoard(
        name=table["name"],
        gflops=gflops,
        bandwidth_gb_s=bandwidth_gb_s,
        tdp_w=float(table["tdp_w"]),
        source=table["source"],
        citation=table.get("citation", ""),
        rooflines={
            precision: EnergyRoofline(
                float(energies["eps_flop_pj"]),
                float(energies["eps_mem_pj_per_b"]),
                float(energies["pi_0_w"]),
                peak_flops=gflops[precision] * 1e9,
                bandwidth=bandwidth_gb_s * 1e9,
            )
            for precision, energies in table.get("roofline", {}).items()
        },
    )
