"""From what became of requests in a window to the figures of a service."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...sensors.service_load import Requests, Served
from ..service_figures import PERCENTILES

Floats = npt.NDArray[np.float64]


def figures_of_requests(served: Sequence[Served], start_ns: int, end_ns: int) -> dict[str, float]:
    """The figures of the requests that ended in a window, by `service_figures`; what is not known is left out.

    Latencies are of the requests that were answered in full, and count from when each was due. Tokens count when they
    arrive where that is known, else with the end of their request.
    """
    ended = Requests.joined([each.requests for each in served]).ended_within(start_ns, end_ns)
    seconds = (end_ns - start_ns) / 1e9
    good = ~ended.failed
    figures = {
        "requests": float(len(ended)),
        "errors": float(ended.failed.sum()),
        "error_share": float(ended.failed.mean()) if len(ended) else math.nan,
        "requests_per_s": float(good.sum()) / seconds,
        "input_tokens_per_s": float(ended.input_tokens[good].sum()) / seconds,
        "output_tokens_per_s": _tokens(served, ended, start_ns, end_ns) / seconds,
        "idle_share": min(1.0, max(0.0, _idle_s(served, start_ns, end_ns) / seconds)),
    }
    if len(ended):
        figures["sent_late_p99_s"] = float(np.percentile(ended.sent_ns - ended.due_ns, 99)) / 1e9
    due, first, last = (times[good] for times in (ended.due_ns, ended.first_ns, ended.ended_ns))
    tokens, began = ended.output_tokens[good], first > 0
    several = began & (tokens > 1)
    figures |= _latency("e2e", (last - due) / 1e9)
    figures |= _latency("ttft", (first - due)[began] / 1e9)
    figures |= _latency("tpot", (last - first)[several] / 1e9 / (tokens[several] - 1))
    return {name: value for name, value in figures.items() if math.isfinite(value)}


def faults_in_words(served: Sequence[Served]) -> str:
    """'HTTP status 503 (12), no connection (3)': what failed requests met, the most frequent first."""
    faults: Counter[str] = Counter()
    for each in served:
        faults.update(each.faults)
    return ", ".join(f"{words} ({count})" for words, count in faults.most_common(3))


def work_of(served: Sequence[Served]) -> tuple[Floats, Floats]:
    """By when work was done, in ns as float, and how much: tokens as they arrive, else requests as they end."""
    counted = [each for each in served if math.isfinite(each.output_tokens)]
    if counted and len(counted) == len([each for each in served if each.end_ns > each.start_ns]):
        times = np.array([each.end_ns for each in counted], dtype=np.float64)
        return times, np.array([each.output_tokens for each in counted])
    ended = Requests.joined([each.requests for each in served])
    good = ~ended.failed
    tokens = ended.output_tokens[good]
    work = tokens if len(tokens) and np.isfinite(tokens).all() and tokens.sum() > 0 else np.ones(int(good.sum()))
    return ended.ended_ns[good].astype(np.float64), work


def _tokens(served: Sequence[Served], ended: Requests, start_ns: int, end_ns: int) -> float:
    """Of the answers within the window; NaN where nothing counts them."""
    inside = [(each, _share(each, start_ns, end_ns)) for each in served]
    inside = [(each, share) for each, share in inside if share > 0]
    if inside and all(math.isfinite(each.output_tokens) for each, _ in inside):
        return sum(each.output_tokens * share for each, share in inside)
    return float(ended.output_tokens[~ended.failed].sum())


def _idle_s(served: Sequence[Served], start_ns: int, end_ns: int) -> float:
    return sum(each.idle_s * _share(each, start_ns, end_ns) for each in served)


def _share(served: Served, start_ns: int, end_ns: int) -> float:
    """How much of a stretch lies within the window, 0 to 1."""
    length = served.end_ns - served.start_ns
    return max(0, min(served.end_ns, end_ns) - max(served.start_ns, start_ns)) / length if length > 0 else 0.0


def _latency(name: str, values_s: Floats) -> dict[str, float]:
    if not len(values_s):
        return {}
    found = np.percentile(values_s, PERCENTILES)
    named = {f"{name}_p{each}_s": float(value) for each, value in zip(PERCENTILES, found, strict=True)}
    return {f"{name}_mean_s": float(values_s.mean()), **named}
