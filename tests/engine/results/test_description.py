"""Results are described once: the words of figures, what is not known, and the describers of each kind of result."""

from __future__ import annotations

import csv
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from app.engine.models.clock_fits import ClockFit, caps_of_sweep, fit_of_sweep
from app.engine.models.describe_fits import describe_caps, describe_fit, describe_load
from app.engine.models.fit.frequency import FrequencyFit, fit_frequency_model
from app.engine.models.fit.points import Points
from app.engine.models.roofline.describe_sweeps import describe_kernel, describe_sweep
from app.engine.models.roofline.points import PlacedKernel, published_sweeps, recorded_sweeps
from app.engine.results.description import Description, Figure, label_as_html, side_by_side
from app.sensors.select import open_gpu


def test_a_figure_reads_as_value_error_unit_and_note() -> None:
    assert Figure("ridge", 1035.0, "MHz", "not bracketed", error=12.04).text == "1035 ± 12 MHz, not bracketed"
    assert Figure("P_max", None, "W", unknown="no cap seen").text == "no cap seen"
    assert Figure("form", "sharp").text == "sharp"
    assert Figure("R²", None).text == "–"
    assert Figure("optimum", 1035.0, "MHz", interval=(990.0, 1080.0)).text == "1035 MHz (990–1080)"
    assert Figure("ridge", 1035.0, "MHz").heading == "ridge (MHz)"


def test_symbols_have_their_index_lowered_in_html() -> None:
    assert label_as_html("P_idle & π_0") == "P<sub>idle</sub> &amp; π<sub>0</sub>"
    assert label_as_html("block_size") == "block_size"


def test_descriptions_side_by_side_share_their_labels() -> None:
    left = Description(
        "fp32", figures=[Figure("energy of a flop", 7.22, "pJ/flop"), Figure("constant power", 136.4, "W")]
    )
    right = Description("fp64", figures=[Figure("energy of a flop", 18.59, "pJ/flop"), Figure("points", 60)])
    table = side_by_side([left, right])
    assert list(table.header) == ["", "fp32", "fp64"]
    assert [list(row) for row in table.rows] == [
        ["energy of a flop (pJ/flop)", "7.22", "18.59"],
        ["constant power (W)", "136.4", "–"],
        ["points", "–", "60"],
    ]


def texts(description: Description) -> dict[str, str]:
    return {figure.label: figure.text for figure in description.figures}


@pytest.fixture(scope="module")
def h200(shared_data: Path) -> FrequencyFit:
    with (shared_data / "clock-sweeps" / "h200_fp64_gemm_clock_sweep.csv").open() as file:
        rows = list(csv.DictReader(file))
    clock, power, rate = (np.asarray([float(r[n]) for r in rows]) for n in ("clock_mhz_locked", "power_w", "dgflops"))
    return fit_frequency_model(Points(clock, power, rate=rate, gpu="H200", series="fp64_gemm"))


def test_a_fit_has_its_clocks_with_intervals_and_its_parameters_with_errors(h200: FrequencyFit) -> None:
    described = describe_fit(h200, "a sweep")
    figures = texts(described)
    assert (described.title, described.origin) == ("Frequency model of H200", "a sweep")
    assert figures["Recommended clock"] == "975 MHz"
    assert h200.optimum_interval_mhz is not None
    low, high = h200.optimum_interval_mhz
    assert figures["Estimated optimum"].endswith(f"MHz ({low:.0f}–{high:.0f})")
    assert "±" in figures["P_idle"]
    assert figures["P_idle"].endswith(" W")
    assert list(described.remarks) == list(h200.reasons)
    wishes = next(listing for listing in described.listings if listing.title.startswith("Other goals"))
    assert len(wishes.rows) == len(h200.choices)


def test_what_points_do_not_determine_is_no_number(h200: FrequencyFit) -> None:
    points = {"clock_mhz": h200.clock_mhz, "power_w": h200.power_w, "used": h200.used}
    figures = texts(describe_fit(FrequencyFit(gpu="H200", series="fp64_gemm", **points)))
    for label in ("Recommended clock", "Estimated optimum", "Model", "P_idle", "P_max", "α", "β", "Ridge τ"):
        assert figures[label] == "not identifiable"


def test_power_limits_stand_beside_clocks() -> None:
    with closing(open_gpu("simulated:a4000", speed=float("inf"))) as gpu:
        fit, origin = fit_of_sweep(gpu)
        load = ClockFit(fit, caps_of_sweep(gpu), origin)
    assert load.caps is not None
    of_fit, of_caps, of_both = describe_load(load.fit, load.caps, load.comparison, load.origin)
    assert "(simulated)" in of_fit.title
    assert texts(of_caps)["Best power limit"] == f"{load.caps.best_limit_w:.0f} W"
    assert len(of_caps.listings[0].rows) == len(load.caps.limit_w)
    assert [row[0] for row in of_both.listings[0].rows] == ["locked clock", "power limit"]
    both = texts(describe_caps(load.caps, [load.caps, load.caps]))
    assert both["Median saving of 2 series"] == "too few"


def test_a_measured_roofline_has_errors_and_a_published_one_only_its_lines() -> None:
    measured, published = describe_sweep(recorded_sweeps()[0]), describe_sweep(published_sweeps()[0])
    assert "±" in texts(measured)["ε_flop"]
    assert "least squares" in next(figure.details for figure in measured.figures if figure.label == "ε_flop")
    assert "R² of power" in texts(measured)
    assert "R² of power" not in texts(published)
    assert all(figure.value is not None for figure in published.figures)


def test_a_kernel_is_expected_on_each_board_and_measured_on_one() -> None:
    sweeps = published_sweeps()[:2]
    kernel = PlacedKernel(1e12, 1e9, "gemm", "A100", 0.07, 240.0, 16.8)
    listing = describe_kernel(kernel, sweeps)
    assert [row[0] for row in listing.rows] == [*(sweep.label for sweep in sweeps), "measured · A100"]
    assert listing.rows[-1][1:] == [70.0, 240.0, 16.8]
    expected = sweeps[0].predict(kernel)
    assert expected is not None
    assert listing.rows[0][1] == 1e3 * expected[0]
