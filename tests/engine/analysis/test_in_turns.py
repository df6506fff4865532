"""The difference of two sides that were measured in turns, and the interval that holds whenever one stops."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
import pytest

from app.engine.analysis.in_turns import Block, Side, Verdict, compare_in_turns, interval_of, turns

EVER = 0.02  # of 300 runs, where 0.01 are allowed in the long run


def measured(
    logs: Sequence[float], planted: float, seed: int, *, length_s: float = 0.5, time: float = 0.0
) -> list[Block]:
    """Blocks whose joules follow from their place and their side alone."""
    blocks = []
    for place, (side, log) in enumerate(zip(turns(seed), logs, strict=False)):
        b = side == "B"
        joules = math.exp(log) * (1 + planted if b else 1)
        start_s = place * length_s
        blocks.append(Block(side, start_s, start_s + length_s, 2.0 * (1 + time if b else 1), joules))
    return blocks


def looks(blocks: Sequence[Block]) -> Iterator[tuple[float, float]]:
    for count in range(20, len(blocks) + 1, 2):
        ends = compare_in_turns(blocks[:count]).energy.interval
        if ends is not None:
            yield ends


def test_each_pair_has_both_sides_and_a_coin_decides_which_begins() -> None:
    order = list(islice(turns(3), 400))
    pairs = list(zip(order[::2], order[1::2], strict=True))
    assert {frozenset(pair) for pair in pairs} == {frozenset("AB")}
    begun: list[Side] = [pair[0] for pair in pairs]
    assert 70 < begun.count("A") < 130
    assert order == list(islice(turns(3), 400))
    assert order != list(islice(turns(4), 400))


def test_a_constant_difference_is_found_exactly_where_there_is_no_noise() -> None:
    result = compare_in_turns(measured([0.0] * 40, 0.02, 1, time=-0.01))
    assert result.energy.change == pytest.approx(0.02, abs=1e-4)
    assert result.time.change == pytest.approx(-0.01, abs=1e-4)
    assert result.verdict is Verdict.WORSE
    assert result.seconds_more == 0


@pytest.mark.parametrize("curve", ["straight", "bent"])
def test_drift_cancels(curve: str) -> None:
    place = np.arange(60)
    logs = 0.01 * place if curve == "straight" else 1e-4 * place**2
    result = compare_in_turns(measured(logs.tolist(), 0.01, 5))
    assert result.energy.interval is not None
    assert result.energy.interval[0] <= 0.01 <= result.energy.interval[1]
    assert result.energy.half_width < 0.002  # a pair's own drift is 1 % of it


def test_nine_units_are_the_fewest_that_have_an_interval_for_one_in_a_hundred() -> None:
    logs = np.random.default_rng(1).normal(0, 0.003, 40).tolist()
    assert compare_in_turns(measured(logs[:18], 0.0, 1)).energy.interval is None
    assert compare_in_turns(measured(logs[:20], 0.0, 1)).energy.interval is not None
    assert compare_in_turns([]).words == "joules unknown; time unknown"


@pytest.mark.parametrize("noise", ["normal", "tails", "walk", "in step", "neighbour"])
def test_the_interval_is_hardly_ever_wrong_at_any_look(noise: str) -> None:
    wrong = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        logs = 0.004 * rng.standard_normal(44) + 0.03 * (1 - np.exp(-np.arange(44) / 20))
        if noise == "tails":
            logs += 0.003 * rng.standard_cauchy(44)
        elif noise == "walk":
            logs += np.cumsum(0.004 * rng.standard_normal(44))
        elif noise == "in step":
            logs += 0.02 * (np.arange(44) % 2)
        elif noise == "neighbour":
            logs += 0.2 * (np.searchsorted(np.cumsum(rng.exponential(7, 100)), np.arange(44)) % 2)
        units = compare_in_turns(measured(logs.tolist(), 0.01, seed)).units
        ends = [interval_of(units[:count]) for count in range(9, len(units) + 1)]
        wrong += any(not low <= math.log(1.01) <= high for low, high in ends)
    assert wrong <= EVER * 300


def test_looks_at_blocks_are_looks_at_their_units() -> None:
    blocks = measured(np.random.default_rng(2).normal(0, 0.003, 40).tolist(), 0.0, 2)
    last = list(looks(blocks))[-1]
    assert last == compare_in_turns(blocks).energy.interval


def test_an_outlier_costs_a_few_units_whatever_its_size() -> None:
    logs = np.random.default_rng(3).normal(0, 0.003, 80)
    clean = compare_in_turns(measured(logs.tolist(), 0.01, 3)).energy
    dirty = []
    for size in (0.5, 5.0):
        logs[20] += size
        dirty.append(compare_in_turns(measured(logs.tolist(), 0.01, 3)).energy)
    assert dirty[0] == dirty[1]
    assert dirty[0].half_width < 2 * clean.half_width
    assert abs(dirty[0].change - clean.change) < clean.half_width


def test_the_verdict_follows_the_whole_interval_and_the_threshold() -> None:
    blocks = measured(np.random.default_rng(4).normal(0, 0.003, 60).tolist(), 0.01, 4)
    assert compare_in_turns(blocks, threshold=0.002).verdict is Verdict.WORSE
    assert compare_in_turns(blocks, threshold=0.02).verdict is Verdict.NO_WORSE
    near = compare_in_turns(blocks, threshold=compare_in_turns(blocks).energy.change)
    assert near.verdict is Verdict.OPEN
    assert near.seconds_more > 1000


def test_how_much_longer_it_takes_is_about_right() -> None:
    logs = np.random.default_rng(6).normal(0, 0.008, 4000).tolist()
    blocks = measured(logs, 0.01, 6)
    early = compare_in_turns(blocks[:40])
    assert early.verdict is Verdict.OPEN
    told = next(n for n in range(40, 4000, 2) if compare_in_turns(blocks[:n]).verdict is not Verdict.OPEN)
    assert 0.2 < (early.seconds + early.seconds_more) / (told * 0.5) < 5


def test_too_few_blocks_need_the_fewest_at_least() -> None:
    early = compare_in_turns(measured([0.0] * 2, 0.0, 1))
    assert early.seconds_more == pytest.approx(early.seconds * 10)
    assert compare_in_turns([]).seconds_more == math.inf


def test_a_pair_whose_energy_is_not_known_does_not_count() -> None:
    blocks = measured(np.random.default_rng(7).normal(0, 0.002, 60).tolist(), 0.01, 7)
    one = blocks[11]
    blocks[11] = Block(one.side, one.start_s, one.end_s, one.time_s, math.nan)
    result = compare_in_turns(blocks)
    assert len(result.units) == 28
    assert result.energy.interval is not None
    assert result.energy.interval[0] <= 0.01 <= result.energy.interval[1]


def test_sides_of_unlike_length_are_compared_in_drift_too() -> None:
    blocks, at_s = [], 0.0
    for side in islice(turns(8), 60):
        length_s = 1.0 if side == "A" else 3.0
        middle_s = at_s + length_s / 2
        blocks.append(Block(side, at_s, at_s + length_s, length_s, math.exp(0.001 * middle_s)))
        at_s += length_s
    result = compare_in_turns(blocks)
    assert abs(result.energy.change) < 0.0005
    assert result.time.change == pytest.approx(2.0, rel=0.01)


def test_words() -> None:
    noise = np.random.default_rng(9).normal(0, 0.003, 60).tolist()
    result = compare_in_turns(measured(noise, 0.05, 9, time=-0.02))
    assert result.words.startswith("B needs 4.9 ± 0.")
    assert " % more joules and 2" in result.words
    assert result.words.endswith(" % less time")
    same = compare_in_turns(measured(noise, 0.0, 9, time=-0.02))
    assert "B needs 2" in same.words
    assert "; joules not distinguishable (" in same.words
