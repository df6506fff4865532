"""From what became of requests in a window to the figures of a service."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...sensors.service_load import Requests, Served
from ..metering.smooth_mean import EVEN, Weights
from ..service_figures import PERCENTILES

Floats = npt.NDArray[np.float64]


def figures_of_requests(
    served: Sequence[Served], start_ns: int, end_ns: int, weights: Weights = EVEN
) -> dict[str, float]:
    """The figures of the requests that ended in a window, by `service_figures`; what is not known is left out.

    Latencies are of the requests that were answered in full, and count from when each was due. Tokens count when they
    arrive where that is known, else with the end of their request. Rates and the idle share are means over the window
    by the weights; requests and errors are counted.
    """
    ended = Requests.joined([each.requests for each in served]).ended_within(start_ns, end_ns)
    seconds = (end_ns - start_ns) / 1e9
    good = ~ended.failed
    counts = weights.at((ended.ended_ns - start_ns) / max(1, end_ns - start_ns)) * good
    figures = {
        "requests": float(len(ended)),
        "errors": float(ended.failed.sum()),
        "error_share": float(ended.failed.mean()) if len(ended) else math.nan,
        "requests_per_s": float(counts.sum()) / seconds,
        "input_tokens_per_s": float((ended.input_tokens * counts)[good].sum()) / seconds,
        "output_tokens_per_s": _tokens_per_s(served, ended, counts, start_ns, end_ns, weights),
        "idle_share": min(1.0, max(0.0, _idle(served, start_ns, end_ns, weights))),
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
    """By when work was done, ns, ascending, and how much: tokens as they arrive, else requests as they end."""
    counted = [each for each in served if math.isfinite(each.output_tokens)]
    if counted and len(counted) == len([each for each in served if each.end_ns > each.start_ns]):
        times = np.array([each.end_ns for each in counted], dtype=np.float64)
        return times, _tokens_of(counted)
    ended = Requests.joined([each.requests for each in served])
    tokens = ended.output_tokens[~ended.failed]
    if not len(tokens) or not np.isfinite(tokens).all() or not tokens.sum() > 0:
        return answers_of(served)
    ended_ns = ended.ended_ns[~ended.failed]
    order = np.argsort(ended_ns, kind="stable")
    return ended_ns[order].astype(np.float64), tokens[order]


def answers_of(served: Sequence[Served]) -> tuple[Floats, Floats]:
    """When requests were answered in full, ns, ascending, and 1 for each."""
    ended = Requests.joined([each.requests for each in served])
    times = np.sort(ended.ended_ns[~ended.failed]).astype(np.float64)
    return times, np.ones(len(times))


def _tokens_per_s(
    served: Sequence[Served], ended: Requests, counts: Floats, start_ns: int, end_ns: int, weights: Weights
) -> float:
    """Of the answers within the window; NaN where nothing counts them."""
    shares = _shares(served, start_ns, end_ns, weights)
    inside = shares > 0
    tokens = _tokens_of(served)[inside]
    if len(tokens) and np.isfinite(tokens).all():
        return float(tokens / _lengths_s(served)[inside] @ shares[inside])
    return float((ended.output_tokens * counts)[~ended.failed].sum()) / ((end_ns - start_ns) / 1e9)


def _idle(served: Sequence[Served], start_ns: int, end_ns: int, weights: Weights) -> float:
    shares = _shares(served, start_ns, end_ns, weights)
    inside = shares > 0
    idle_s = np.array([each.idle_s for each in served])
    return float(idle_s[inside] / _lengths_s(served)[inside] @ shares[inside])


def _tokens_of(served: Sequence[Served]) -> Floats:
    """The output tokens of each stretch, for each piece of a stream as many as all answers had."""
    latest = served[-1].tokens_per_piece if served else 1.0
    return np.array([each.output_tokens * (latest / each.tokens_per_piece) for each in served])


def _lengths_s(served: Sequence[Served]) -> Floats:
    return np.array([(each.end_ns - each.start_ns) / 1e9 for each in served])


def _shares(served: Sequence[Served], start_ns: int, end_ns: int, weights: Weights) -> Floats:
    """How much of the weight of a window lies in each stretch, 0 to 1."""
    length = max(1, end_ns - start_ns)
    return np.array(
        [weights.between((each.start_ns - start_ns) / length, (each.end_ns - start_ns) / length) for each in served]
    )


def _latency(name: str, values_s: Floats) -> dict[str, float]:
    if not len(values_s):
        return {}
    found = np.percentile(values_s, PERCENTILES)
    named = {f"{name}_p{each}_s": float(value) for each, value in zip(PERCENTILES, found, strict=True)}
    return {f"{name}_mean_s": float(values_s.mean()), **named}
