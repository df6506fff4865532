"""Kernels in turns through the runner of real boards, on one that is not there."""

from __future__ import annotations

import os
import threading
from dataclasses import replace

import pytest
from fixtures.cuda_bench import Bench
from fixtures.virtual_cuda import VirtualBoard

from app.engine.metering import meter as metering
from app.engine.session.check import Terms, in_turns
from app.engine.session.contenders import KernelContender
from app.sensors.gpu import GpuProcess


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


def test_other_processes_are_named_if_they_come_or_run_and_those_of_a_desktop_that_rest_are_not(
    bench: type[Bench], virtual_board: VirtualBoard, monkeypatch: pytest.MonkeyPatch
) -> None:
    present = [
        GpuProcess(os.getpid(), "python", 100.0, "compute", 99.0),
        GpuProcess(2_000_000_001, "Xorg", 30.0, "graphics", 0.0),
        GpuProcess(2_000_000_002, "now and then", 500.0, "compute", 0.0),
    ]
    looks = []

    def processes() -> list[GpuProcess]:
        looks.append(1)
        works = replace(present[2], share_percent=40.0 if len(looks) % 3 else 0.0)
        came = [GpuProcess(2_000_000_003, "came", 20.0, "compute")] if len(looks) > 20 else []
        return [*present[:2], works, *came]

    monkeypatch.setattr(virtual_board, "processes", processes, raising=False)
    runner = bench("launch_ms = [2]\ndraws_w = [400, 408]", sensors=virtual_board).runner
    a, b = (KernelContender(runner, row, f"row {row}") for row in (0, 1))
    _, blocks, remarks = in_turns({"A": a, "B": b}, virtual_board, Terms(60, seed=1), threading.Event())
    assert len(remarks) == 1
    assert remarks[0].startswith("other processes ran on the board (came, now and then), seen in ")
    assert f"of {len(blocks)} blocks" in remarks[0]
