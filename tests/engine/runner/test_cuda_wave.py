"""A real board's own load for the characterisation, with a device that is not there."""

from __future__ import annotations

import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from fake_cuda import MULTIPROCESSORS
from fixtures.virtual_cuda import VirtualBoard

from app.base.errors import WattridgeError
from app.engine.metering.characterisation.characterise import wave_loads
from app.engine.metering.characterisation.square_wave import OFF_S, ON_S, WaveDriver
from app.engine.metering.launching import LaunchingGpu
from app.engine.runner.cuda.square_wave import SHARES, WaveGpu
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.runner.kernels.worker import AHEAD, BATCH_S
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

FAKE = Toolchain((sys.executable, str(Path(__file__).parents[1] / "fake_cuda.py")), "fake 1")


def test_the_wave_runs_on_the_boards_own_loads(virtual_board: VirtualBoard) -> None:
    with closing(WaveGpu(virtual_board, backend="fake_cuda", toolchain=FAKE)) as board:
        assert isinstance(board, LaunchingGpu)
        loads = wave_loads(board)
        assert len({load.name for load in loads}) == len(SHARES)
        watch = WaveDriver(board, seed=0)
        watch.wave(loads[-1], 5.0, None)
        spans = watch.seen.spans
    queued_ns = (AHEAD + 1) * BATCH_S * 1e9
    assert len(spans) >= 5
    assert all(ON_S[0] * 1e9 <= end - start <= ON_S[1] * 1e9 + queued_ns for start, end in spans)
    assert all(
        OFF_S[0] * 1e9 - queued_ns <= after[0] - before[1] <= OFF_S[1] * 1e9 for before, after in pairwise(spans)
    )
    inside = [s for s in watch.seen.samples if any(start + 2e7 <= s.time_ns <= end for start, end in spans)]
    assert len(inside) > 10
    share = round(SHARES[-1] * MULTIPROCESSORS) / MULTIPROCESSORS
    assert all(s.power_w == pytest.approx(100 + 400 * share, abs=1.01) for s in inside)
    assert watch.read_s["instant"] > 0


def test_the_wave_runs_in_a_process_of_its_own() -> None:
    with closing(WaveGpu(SimulatedGpu(load_twin("h200")), backend="fake_cuda", toolchain=FAKE)) as board:
        load = board.wave_loads()[0]
        board.begin(load)
        board.clock.wait(0.05)
        execution = board.end()
    assert execution.launches > 0
    assert execution.end_ns - execution.start_ns >= 0.05e9


def test_a_board_without_a_context_is_one_clear_line() -> None:
    with pytest.raises(WattridgeError, match="no CUDA context"):
        WaveGpu(SimulatedGpu(load_twin("h200")), backend="no_such_module", toolchain=FAKE)


def test_a_compiler_that_fails_leaves_no_process_behind() -> None:
    with pytest.raises(WattridgeError, match="does not run"):
        WaveGpu(
            SimulatedGpu(load_twin("h200")), backend="fake_cuda", toolchain=Toolchain((sys.executable, "-c", "1/0"), "")
        )
