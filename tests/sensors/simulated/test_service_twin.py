"""The service of the simulated RTX 5090: what of it was measured, and how far the rest follows from that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fixtures.service_sweep import fitted, published, relative_errors, served

from app.sensors.gpu import NotSupported
from app.sensors.simulated import laws
from app.sensors.simulated.twin import load_twin

# Power limit W, tokens/s, power W, of 4 sequences at once: source S14 in resources/twins/README.md, every fourth row.
CAPPED = ((400, 571.45, 400.0), (440, 572.10, 440.0), (480, 607.23, 480.0), (520, 616.05, 520.0))
UNCAPPED = ((560, 603.21, 540.6), (600, 600.65, 544.7))


def test_the_twin_gives_the_published_tokens_and_power_at_every_pair_of_clocks(shared_data: Path) -> None:
    points = published(shared_data)
    errors = np.abs(relative_errors(load_twin("rtx5090"), points))
    assert errors.shape == (28, 2)
    assert errors.mean(axis=0) == pytest.approx((0.034, 0.028), abs=0.003)
    assert (errors.max(axis=0) < (0.075, 0.09)).all()


@pytest.mark.parametrize("half", [0, 1])
def test_either_half_of_the_published_points_predicts_the_other(half: int, shared_data: Path) -> None:
    points = published(shared_data)
    known, unknown = points[half::2], points[1 - half :: 2]
    errors = np.abs(relative_errors(fitted(load_twin("rtx5090"), known), unknown))
    assert len(unknown) == 14
    assert (np.median(errors, axis=0) < (0.04, 0.03)).all()  # of tokens/s and of power
    assert (errors.mean(axis=0) < (0.042, 0.036)).all()
    assert (errors.max(axis=0) < (0.16, 0.12)).all()


def test_the_file_of_the_twin_is_the_fit_to_all_points(shared_data: Path) -> None:
    twin, points = load_twin("rtx5090"), published(shared_data)
    again = fitted(twin, points)
    for memory_mhz in twin.clocks.memory_mhz:
        for clock_mhz in (180, 652, 1635, 3090):
            assert served(twin, memory_mhz, clock_mhz, 6, 1e6) == pytest.approx(
                served(again, memory_mhz, clock_mhz, 6, 1e6), rel=0.01
            )


def test_a_power_limit_gives_nearly_what_was_measured_though_no_limit_was_fitted() -> None:
    twin = load_twin("rtx5090")
    for limit_w, tokens_per_s, power_w in CAPPED:
        found = served(twin, 14001, 3090, 4, limit_w)
        assert found[1] == pytest.approx(power_w, rel=0.001)
        assert -0.06 < found[0] / tokens_per_s - 1 < 0.0, limit_w
    for limit_w, tokens_per_s, power_w in UNCAPPED:
        assert served(twin, 14001, 3090, 4, limit_w) == pytest.approx((tokens_per_s, power_w), rel=0.015)


def test_the_lowest_memory_clock_is_left_above_a_clock_as_the_published_points_show() -> None:
    twin = load_twin("rtx5090")
    assert served(twin, 405, 652, 6, 600)[0] < 0.6 * served(twin, 810, 652, 6, 600)[0]
    assert served(twin, 405, 765, 6, 600) == served(twin, 810, 765, 6, 600)


def test_a_step_of_more_sequences_takes_longer_and_gives_more_tokens() -> None:
    twin = load_twin("rtx5090")
    steps = [laws.step_s(twin, sequences, 2000, 14001) for sequences in range(1, 17)]
    assert (np.diff(steps) > 0).all()
    assert (np.diff(np.arange(1, 17) / steps) > 0).all()


def test_a_board_without_a_model_says_so() -> None:
    with pytest.raises(NotSupported, match="simulated:rtx5090"):
        laws.step_s(load_twin("a100"), 4, 1000, 1215)
