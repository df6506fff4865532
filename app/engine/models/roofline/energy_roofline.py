"""The energy roofline of one board and precision: time, energy and power over intensity [Holtmann2024, eqs. 1 to 13].

Three figures of energy and two of speed determine it. Units: pJ/flop, pJ/B, W, flop/s, B/s; intensity I in flop/B.
Methods take an intensity or an array of them, greater than zero, and return an array of the same shape.

`resources/boards.toml` holds the published figures of boards: theoretical peaks, power limits, fitted energy rooflines.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrays import Floats
from ..boards_file import board_tables, folded

PJ = 1e-12


@dataclass(frozen=True, slots=True)
class EnergyRoofline:
    """E = W eps_flop + Q eps_mem + T pi_0 [Holtmann2024, eq. 5], at the peak speeds `peak_flops` and `bandwidth`."""

    eps_flop_pj: float
    eps_mem_pj_per_b: float
    pi_0_w: float
    peak_flops: float
    bandwidth: float

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
        """Speed, work per energy and power under a power limit.

        Where the powerline crosses the limit, everything is slowed until power meets it; [Holtmann2024] has no limit.
        The energies of a flop and of a byte are those at the peak clock: a lower clock, and with it a lower voltage,
        makes them smaller, so this is what a board reaches at least.

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
            the limit, if pi_0 alone is not below it.
        """
        intensities = np.asarray(intensity, dtype=np.float64)
        speed, power_w = self.roofline(intensities), self.powerline(intensities)
        headroom_w = limit_w - self.pi_0_w
        slow = np.where(power_w > limit_w, headroom_w / (power_w - self.pi_0_w) if headroom_w > 0 else np.nan, 1.0)
        capped_w = self.pi_0_w + slow * (power_w - self.pi_0_w)
        return speed * slow, speed * slow / capped_w, capped_w

    def predict(
        self, work_flop: float, traffic_byte: float, limit_w: float | None = None
    ) -> tuple[float, float, float]:
        """Predict time, energy and power of a kernel at full overlap of work and traffic, within a power limit.

        Parameters
        ----------
        work_flop : float
            Work of the kernel, flop.
        traffic_byte : float
            Its traffic with device memory, bytes. One of the two must be greater than zero.
        limit_w : float or None, optional
            Power limit, W; None for no limit. One that pi_0 alone reaches is not applied.

        Returns
        -------
        time_s, energy_j, power_w : float
            Time in seconds, energy in joules and mean power in W.
        """
        time_s = max(work_flop / self.peak_flops, traffic_byte / self.bandwidth)
        active_j = work_flop * self.eps_flop_pj * PJ + traffic_byte * self.eps_mem_pj_per_b * PJ
        if limit_w is not None and active_j / time_s + self.pi_0_w > limit_w > self.pi_0_w:
            time_s = active_j / (limit_w - self.pi_0_w)
        energy_j = active_j + self.pi_0_w * time_s
        return time_s, energy_j, energy_j / time_s


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
                peak_flops=gflops[precision] * 1e9,
                bandwidth=bandwidth_gb_s * 1e9,
                **{key: float(value) for key, value in energies.items()},
            )
            for precision, energies in table.get("roofline", {}).items()
        },
    )
