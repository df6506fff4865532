"""What is kept of the driver's own samples, on a stand-in for its library."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "nvml"))

from fixtures.stand_in_fixtures import boards  # noqa: F401

from app.engine.control.guard import DeviceGuard
from app.engine.results.evidence import unpack
from app.engine.runner.command import CommandRunner
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.sensors.select import open_gpu


def test_a_program_on_a_real_board_keeps_the_drivers_samples(tmp_path: Path, boards: Callable[..., Any]) -> None:  # noqa: F811
    """On a stand-in for the driver's library, whose buffer has a sample of 20 ms as every board's."""
    stand_in = boards("h200")
    (tmp_path / "spec.toml").write_text(
        '[command]\nrun = "sleep {x}"\n[parameters]\nx = [0.5]\n[objective]\nminimise = "time_s"\n'
    )
    spec = load_specification(tmp_path / "spec.toml")
    with closing(open_gpu("0")) as gpu:
        stand_in.work(5.0)
        space = plan_specification(spec, gpu).space
        with closing(CommandRunner(gpu, spec, space, DeviceGuard(gpu))) as runner:
            [measured] = runner.measure([0], threading.Event())
    assert measured.source == "nvml"
    kept = unpack(measured.evidence)
    assert kept.mean_power_w == pytest.approx(measured.values["power_w"], rel=1e-3)
    assert len(kept.times_s) >= 20
    assert np.diff(kept.times_s) == pytest.approx([0.02] * (len(kept.times_s) - 1), abs=0.011)
    assert kept.clock_mhz.mean() == pytest.approx(measured.observed_clock_mhz, rel=0.01)
