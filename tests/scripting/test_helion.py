"""`wattridge.helion`: an `autotuner_fn` that chooses by energy, on a stand-in for Helion."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fixtures.cuda_bench import SteadySensors
from fixtures.stand_in_helion import BoundKernel, Config
from fixtures.stand_in_torch import Device
from fixtures.stand_in_torch import stand_in as torch_stand_in

import app.helion as wattridge_helion
from app.base.errors import InputError, WattridgeError
from app.engine.store.database import Store

FAST, SLOW = Config(block_sizes=[64, 64], num_warps=4), Config(block_sizes=[16, 16], num_warps=8)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    torch = torch_stand_in(made)
    torch.testing = SimpleNamespace(assert_close=np.testing.assert_allclose)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return made


def kernel_of(device: Device, drawn: list[Config], tuner: Any, **settings: object) -> BoundKernel:
    def launch(x: float, block_sizes: list[int], num_warps: int) -> float:
        device.launch(16.0 / block_sizes[0])  # long enough that a busy host is never behind
        return 2 * x + (num_warps == 3)

    return BoundKernel(launch, drawn, tuner, **settings)


def test_helion_runs_the_configuration_that_was_chosen_here_and_keeps_the_session(device: Device) -> None:
    tuner = wattridge_helion.autotuner(candidates=7, gpu=SteadySensors(), target=0.2, quiet=True)
    kernel = kernel_of(device, [SLOW, FAST, SLOW], tuner)
    assert kernel(1.0) == 2.0
    assert kernel.asked == [7]
    assert kernel.compiled[-1] is FAST
    (result,) = tuner.results
    assert result.best == {"block_sizes": "[64, 64]", "num_warps": 4}
    assert len(result.rows()) == 2  # what is drawn twice is measured once
    assert result.best_values["energy_j"] == pytest.approx(300.0 * 0.25, rel=0.02)
    with Store() as store:
        assert store.load(result.session).record.title == "add"


def test_a_configuration_that_computes_something_else_is_no_candidate(device: Device) -> None:
    wrong = Config(block_sizes=[128, 128], num_warps=3)
    tuner = wattridge_helion.autotuner(configs=[SLOW, wrong], gpu=SteadySensors(), target=0.2, quiet=True)
    kernel = kernel_of(device, [SLOW], tuner)
    assert kernel(1.0) == 2.0
    failed = [row for row in tuner.results[0].rows() if "error" in row]
    assert [row["num_warps"] for row in failed] == [3]
    baseline = kernel_of(device, [], tuner, autotune_baseline_fn=lambda x: 3 * x)
    with pytest.raises(WattridgeError, match="no configuration worked"):
        baseline(5.0)


def test_a_limit_on_slowdown_and_a_verification_of_the_scripts_own(device: Device) -> None:
    seen: list[object] = []
    tuner = wattridge_helion.autotuner(
        minimise="power_w",
        within=0.03,
        configs=[SLOW, FAST],
        verify=lambda returned: seen.append(returned) or True,
        gpu=SteadySensors(),
        target=0.2,
        quiet=True,
    )
    kernel_of(device, [], tuner)(1.0)
    assert tuner.results[0].best["num_warps"] == 4
    assert seen == [2.0, 2.0]


@pytest.mark.parametrize("given", [{"within": -1.0}, {"candidates": 0}, {"configs": []}, {"nonsense": 3}])
def test_what_cannot_be_used_is_refused_in_one_line(device: Device, given: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        kernel_of(device, [SLOW, FAST], wattridge_helion.autotuner(**given, gpu=SteadySensors(), quiet=True))(1.0)


def test_neither_helion_nor_pytorch_is_imported() -> None:
    code = "import sys, app; app.helion.autotuner; print([m for m in ('torch', 'helion') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
