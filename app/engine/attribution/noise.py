"""The noise of power samples: how large it is at each of them, and how samples go together.

Both follow from the residuals of a fit. The variance of a sample is a sum of parts that grow with known figures: none
smaller than what the sensor states of itself. Neighbours are alike where their windows overlap, by the share that they
have in common, and where what the model leaves out lasts longer than a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Final

import numpy as np

from .activity import Floats

OVERLAPPING: Final = (0.0, 0.3, 0.6, 0.85, 0.97)  # share of the noise that windows have in common
LASTING: Final = (0.0, 0.1, 0.25, 0.5, 0.75)  # share of the noise that lasts,
DECAYS: Final = (0.3, 0.6, 0.85, 0.95)  # and what of it is left a sample later
MOST: Final = 0.97  # of the noise that is not a sample's own
ORDER: Final = 40  # samples back that a sample is predicted from
LOOKED_AT: Final = 6000  # residuals that the shares are found from
OUTLYING: Final = 4.0  # standard deviations of a residual, from which on it counts less


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of samples in a row."""

    sigma_w: Floats  # of each sample, one sigma; shape (n,)
    filters: tuple[Floats, ...]  # of each order: what predicts a sample from so many before it
    scales: Floats  # the error of that prediction, relative to sigma

    def whitened(self, values: Floats, first: int = 0, last: int | None = None) -> Floats:
        """Return values of samples so transformed that their noise is independent, and of variance 1.

        Parameters
        ----------
        values : array, shape (n,) or (n, columns)
            The values.
        first, last : int, optional
            The samples that are asked for: from `first` on, before `last`.

        Returns
        -------
        array, shape (last - first,) or (last - first, columns)
            The transformed values.
        """
        order = len(self.filters) - 1
        before = min(first, order)
        part = slice(first - before, last)
        scaled = values[part] / (self.sigma_w[part] if values.ndim == 1 else self.sigma_w[part, None])
        white = scaled.copy()
        for back, share in enumerate(self.filters[order] if len(scaled) > order else (), start=1):
            white[order:] -= share * scaled[order - back : len(scaled) - back]
        white[order:] /= self.scales[order]
        for number in range(min(order, len(scaled))):
            back_to_first = scaled[:number][::-1]
            white[number] = (scaled[number] - self.filters[number] @ back_to_first) / self.scales[number]
        return white[before:]


def white_noise(sigma_w: Floats) -> Noise:
    """Return noise whose samples are independent.

    Parameters
    ----------
    sigma_w : array, shape (n,)
        Of each sample, one sigma, W.

    Returns
    -------
    Noise
        The noise.
    """
    return Noise(sigma_w, (np.zeros(0),), np.ones(1))


def noise_of(residual_w: Floats, grows_with: Floats, least_w: Floats, freedom: float, overlaps: Floats) -> Noise:
    """Find the noise from the residuals of a fit.

    Parameters
    ----------
    residual_w : array, shape (n,)
        The residuals, W.
    grows_with : array, shape (n, parts)
        What the variance of a sample is a sum of, each times a factor that is not negative; W squared.
    least_w : array, shape (n,)
        What the sensor itself scatters by, one sigma, W.
    freedom : float
        The degrees of freedom of the residuals, 1..n.
    overlaps : array, shape (lags,)
        The share of a window that the next ones have in common with it.

    Returns
    -------
    Noise
        The noise.
    """
    squares = residual_w**2 * (len(residual_w) / freedom)
    variance = np.maximum(_variances(squares, grows_with), least_w**2)
    apart = np.abs(residual_w) / np.sqrt(variance)
    variance = variance * np.maximum(1.0, apart / OUTLYING)  # as in Huber's estimator: its weight falls with 1 / |r|
    variance *= max(1.0, float(np.mean(squares / variance)))
    sigma_w = np.sqrt(variance)
    alike = (residual_w / sigma_w)[:LOOKED_AT]
    lags = np.arange(min(ORDER, max(0, len(residual_w) // 10)) + 1)
    common = np.where(lags < len(overlaps), overlaps[np.minimum(lags, len(overlaps) - 1)], 0.0)
    best: tuple[float, Noise] | None = None
    for share, lasting, decay in product(OVERLAPPING if len(overlaps) > 1 else (0.0,), LASTING, DECAYS):
        if share + lasting > MOST or (not lasting and decay != DECAYS[0]):
            continue
        correlation = share * common + lasting * decay**lags
        correlation[0] = 1.0
        filters, scales = _predictions(correlation, ORDER if share else 12)
        noise = Noise(sigma_w[: len(alike)], filters, scales)
        white = noise.whitened(alike * noise.sigma_w)
        cost = len(white) * float(np.log(np.mean(white**2))) + 2.0 * float(np.log(scales).sum())
        cost += 2.0 * (len(white) - len(scales)) * float(np.log(scales[-1]))
        if best is None or cost < best[0]:
            best = cost, Noise(sigma_w, filters, scales)
    assert best is not None
    return best[1]


def _variances(squares: Floats, grows_with: Floats) -> Floats:
    """The variance of each sample, from the squares of the residuals."""
    from scipy.optimize import nnls  # imported late: the window opens without it

    variance = np.full(len(squares), float(np.mean(squares)))
    for _ in range(3):
        weight = 1.0 / np.maximum(variance, 1e-12)
        capped = np.minimum(squares, OUTLYING**2 * variance)
        factors, _ = nnls(grows_with * weight[:, None], capped * weight)
        variance = np.maximum(grows_with @ factors, 0.05 * float(np.mean(capped)))
    return np.asarray(variance)


def _predictions(correlation: Floats, most: int) -> tuple[tuple[Floats, ...], Floats]:
    """The filter of each order and its relative error, from the correlation with the samples before [Durbin1960]."""
    filters: list[Floats] = [np.zeros(0)]
    variances = [1.0]
    for order in range(1, min(most, len(correlation) - 1) + 1):
        before = filters[-1]
        last = (float(correlation[order]) - float(before @ correlation[1:order][::-1])) / variances[-1]
        if abs(last) >= 1.0:
            break
        filters.append(np.concatenate([before - last * before[::-1], [last]]))
        variances.append(variances[-1] * (1.0 - last**2))
        if order > 1 and abs(last) < 1e-4:
            break
    return tuple(filters), np.sqrt(np.asarray(variances))


def overlaps_of(refresh_s: float, window_s: float) -> Floats:
    """Return how much of a sample's window the next ones have in common with it.

    Parameters
    ----------
    refresh_s : float
        From one sample to the next, s.
    window_s : float
        What a sample averages, s.

    Returns
    -------
    array, shape (lags,)
        The shares, from 1 for the sample itself down to the last one above 0.
    """
    shares = 1.0 - np.arange(ORDER) * refresh_s / window_s
    return np.asarray(shares[shares > 1e-6])
