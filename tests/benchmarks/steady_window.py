"""Windows over made loads whose truth is known: how often the 95 % intervals cover it, and how wide they are. By hand:

    PYTHONPATH=. python tests/benchmarks/steady_window.py [--repeats 400]

Each load is what a service reports (tokens in stretches of 0.25 s) and what its board draws (a value each 20 ms). The
first table looks at it for a fixed time; the second as a session does, until throughput and power are known to
`precision`, which closes a window the sooner the narrower its intervals happen to be. Two estimators stand beside each
other: `ends`, as until November 2026, divides what came in the window by its length, with Student's t over 24 blocks
and a positive first-order autoregression; `smooth` is `app.engine.metering.confidence`. Truth is the mean in the long
run; where power drifts, the mean of its level over the window.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from app.engine.metering.confidence import rates_in_cells, smooth_mean, student_t
from app.engine.metering.steady_window import look

Floats = npt.NDArray[np.float64]
STRETCH_S, SAMPLE_S = 0.25, 0.02
TOKENS = 128
NOISE_W = 5.0


@dataclass(frozen=True)
class Load:
    """What was seen of a load for a time, and the truth."""

    work: Floats  # tokens in each stretch
    power_w: Floats
    rate: float  # tokens/s
    mean_w: float
    level_w: Floats = field(default_factory=lambda: np.zeros(1))  # beside the mean, at each sample

    def truth(self, start_s: float) -> tuple[float, float, float]:
        """Tokens/s, W and J/token from then on."""
        mean_w = self.mean_w + float(self.level_w[min(len(self.level_w) - 1, round(start_s / SAMPLE_S)) :].mean())
        return self.rate, mean_w, mean_w / self.rate


def in_stretches(times: Floats, amounts: Floats, seconds: float) -> Floats:
    return np.histogram(times, np.arange(round(seconds / STRETCH_S) + 1) * STRETCH_S, weights=amounts)[0]


def samples(seconds: float) -> Floats:
    return (np.arange(round(seconds / SAMPLE_S)) + 0.5) * SAMPLE_S


def autoregression(rng: np.random.Generator, count: int, step_s: float, time_s: float) -> Floats:
    """Of unit variance, whose correlation falls to 1/e in that time."""
    alike = math.exp(-step_s / time_s)
    fresh = rng.standard_normal(count) * math.sqrt(1 - alike**2)
    found, last = np.empty(count), rng.standard_normal()
    for at, each in enumerate(fresh):
        found[at] = last = alike * last + each
    return found


def open_loop(rng: np.random.Generator, seconds: float, rate: float = 20.0, answer_s: float = 1.0) -> Load:
    """Requests at random times, each answered at an even pace; the server is empty at first."""
    began = np.sort(rng.uniform(0, seconds, rng.poisson(rate * seconds)))
    came = (began[:, None] + 0.1 + answer_s * np.linspace(0, 1, TOKENS)).ravel()
    at = samples(seconds)
    busy = np.searchsorted(began, at) - np.searchsorted(began + 0.1 + answer_s, at)
    power_w = 90 + 8.0 * busy + NOISE_W * rng.standard_normal(len(at))
    work = in_stretches(came, np.ones(len(came)), seconds)
    return Load(work, power_w, rate * TOKENS, 90 + 8 * rate * (answer_s + 0.1))


def in_step(rng: np.random.Generator, seconds: float, clients: int, prefill_s: float, step_s: float) -> Load:
    """Closed loop, fixed lengths: all prompts are read one after another, then all answers are written."""
    reading_s, writing_s = clients * prefill_s, TOKENS * step_s
    times, amounts, begins, levels_w = [], [], [], []
    now = 0.0
    while now < seconds:
        reads, writes = np.array([reading_s, writing_s]) * (1 + 0.01 * rng.standard_normal(2))
        times += [now + reads * np.arange(1, clients + 1) / clients]
        times += [now + reads + writes * np.arange(1, TOKENS) / (TOKENS - 1)]
        amounts += [np.ones(clients), np.full(TOKENS - 1, float(clients))]
        begins += [now, now + reads]
        levels_w += [400.0, 230.0]
        now += reads + writes
    at = samples(seconds)
    power_w = np.array(levels_w)[np.searchsorted(begins, at, side="right") - 1]
    work = in_stretches(np.concatenate(times), np.concatenate(amounts), seconds)
    wave_s = reading_s + writing_s
    mean_w = (400 * reading_s + 230 * writing_s) / wave_s
    return Load(work, power_w + NOISE_W * rng.standard_normal(len(at)), clients * TOKENS / wave_s, mean_w)


def slow_at_first(rng: np.random.Generator, seconds: float) -> Load:
    """64 clients in step, for 3 s at 0.3 times the pace."""
    load = in_step(rng, seconds, clients=64, prefill_s=0.0135, step_s=0.0068)
    edges, at = STRETCH_S * np.arange(len(load.work) + 1), samples(seconds)

    def served(times: Floats) -> Floats:
        return np.where(times < 3, 0.3 * times, times - 2.1)

    work = np.diff(np.interp(served(edges), edges, np.concatenate([[0.0], np.cumsum(load.work)])))
    return Load(work, np.interp(served(at), at, load.power_w), load.rate, load.mean_w)


def closed_loop(rng: np.random.Generator, seconds: float, clients: int = 32) -> Load:
    """Closed loop, answers of 32 to 224 tokens: in step at first, and soon no more."""
    low, high, prefill_s, step_s = 32, 224, 0.1, 0.0065
    times, began, ended = [], [], []
    for _ in range(clients):
        now = 0.0
        while now < seconds:
            tokens = int(rng.integers(low, high + 1))
            times.append(now + prefill_s + step_s * np.arange(1, tokens + 1))
            began.append(now + prefill_s)
            now += prefill_s + tokens * step_s
            ended.append(now)
    came, at = np.concatenate(times), samples(seconds)
    writing = np.searchsorted(np.sort(began), at) - np.searchsorted(np.sort(ended), at)
    power_w = 150 + 4.0 * writing + 9.0 * (clients - writing) + NOISE_W * rng.standard_normal(len(at))
    mean = (low + high) / 2
    answer_s = prefill_s + mean * step_s
    share = mean * step_s / answer_s
    work = in_stretches(came, np.ones(len(came)), seconds)
    return Load(work, power_w, clients * mean / answer_s, 150 + clients * (4 * share + 9 * (1 - share)))


def drifting(rng: np.random.Generator, seconds: float, *, walk: bool) -> Load:
    """An open loop on a board whose power creeps up by 8 W as it warms, or walks at random."""
    load, at = open_loop(rng, seconds), samples(seconds)
    level_w = np.cumsum(0.15 * rng.standard_normal(len(at))) if walk else 8.0 * (1 - np.exp(-at / 20))
    return Load(load.work, load.power_w + level_w, load.rate, load.mean_w, level_w)


def wandering(rng: np.random.Generator, seconds: float, time_s: float) -> Load:
    """Throughput and power wander, apart from each other."""
    stretches, at = round(seconds / STRETCH_S), samples(seconds)
    work = 1000 * STRETCH_S * (1 + 0.15 * autoregression(rng, stretches, STRETCH_S, time_s))
    return Load(work, 300 * (1 + 0.05 * autoregression(rng, len(at), SAMPLE_S, time_s)), 1000.0, 300.0)


def warming(rng: np.random.Generator, seconds: float) -> Load:
    """A quarter of the throughput for 2 s, then steady."""
    middles, at = (np.arange(round(seconds / STRETCH_S)) + 0.5) * STRETCH_S, samples(seconds)
    level = np.where(middles < 2, 0.25, 1.0) * (1 + 0.1 * rng.standard_normal(len(middles)))
    power_w = np.where(at < 2, 200.0, 300.0) + NOISE_W * rng.standard_normal(len(at))
    return Load(1000 * STRETCH_S * level, power_w, 1000.0, 300.0)


_STEP_S = {1: 0.00366, 2: 0.0037, 4: 0.0038, 8: 0.004, 16: 0.0043, 32: 0.005, 64: 0.0068}  # of so many sequences
_PROMPT_S = 0.0025


def engine(
    rng: np.random.Generator, seconds: float, clients: int, lengths: tuple[int, int], ramp_s: float, state: float = 0.0
) -> Load:
    """As `torch_server.py` works: all in a slot get a token a step, and one prompt is read between two steps.

    A window opens after the ramp. Lengths are drawn alike each time, as a load generator's seed has them; `state` is
    by what share the host makes prompts slower or faster for all of the time, which only the truth knows.
    """
    rate, mean_w = _engine_truth(clients, lengths)
    prompt_s = _PROMPT_S * max(0.2, 1 + state * rng.standard_normal())
    ends, tokens, power_w = _engine(rng, ramp_s + seconds, clients, lengths, ramp_s, prompt_s)
    joules = np.cumsum(np.diff(ends, prepend=0.0) * power_w)
    edges = ramp_s + SAMPLE_S * np.arange(round(seconds / SAMPLE_S) + 1)
    drawn = np.diff(np.interp(edges, np.concatenate([[0.0], ends]), np.concatenate([[0.0], joules]))) / SAMPLE_S
    return Load(in_stretches(ends - ramp_s, tokens, seconds), drawn, rate, mean_w)


@lru_cache
def _engine_truth(clients: int, lengths: tuple[int, int]) -> tuple[float, float]:
    """Tokens/s and W in the long run."""
    ends, tokens, power_w = _engine(np.random.default_rng(0), 300.0, clients, lengths, 2.0, _PROMPT_S)
    spent_s, late = np.diff(ends, prepend=0.0), ends > 20
    return float(tokens[late].sum() / spent_s[late].sum()), float((spent_s * power_w)[late].sum() / spent_s[late].sum())


def _engine(
    rng: np.random.Generator, seconds: float, clients: int, lengths: tuple[int, int], ramp_s: float, prompt_s: float
) -> tuple[Floats, Floats, Floats]:
    """When each prompt and step ended, the tokens that it gave, and W until then."""
    drawn = np.random.default_rng(1)
    waiting = [ramp_s * client / clients for client in range(clients)]  # when each request comes
    left: list[int | None] = [None] * clients  # tokens of the answer in each slot
    found, now = [], 0.0
    while now < seconds:
        if not any(left) and waiting[0] > now:
            now = waiting[0]
            found.append((now, 0, 120.0))
        if waiting and waiting[0] <= now:
            heappop(waiting)
            left[left.index(None)] = int(drawn.integers(lengths[0], lengths[1] + 1)) - 1
            now += prompt_s * (1 + 0.02 * rng.standard_normal())
            found.append((now, 1, 520.0))
        busy = [slot for slot, each in enumerate(left) if each is not None]
        now += _STEP_S[1 << busy[-1].bit_length()] * (1 + 0.01 * rng.standard_normal())
        found.append((now, len(busy), 270.0 + 0.3 * busy[-1]))
        for slot in busy:
            left[slot] = (left[slot] or 0) - 1 or None
            if left[slot] is None:
                heappush(waiting, now + rng.uniform(0.001, 0.003))
    ends, tokens, power_w = np.array(found).T
    return ends, tokens, power_w


LOADS: dict[str, Callable[[np.random.Generator, float], Load]] = {
    "open loop, 20/s": open_loop,
    "nearly idle, 1/s": partial(open_loop, rate=1.0, answer_s=0.4),
    "in step, 1 client": partial(in_step, clients=1, prefill_s=0.0135, step_s=0.0037),
    "in step, 8 clients": partial(in_step, clients=8, prefill_s=0.0135, step_s=0.0041),
    "in step, 32 clients": partial(in_step, clients=32, prefill_s=0.0125, step_s=0.0048),
    "in step, 64 clients": partial(in_step, clients=64, prefill_s=0.0135, step_s=0.0068),
    "the same, slow at first": slow_at_first,
    "closed, random lengths": closed_loop,
    "warming board": partial(drifting, walk=False),
    "power walks at random": partial(drifting, walk=True),
    "wanders for 0.3 s": partial(wandering, time_s=0.3),
    "wanders for 1 s": partial(wandering, time_s=1.0),
    "wanders for 3 s": partial(wandering, time_s=3.0),
    "starts slowly": warming,
    **{
        f"engine, {clients}, {words}": partial(engine, clients=clients, lengths=lengths, ramp_s=ramp_s, state=state)
        for clients in (8, 32, 64)
        for words, lengths, ramp_s, state in (
            ("at once", (128, 128), 0.0, 0.0),
            ("ramp", (128, 128), 2.0, 0.0),
            ("drawn", (64, 192), 2.0, 0.0),
            ("state", (64, 192), 2.0, 0.25),
        )
    },
}


@dataclass(frozen=True)
class Seen:
    """Tokens/s, W and J/token, with the half-widths of their intervals, relative."""

    start_s: float
    steady: bool
    figures: tuple[float, float, float]
    halves: tuple[float, float, float]

    def narrow(self, precision: float) -> bool:
        return self.steady and max(self.halves[:2]) <= precision


def smooth(load: Load, seconds: float) -> Seen:
    """As Wattridge does."""
    work, power_w = load.work[: round(seconds / STRETCH_S)], load.power_w[: round(seconds / SAMPLE_S)]
    stretches = STRETCH_S * np.arange(1, len(work) + 1)
    found = look(stretches, work, samples(seconds), power_w, seconds)
    rate = smooth_mean(rates_in_cells(found.start_s, seconds, stretches, work))
    inside = power_w[round(found.start_s / SAMPLE_S) :]
    mean_w = float(inside.mean()) * found.known.smooth_power
    halves = found.known.rate_half, found.known.power_half, found.known.cost_half
    return Seen(found.start_s, found.steady, (rate, mean_w, mean_w / rate if rate else math.nan), halves)


def ends(load: Load, seconds: float) -> Seen:
    """As Wattridge did until November 2026."""
    work, power_w = load.work[: round(seconds / STRETCH_S)], load.power_w[: round(seconds / SAMPLE_S)]
    edges = np.linspace(0, seconds, 25)
    done = np.concatenate([[0.0], np.cumsum(work)])
    rate = np.diff(np.interp(edges, STRETCH_S * np.arange(len(done)), done))
    count = np.histogram(samples(seconds), edges)[0]
    power = np.histogram(samples(seconds), edges, weights=power_w)[0] / count

    def begin(values: Floats) -> int:
        return int(np.argmin([np.var(values[at:]) / (24 - at) for at in range(17)]))

    def half(values: Floats, scale: float) -> float:
        apart = values - values.mean()
        squares = float(apart @ apart)
        if not squares > 0 or not scale > 0:
            return math.inf
        alike = min(0.9, max(0.0, float(apart[1:] @ apart[:-1]) / squares))
        many = len(values)
        return student_t(many - 1) * math.sqrt(squares / (many - 1) / many * (1 + alike) / (1 - alike)) / scale

    first = max(begin(rate), begin(power))
    steady, first = first < 12, min(first, 12)
    rate, power = rate[first:], power[first:]
    each = float(rate.sum() / power.sum())
    halves = (
        half(rate, float(rate.mean())),
        half(power, float(power.mean())),
        half(rate - each * power, float(rate.mean())),
    )
    figures = float(rate.mean()) / (edges[1]), float(power.mean()), edges[1] / each if each else math.nan
    return Seen(float(edges[first]), steady, figures, halves)


METHODS = {"ends": ends, "smooth": smooth}


def shown(found: list[tuple[Seen, tuple[float, float, float]]]) -> str:
    """Coverage, median half-width and error, %, of tokens/s, W and J/token."""
    off = np.array([[a / b - 1 for a, b in zip(seen.figures, truth, strict=True)] for seen, truth in found])
    halves = np.array([seen.halves for seen, _ in found])
    covered = 100 * np.mean(np.abs(off) <= halves, axis=0)
    wide, error = 100 * np.median(halves, axis=0), 100 * np.sqrt(np.nanmean(off**2, axis=0))
    return (
        "".join(f"{each:5.0f}" for each in covered)
        + "  "
        + "".join(f"{each:7.2f}" for each in wide)
        + "  "
        + "".join(f"{each:7.2f}" for each in error)
    )


def fixed(method: Callable[[Load, float], Seen], load: Load, seconds: float) -> tuple[Seen, float]:
    return method(load, seconds), seconds


def until_known(
    method: Callable[[Load, float], Seen], load: Load, most_s: float, precision: float = 0.02
) -> tuple[Seen, float]:
    """As a session looks: from 10 s on, each time after 1.15 times as long."""
    now = 10.0
    while True:
        at = min(most_s, round(now / STRETCH_S) * STRETCH_S)
        seen = method(load, at)
        if at >= most_s or (at - seen.start_s >= 10.0 and seen.narrow(precision)):
            return seen, at
        now *= 1.15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=400)
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--loads", default="", help="only those whose names have this")
    arguments = parser.parse_args()
    print(f"{arguments.repeats} of each load. Of tokens/s, W and J/token each: how often the 95 % interval covers the")
    print("truth, %; the median of its half-width, %; the root mean square of what it is off the truth, %.")
    cases = (
        ("windows of 13 s", fixed, 13.0),
        ("windows of 21 s", fixed, 21.0),
        ("until throughput and power are known to 2 %, 10 to 120 s", until_known, 120.0),
    )
    for words, how, seconds in cases:
        print(f"\n{words}")
        print(f"{'load':24}{'':8}{'cover':>15}{'half-width':>23}{'error':>23}{'s':>8}{'steady':>8}")
        for name, make in LOADS.items():
            if arguments.loads not in name:
                continue
            for label, method in METHODS.items():
                rng = np.random.default_rng(arguments.seed)
                found, took = [], []
                for _ in range(arguments.repeats):
                    load = make(rng, seconds)
                    seen, at = how(method, load, seconds)
                    found.append((seen, load.truth(seen.start_s)))
                    took.append(at)
                steady = 100 * np.mean([seen.steady for seen, _ in found])
                print(f"{name:24}{label:8}{shown(found)}{np.mean(took):8.1f}{steady:8.0f}", flush=True)


if __name__ == "__main__":
    main()
