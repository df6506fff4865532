"""The simulated programs are what they claim to be: their hidden joules are the integral of the hidden power."""

import numpy as np
import pytest

from tests.fixtures.programs import PATTERNS, TWINS, random_program


@pytest.mark.parametrize("kind", list(PATTERNS))
def test_hidden_joules_are_what_the_sensor_saw(kind):
    program = random_program(7, twin="h200", kind=kind, seconds=6.0)
    first, last = program.span
    inside = (program.sample_s >= first + 0.01) & (program.sample_s <= last)
    seen = float(program.sample_w[inside].mean()) * (last - first)
    assert program.total_joules == pytest.approx(seen, rel=0.02)
    assert program.joules.min() > 0.0
    assert program.family_joules.sum() + program.gap_joules == pytest.approx(program.total_joules)


def test_a_program_is_the_same_for_the_same_seed_and_another_for_another():
    one, again, other = (random_program(seed, kind="bursts", seconds=3.0) for seed in (4, 4, 13))
    assert np.array_equal(one.sample_w, again.sample_w)
    assert one.twin == other.twin
    assert len(one.sample_w) != len(other.sample_w) or not np.array_equal(one.sample_w, other.sample_w)


def test_every_twin_has_programs_whose_sensor_is_off_within_what_is_stated():
    assert len(TWINS) >= 9
    for number, twin in enumerate(TWINS):
        program = random_program(100 + number, twin=twin, kind="mixed", seconds=2.0)
        off_ms = abs(program.true_sensor.lag_ms - program.sensor.lag_ms)
        assert 0.0 < off_ms <= program.sensor.lag_margin_ms
        assert program.sample_w.max() < 1.4 * program.limit_w


def test_phases_vary_independently_and_a_short_loop_does_not():
    program = random_program(12)
    assert (program.twin, program.kind) == ("h200", "phases")
    assert program.family_joules[program.independent()].sum() > 0.9 * program.total_joules
    assert not any(random_program(1, twin="a4000", kind="loop", seconds=20.0).independent())


def test_programs_that_are_made_to_fool_are_what_they_say():
    together = random_program(3, twin="h200", kind="together", seconds=5.0)
    assert set(np.flatnonzero(together.family == 1) - np.flatnonzero(together.family == 0)) == {1}
    follows = random_program(3, twin="h200", kind="follows", seconds=5.0)
    assert set(follows.family[np.flatnonzero(follows.family == 0) - 1]) == {1}
    in_step = random_program(12, twin="h200", kind="in step", seconds=5.0)
    starts = in_step.begin_s[in_step.family == 0]
    bursts = starts[np.diff(starts, prepend=-1.0) > 0.02]
    assert np.diff(bursts) == pytest.approx(0.04, rel=0.02)

    context = random_program(3, twin="h200", kind="context", seconds=5.0)
    power_w = context.joules / (context.end_s - context.begin_s)
    after = np.concatenate([[0], context.family[:-1] % 2])
    big = np.bincount(context.family).argmax()
    means = [power_w[(context.family == big) & (after == odd)].mean() for odd in (0, 1)]
    assert means[1] > 1.1 * means[0]
    halved = random_program(3, twin="h200", kind="throttled", seconds=5.0)
    middle = (halved.sample_s > 0.5) & (halved.sample_s < 2.4)
    assert halved.clock[(halved.sample_s > 2.6) & (halved.sample_s < 5.0)].max() <= 0.5 < halved.clock[middle].min()
    plain, neighbour = (random_program(3, twin="h200", kind=kind, seconds=5.0) for kind in ("mixed", "neighbour"))
    assert np.array_equal(plain.begin_s, neighbour.begin_s)
    more_w = (neighbour.total_joules - plain.total_joules) / (plain.span[1] - plain.span[0])
    assert 5.0 < more_w < 65.0
    drifts = random_program(3, twin="h200", kind="lag drifts", seconds=5.0)
    assert drifts.true_sensor.lag_ms == drifts.sensor.lag_ms - drifts.sensor.lag_margin_ms
