"""Kernels in turns through the runner of real boards, on one that is not there."""

from __future__ import annotations

import threading

import pytest
from fixtures.cuda_bench import Bench
from fixtures.virtual_cuda import VirtualBoard

from app.engine.metering import meter as metering
from app.engine.session.check import Terms, in_turns
from app.engine.session.contenders import KernelContender


@pytest.fixture(autouse=True)
def short_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "WARM_STEP_S", 0.02)


def test_one_runner_measures_two_configurations_again_and_again(
    bench: type[Bench], virtual_board: VirtualBoard
) -> None:
    runner = bench("launch_ms = [2]\ndraws_w = [400, 408]", sensors=virtual_board).runner
    a, b = (KernelContender(runner, row, f"row {row}") for row in (0, 1))
    result, blocks, remarks = in_turns({"A": a, "B": b}, virtual_board, Terms(60, seed=1), threading.Event())
    assert result.verdict == "worse"
    assert result.energy.interval is not None
    assert result.energy.interval[0] <= 0.02 <= result.energy.interval[1]
    assert result.time.change == pytest.approx(0, abs=1e-3)
    assert result.seconds < 40
    assert not remarks
    for block in blocks:
        assert block.end_s - block.start_s >= 0.4
        assert block.time_s * block.work == pytest.approx(block.end_s - block.start_s, rel=0.1)
        assert block.energy_j == pytest.approx((400 if block.side == "A" else 408) * 2e-3, rel=0.01)


def test_a_stop_ends_it_with_what_was_measured(bench: type[Bench], virtual_board: VirtualBoard) -> None:
    runner, stop = bench("launch_ms = [2]\ndraws_w = [400, 408]", sensors=virtual_board).runner, threading.Event()
    a, b = (KernelContender(runner, row, f"row {row}") for row in (0, 1))
    result, blocks, remarks = in_turns({"A": a, "B": b}, virtual_board, Terms(60), stop, lambda _: stop.set())
    assert len(blocks) == 2
    assert result.verdict == "undecided"
    assert remarks == ["it was stopped before it was decided"]
