"""What an administrator could save, asked as a user without rights, beside what sweeps of real boards show."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.models.administrator import Advice, CannotSay, advice, published, sweep_of_model
from app.engine.models.fit.frequency import FrequencyFit, fit_points
from app.engine.models.fit.points import Points
from app.engine.models.series import read_series
from app.engine.results.measurement import Measurement, State

A100, V100, H200 = "NVIDIA A100-PCIE-40GB", "Tesla V100-SXM2-16GB", "NVIDIA H200"
SWEEPS = {
    "a100_synthetic_fp32_10_clocks.json": (A100, 1410.0),
    "v100_srad_13_clocks.csv": (V100, 1530.0),
    "h200_fp64_gemm_clock_sweep.csv": (H200, 1410.0),
}


def seen(clock_mhz: float = 1410.0, power_w: float = 200.0) -> list[Measurement]:
    """What a user sees who may set nothing."""
    return [Measurement(0, {}, State.OK, {"power_w": power_w}, observed_clock_mhz=clock_mhz, source="nvml")]


def said(found: Advice | CannotSay) -> Advice:
    assert isinstance(found, Advice), found
    return found


def made(ridge_mhz: float, *, speed: bool = True, power_w: float = 1.0, gpu: str = "") -> FrequencyFit:
    """The fit of a made sweep, whose voltage rises from a clock on."""
    clock = np.arange(600.0, 1501.0, 60.0)
    power = power_w * (40 + 0.08 * clock * (1 + 0.0015 * np.maximum(0.0, clock - ridge_mhz)) ** 2)
    return fit_points(Points(clock, power, rate=clock if speed else None, gpu=gpu, series="made"))


@pytest.mark.parametrize("name", SWEEPS)
def test_on_real_sweeps_the_clock_loses_little_and_the_interval_holds(shared_data: Path, name: str) -> None:
    gpu, natural_mhz = SWEEPS[name]
    [points] = read_series(shared_data / "clock-sweeps" / name)
    order = np.argsort(points.clock_mhz)
    clock, energy = points.clock_mhz[order], points.energy[order]
    now_w = float(np.interp(natural_mhz, clock, points.power_w[order]))
    found = said(advice(seen(natural_mhz, now_w), gpu))
    now, there = (float(np.interp(mhz, clock, energy)) for mhz in (natural_mhz, found.clock_mhz))
    assert there < 1.04 * energy.min() < 0.8 * now, (
        "within 4 % of the least, where the board's own state takes a third more"
    )
    assert found.interval[0] < there / now < found.interval[1]
    assert found.clock_mhz / natural_mhz == pytest.approx(published().share, abs=0.01)


def test_the_paragraph_has_clock_interval_source_and_command() -> None:
    found = said(advice(seen(), A100, selector="GPU-12"))
    low, high = found.interval
    assert low < found.energy.value < high
    assert found.command == f"sudo nvidia-smi -i GPU-12 -lgc 0,{found.clock_mhz:.0f}"
    for words in (A100, "1410 MHz", f"{found.clock_mhz:.0f} MHz", f"{100 * (1 - low):.0f} % less", found.source):
        assert words in found.paragraph
    assert found.command in found.paragraph
    assert "nvidia-smi -i GPU-12 -rgc" in found.paragraph
    assert ("likely, not certain" in found.paragraph) == (high >= 1)
    assert "not measured here" in found.paragraph


def test_the_clock_is_one_that_the_board_supports() -> None:
    assert said(advice(seen(), A100, supported_mhz=(210, 700, 1000, 1390, 1410))).clock_mhz == 1000


def test_a_simulated_board_and_one_of_amd_are_set_by_our_own_command() -> None:
    found = said(advice(seen(), A100, source="simulated", selector="simulated:a100"))
    assert found.command == f"wattridge apply --gpu simulated:a100 --clock {found.clock_mhz:.0f}"
    assert "(simulated)" in found.paragraph
    amd = advice(seen(1700.0, 280.0), "AMD Instinct MI210", source="amd")
    assert isinstance(amd, CannotSay)
    assert "AMD" in amd.reason


@pytest.mark.parametrize(
    ("measured", "gpu", "limit_w", "why"),
    [
        (seen(math.nan), A100, None, "the clock"),
        (seen(1410.0, math.nan), A100, None, "the power at"),
        ([], A100, None, "not observed"),
        (seen(1410.0, 100.0), A100, None, "100 W of 250 W"),
        (seen(1410.0, 200.0), A100, 500.0, "200 W of 500 W"),
        (seen(), "Test GPU", None, "limit of Test GPU is not known"),
        ([Measurement.failed(0, {}, State.COMPILE, "no", source="nvml")], A100, None, "not observed"),
    ],
)
def test_what_is_not_known_is_said(measured: list[Measurement], gpu: str, limit_w: float | None, why: str) -> None:
    found = advice(measured, gpu, limit_w=limit_w)
    assert isinstance(found, CannotSay)
    assert why in found.paragraph
    assert found.paragraph.startswith("What a lower clock would save here cannot be said: ")


def test_a_sweep_of_the_model_gives_the_clock_and_the_energy() -> None:
    fit = made(1000.0)
    found = said(advice(seen(1500.0, 200.0), A100, fit))
    assert found.clock_mhz == fit.recommended_clock_mhz
    assert "a board of this model" in found.source
    curve = fit.energy([1500.0, found.clock_mhz])
    assert found.energy.value == pytest.approx(float(curve[1] / curve[0]), rel=0.02)
    low, high = found.interval
    assert high / low > 1.4, "another load of the same board may differ by a fifth"
    shorter = said(advice(seen(1410.0, 200.0), A100, fit))
    assert shorter.clock_mhz == found.clock_mhz
    assert shorter.energy.value > found.energy.value, "what is saved is counted from the clock of one's own load"


@pytest.mark.parametrize(
    ("fit", "natural_mhz", "why"),
    [
        (made(1000.0), 1800.0, "does not reach 1800 MHz"),
        (made(1000.0, speed=False), 1500.0, "has no speed"),
        (made(1000.0, power_w=0.2), 1500.0, "draws less than 125 W"),
        (fit_points(Points(np.array([900.0, 1000.0]), np.array([90.0, 100.0]))), 1500.0, "determines no model"),
    ],
)  # fmt: skip
def test_where_a_sweep_cannot_answer_the_other_boards_do(fit: FrequencyFit, natural_mhz: float, why: str) -> None:
    found = said(advice(seen(natural_mhz, 200.0), A100, fit))
    assert why in found.source
    assert found.energy == published().energy


def test_where_a_sweep_has_its_optimum_no_lower_nothing_is_advised() -> None:
    for natural_mhz in (900.0, 1000.0):
        found = advice(seen(natural_mhz, 200.0), A100, made(1000.0, power_w=2.0))
        assert isinstance(found, CannotSay)
        assert f"where no energy is saved against {natural_mhz:.0f} MHz" in found.paragraph


def test_a_load_that_waits_for_memory_loses_less_time() -> None:
    unknown = said(advice(seen(), A100))
    assert unknown.time == (1.0, 1410 / unknown.clock_mhz)
    memory, arithmetic = (said(advice(seen(), A100, memory_share=share)) for share in (1.0, 0.0))
    assert memory.time[1] < arithmetic.time[0] + 0.02 < 1410 / unknown.clock_mhz
    assert f"up to {100 * (memory.time[1] - 1):.0f} % more time" in memory.paragraph


def test_a_sweep_of_another_model_is_refused(shared_data: Path) -> None:
    path = shared_data / "clock-sweeps" / "a100_synthetic_fp32_10_clocks.json"
    assert sweep_of_model(path, A100).points == 10
    with pytest.raises(InputError, match="a sweep of NVIDIA A100-PCIE-40GB, not of NVIDIA H200"):
        sweep_of_model(path, H200)


def test_every_source_of_the_coefficients_has_its_licence() -> None:
    sources = tomllib.loads((resources() / "administrator.toml").read_text("utf-8"))["source"]
    assert {source["board"] for source in sources} == set(published().boards)
    assert all(source["licence"] and source["from"] and source["load"] for source in sources)
