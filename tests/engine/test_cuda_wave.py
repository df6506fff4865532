"""A real board's own load for the characterisation, with a device that is not there."""

from __future__ import annotations

import sys
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from app.engine.characterisation.characterise import wave_loads
from app.engine.characterisation.square_wave import Watch
from app.engine.runner.cuda.square_wave import SHARES, WaveGpu
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.runner.launching import LaunchingGpu
from app.errors import WattridgeError
from app.sensors.simulated.gpu import SimulatedGpu
from app.sensors.simulated.twin import load_twin

FAKE = Toolchain((sys.executable, str(Path(__file__).parent / "fake_cuda.py")), "fake 1")


def test_the_wave_runs_on_the_boards_own_loads() -> None:
    sensors = SimulatedGpu(load_twin("h200"))
    with closing(WaveGpu(sensors, backend="fake_cuda", toolchain=FAKE)) as board:
        assert isinstance(board, LaunchingGpu)
        loads = wave_loads(board)
        assert len({load.name for load in loads}) == len(SHARES)
        watch = Watch(board, seed=0)
        watch.wave(loads[-1], 1.0, None)
        spans = watch.seen.spans
    assert len(spans) >= 2
    assert all(0.04e9 < end - start < 2e9 for start, end in spans)
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    assert watch.seen.samples
    assert watch.read_s["instant"] > 0


def test_a_board_without_a_context_is_one_clear_line() -> None:
    with pytest.raises(WattridgeError, match="no CUDA context"):
        WaveGpu(SimulatedGpu(load_twin("h200")), backend="no_such_module", toolchain=FAKE)


def test_a_compiler_that_fails_leaves_no_process_behind() -> None:
    with pytest.raises(WattridgeError, match="does not run"):
        WaveGpu(
            SimulatedGpu(load_twin("h200")), backend="fake_cuda", toolchain=Toolchain((sys.executable, "-c", "1/0"), "")
        )
