"""The figures of a service over a window, from what became of its requests."""

from __future__ import annotations

import numpy as np
import pytest

from app.engine.metering.confidence import SMOOTH
from app.engine.runner.service import answers_of, figures_of_requests, work_of
from app.sensors.service import Requests, Served

S = 1_000_000_000  # ns


def requests_at(ended_s: list[float], tokens: float = 10.0) -> Requests:
    ended = np.round(np.array(ended_s) * S).astype(np.int64)
    count = np.full(len(ended), tokens)
    return Requests(ended - S, ended - S, ended - S // 2, ended, count, count, np.zeros(len(ended), np.bool_))


def in_step(clients: int, wave_s: float, seconds: float) -> list[Served]:
    """Stretches of 0.1 s: nothing for half a wave, then all tokens of all clients, whose answers end together."""
    found = []
    for at in np.arange(0, seconds, 0.1):
        ends = wave_s * np.arange(1, 100) - 0.03
        inside = ends[(ends > at) & (ends <= at + 0.1)]
        tokens = 10.0 * clients / (wave_s / 2) * 0.1 if (at + 0.05) % wave_s > wave_s / 2 else 0.0
        requests = requests_at([each for each in inside for _ in range(clients)])
        found.append(Served(round(at * S), round((at + 0.1) * S), requests, idle_s=0.02, output_tokens=tokens))
    return found


@pytest.mark.parametrize("end_s", [13.2, 13.6, 14.0, 14.9])
def test_rates_of_clients_in_step_do_not_depend_on_where_in_a_wave_a_window_ends(end_s: float) -> None:
    served = in_step(64, 1.6, 15.0)
    figures = figures_of_requests(served, 0, round(end_s * S), SMOOTH)
    assert figures["output_tokens_per_s"] == pytest.approx(400.0, rel=0.02)
    assert figures["requests_per_s"] == pytest.approx(40.0, rel=0.02)
    assert figures["input_tokens_per_s"] == pytest.approx(400.0, rel=0.02)
    assert figures["idle_share"] == pytest.approx(0.2)


def test_requests_and_errors_are_counted_whatever_the_weights() -> None:
    served = in_step(3, 1.0, 10.0)
    plain, smooth = (figures_of_requests(served, 0, 10 * S, *weights) for weights in ((), (SMOOTH,)))
    assert plain["requests"] == smooth["requests"] == sum(len(each.requests) for each in served)
    assert plain["error_share"] == smooth["error_share"] == 0.0
    assert plain["requests_per_s"] * 10 == pytest.approx(plain["requests"])


def test_tokens_of_a_piece_are_counted_alike_before_and_after_the_first_answer_has_said_how_many() -> None:
    unknown = [Served(index * S, (index + 1) * S, Requests.none(), output_tokens=25.0) for index in range(4)]
    told = [
        Served(
            position * S, (position + 1) * S, requests_at([position + 0.5]), output_tokens=100.0, tokens_per_piece=4.0
        )
        for position in range(4, 10)
    ]
    times, work = work_of([*unknown, *told])
    assert times / S == pytest.approx(np.arange(1, 11))
    assert work == pytest.approx(np.full(10, 100.0))
    assert figures_of_requests([*unknown, *told], 0, 10 * S)["output_tokens_per_s"] == pytest.approx(100.0)


def test_without_tokens_work_is_answers_in_the_order_of_their_ends() -> None:
    served = [Served(0, S, requests_at([0.7, 0.2], tokens=np.nan))]
    for found in (work_of(served), answers_of(served)):
        assert found[0] / S == pytest.approx([0.2, 0.7])
        assert found[1] == pytest.approx([1.0, 1.0])
