"""Frequency models and power limits of files and sessions, and the methods side by side, as the window asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.base.errors import InputError
from app.engine.models.clock_fits import ClockFit, fits_of_file
from app.engine.models.compare_methods import methods_of_recording
from app.engine.models.fit.caps import fit_caps
from app.engine.models.fit.curve import Curve

CLOCKS = np.arange(600, 1501, 100)
BOARD = Curve(p_idle_w=40.0, alpha_w_per_mhz=0.08, beta_per_mhz=1.2e-3, ridge_mhz=1000.0)


def sweep(file: Path, gpus: dict[str, float], kernels: tuple[str, ...] = ("gemm",)) -> Path:
    """A CSV with a sweep for each board, drawing so many times the power, and kernel."""
    rows = [
        f"{gpu},{kernel},{clock},{factor * float(BOARD.power_w(clock)):.3f},{2.0 * (1 + index) / clock:.8f}"
        for gpu, factor in gpus.items()
        for index, kernel in enumerate(kernels)
        for clock in CLOCKS
    ]
    file.write_text("\n".join(["gpu,kernel,clock_mhz,power_w,time_s", *rows]))
    return file


def test_each_board_and_kernel_of_a_file_is_a_fit_of_its_own(tmp_path: Path) -> None:
    found = fits_of_file(sweep(tmp_path / "two.csv", {"A100": 1.0, "H200": 3.0}, ("gemm", "fft")))
    assert [each.label for each in found] == [
        f"{gpu} · gpu={gpu}, kernel={kernel}" for gpu in ("A100", "H200") for kernel in ("gemm", "fft")
    ]
    assert {each.origin for each in found} == {"two.csv"}
    assert len({each.key for each in found}) == 4
    assert all(each.fit is not None and each.fit.recommended_clock_mhz == 1000 for each in found)


def test_of_many_kernels_the_best_of_each_board_is_taken(tmp_path: Path) -> None:
    kernels = tuple(f"kernel{i}" for i in range(9))
    found = fits_of_file(sweep(tmp_path / "many.csv", {"A100": 1.0, "H200": 3.0}, kernels))
    assert [each.gpu for each in found] == ["A100", "H200"]
    assert all(each.label.endswith("kernel=kernel0") for each in found), "the most efficient one"


def test_power_limits_alone_are_a_fit_too(shared_data: Path) -> None:
    [found] = fits_of_file(shared_data / "power-limits" / "summary_power_v100.csv")
    assert found.fit is None
    assert found.caps is not None
    assert found.caps.best_limit_w < found.caps.limit_w.max()
    assert found.comparison is None


def test_a_file_with_neither_says_so(tmp_path: Path) -> None:
    file = tmp_path / "other.csv"
    file.write_text("name,size\na,1\nb,2\n")
    with pytest.raises(InputError, match="column"):
        fits_of_file(file)


def test_clocks_and_limits_of_one_load_are_compared(tmp_path: Path) -> None:
    [clocks] = fits_of_file(sweep(tmp_path / "one.csv", {"A100": 1.0}))
    full = float(BOARD.power_w(1500))
    limits = np.linspace(0.6, 1.0, 5) * full
    caps = fit_caps(limits, limits, (limits / full) ** 0.5 * 1500 / 2.0, gpu="A100", series="gemm")
    comparison = ClockFit(clocks.fit, caps, "sweep").comparison
    assert comparison is not None
    assert comparison.clocks.setting == 1000
    assert comparison.clocks.energy < comparison.caps.energy < 1


def test_of_clocks_under_several_limits_the_highest_stands_beside_the_limits(tmp_path: Path) -> None:
    """Clocks times limits: at the highest clock the limits bind."""
    rows = [
        f"A100,{limit},{clock},{min(float(BOARD.power_w(clock)), limit):.3f},{2.0 / clock:.8f}"
        for limit in (160, 200, 400)
        for clock in CLOCKS
    ]
    file = tmp_path / "grid.csv"
    file.write_text("\n".join(["gpu,power_limit_w,clock_mhz,power_w,time_s", *rows]))
    found = fits_of_file(file)
    assert [each.caps is not None for each in found] == [False, False, True]
    assert "power_limit_w=400" in found[2].label
    assert found[2].comparison is not None


def test_the_methods_of_a_recording(shared_data: Path) -> None:
    """The real board: every kernel at ten clocks; its most efficient configuration is at the lowest of them."""
    methods = methods_of_recording(shared_data / "kernel-tuner" / "ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz")
    found = {result.method: result for result in methods.results}
    assert found["race_to_idle"].speed == pytest.approx(80.435, abs=1e-3)
    best = found["global_energy"]
    assert (best.clock_mhz, best.measurements) == (1485, methods.size)
    assert best.efficiency == pytest.approx(0.9315, abs=1e-4)
    assert best.efficiency_change == pytest.approx(0.9315 / 0.8264 - 1, abs=1e-3)
    assert all(best.energy_j <= result.energy_j for result in methods.results)
    steered = found["model_steered"]
    assert steered.energy_j <= 1.01 * best.energy_j
    assert steered.measurements < 0.5 * methods.size
