"""Points for the frequency model from CSV, caches and sessions: columns, units, series."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.records import as_json
from app.engine.models.describe_fits import describe_fit
from app.engine.models.fit.frequency import fit_points
from app.engine.models.fit.points import choose
from app.engine.models.series import read_series, series_of_table
from app.engine.results.measurement import Measurement, State
from app.engine.space.result_table import ResultTable
from app.engine.space.search_space import space_of_table
from app.sensors.event_reasons import EventReason

CLOCKS = (600, 750, 900, 1050, 1200, 1350)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "points.csv"


def write(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_columns_and_units_are_taken_from_the_header(file: Path) -> None:
    write(file, "Frequency [GHz],Power (mW),time_ms", "0.6,50000,20", "0.9,90000,10")
    points = choose(read_series(file))
    assert points.clock_mhz.tolist() == [600, 900]
    assert points.power_w.tolist() == [50, 90]
    assert points.rate is not None
    assert points.rate.tolist() == pytest.approx([50, 100])


def test_the_observed_clock_wins_and_the_requested_ones_can_be_set(file: Path) -> None:
    write(file, "clock_mhz_locked,observed_clock_mhz,power_w", "900,897.5,80", "1500,1310,140")
    points = choose(read_series(file))
    assert points.clock_mhz.tolist() == [897.5, 1310]
    assert points.supported_mhz == (900, 1500)


def test_memory_clocks_and_limits_are_not_taken_for_clock_and_power(file: Path) -> None:
    write(file, "mem_clock_mhz,power_limit_w,clock_mhz,power_w,gflops_per_w", "5000,250,900,80,3", "5000,250,1200,99,4")
    points = choose(read_series(file))
    assert points.clock_mhz.tolist() == [900, 1200]
    assert points.power_w.tolist() == [80, 99]
    assert points.rate is not None
    assert points.rate.tolist() == [240, 396]  # the work per energy is no rate, but tells it
    assert points.limit_w == 250


@pytest.mark.parametrize(
    ("heading", "of_work"),
    [("energy_j", lambda p, t: p * t), ("energy_mj", lambda p, t: 1e3 * p * t), ("GFLOPS/W", lambda p, t: 1 / p / t)],
)
def test_measured_energy_beside_power_decides_where_there_is_no_time(
    file: Path, heading: str, of_work: Callable[[float, float], float]
) -> None:
    """Power over clock alone would recommend 1200 MHz here, against the file's own energies."""
    sweep = {600: (70, 1.3), 750: (77, 1.13), 900: (85, 1.02), 1050: (98, 0.96), 1200: (110, 0.92), 1350: (140, 0.9)}
    rows = [f"{clock},{power},{of_work(power, time)}" for clock, (power, time) in sweep.items()]
    write(file, f"clock_mhz,power_w,{heading}", *rows)
    fit = fit_points(choose(read_series(file)))
    assert fit.best_measured_mhz == 900
    assert fit.recommended_clock_mhz is not None
    assert fit.recommended_clock_mhz <= 960
    assert not any("no speed" in reason for reason in fit.reasons)


def test_a_fit_without_any_speed_says_what_it_takes_for_energy(file: Path) -> None:
    write(file, "clock_mhz,power_w", *(f"{clock},{50 + 0.0001 * clock**2}" for clock in range(600, 1501, 150)))
    fit = fit_points(choose(read_series(file)))
    assert any("no speed was measured" in reason for reason in fit.reasons)
    labels = [figure.label for figure in describe_fit(fit).figures]
    assert "Lowest measured energy" not in labels
    assert "Lowest power per clock" in labels


def test_the_document_of_a_fit_holds_the_curve_and_its_band(file: Path) -> None:
    rows = [f"{clock},{50 + clock * max(1, clock / 1000) ** 2 / 10}" for clock in range(600, 1500, 90)]
    curve = as_json(fit_points(choose(read_series(write(file, "clock_mhz,power_w", *rows)))))["curve"]
    assert (curve["clock_mhz"][0], curve["clock_mhz"][-1]) == (600, 1410)
    for power, low, high in zip(curve["power_w"], curve["low_w"], curve["high_w"], strict=True):
        assert 0.97 * power <= low <= high <= 1.03 * power


def test_a_column_of_row_numbers_needs_no_name(file: Path) -> None:
    """As pandas writes it."""
    write(file, ",application,clock_mhz,power_w", "0,cfd,900,80", "1,cfd,1000,88", "2,cfd,1200,99")
    points = choose(read_series(file))
    assert points.clock_mhz.tolist() == [900, 1000, 1200]
    assert "column 1" not in points.series


def test_a_series_is_named_by_the_fewest_columns_that_distinguish_it(file: Path) -> None:
    """Counters of a kernel's instructions say no more than its name."""
    rows = [
        f"{kernel},{counter},{counter % 2},{size},{clock},{clock / 10}"
        for kernel, counter in (("hotspot", 37), ("cfd", 12), ("lud", 5))
        for size in (1, 2)
        for clock in (900, 1000, 1200)
    ]
    write(file, "benchmark,fma,even,size,clock_mhz,power_w", *rows)
    found = read_series(file)
    assert len(found) == 6
    assert {points.series for points in found} == {
        f"benchmark={name}, size={size}" for name in ("hotspot", "cfd", "lud") for size in (1, 2)
    }


def test_energy_and_time_give_the_power(file: Path) -> None:
    write(file, "clock_mhz;energy_j;time_s", "900;4;0.05", "1200;5;0.04")
    assert choose(read_series(file)).power_w.tolist() == pytest.approx([80, 125])


def test_named_columns_win(file: Path) -> None:
    write(file, "a,b,c,power_w", "900,80,5,1", "1200,99,6,1")
    points = choose(read_series(file, clock="a", power="b", rate="c"))
    assert points.clock_mhz.tolist() == [900, 1200]
    assert points.power_w.tolist() == [80, 99]
    assert points.rate is not None
    assert points.rate.tolist() == [5, 6]


def boards(file: Path) -> Path:
    rows = [
        f"{gpu},{kernel},{c},{c / 10 * k}"
        for gpu in ("one", "two")
        for kernel, k in (("a", 1), ("b", 2))
        for c in CLOCKS
    ]
    return write(file, "gpu,kernel,clock_mhz,power_w", *rows, "one,a,1500,150")


def test_without_a_series_the_one_with_the_most_clocks_is_taken_and_said(file: Path) -> None:
    points = choose(read_series(boards(file)))
    assert (points.gpu, points.clocks) == ("one", 7)
    assert points.series == "gpu=one, kernel=a"
    assert "of 4 series" in points.notes[-1]
    assert "of 4 series" in as_json(fit_points(points))["reasons"][-1]


def test_of_as_many_clocks_the_more_efficient_series_is_taken(file: Path) -> None:
    assert choose(read_series(boards(file), series="gpu=two")).series == "gpu=two, kernel=a"


def test_a_series_is_picked_by_key_and_value(file: Path) -> None:
    points = choose(read_series(boards(file), series="gpu=two,kernel=b"))
    assert points.clocks == 6
    assert points.power_w[0] == 120
    assert len(read_series(boards(file))) == 4


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        ("", {}, "empty"),
        ("clock_mhz,power_w", {}, "no row"),
        ("clock_mhz,clock_mhz\n1,2", {}, "there are: clock_mhz, clock_mhz 2"),
        ("x,y\n1,2", {}, "no column with clocks"),
        ("clock_mhz,y\n1,2", {}, "no column with power"),
        ("clock_mhz,power_w\n1,2,3", {}, "line 2 has 3 cells"),
        ("clock_mhz,power_w\n,\n1,", {}, "no column with power"),
        ("clock_mhz,power_w\n1,2", {"clock": "f"}, "no column 'f'"),
        ("clock_mhz,power_w,k\n1,2,word\n2,3,word", {"rate": "k"}, "'word' is not a number"),
        ("clock_mhz,power_w\n1,2", {"series": "k=1"}, "no column 'k'"),
        ("clock_mhz,power_w,k\n1,2,3", {"series": "k=1"}, "no row with k=1"),
        ("clock_mhz,power_w\n1,2", {"series": "k"}, "names no series"),
        ('clock_mhz,power_w\n"1,2', {}, "not a CSV file"),
        ("{", {}, "not valid JSON|not a Kernel Tuner cache"),
    ],
)
def test_bad_input_is_one_line(file: Path, content: str, options: dict[str, str], said: str) -> None:
    file.write_text(content)
    with pytest.raises(InputError, match=said) as caught:
        choose(read_series(file, **options))
    assert caught.value.remedy


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(st.lists(st.text(max_size=6) | st.floats().map(str), max_size=4), max_size=6))
def test_any_table_gives_points_or_one_line(file: Path, rows: list[list[str]]) -> None:
    file.write_text(
        "\n".join(["clock_mhz,power_w,gpu", *(",".join(row) for row in rows)]), encoding="utf-8", newline=""
    )
    found, problem = [], ""
    try:
        found = read_series(file)
    except InputError as error:
        problem = str(error)
    assert bool(found) != bool(problem)
    assert "\n" not in problem
    assert all(np.isfinite(points.clock_mhz).all() and np.isfinite(points.power_w).all() for points in found)


@pytest.mark.parametrize("highest", ["1e9", "1e12", "1e300", "1.7e308"])
def test_clocks_in_another_unit_make_no_list_of_all_that_lie_between(file: Path, highest: str) -> None:
    file.write_text(f"clock_mhz,power_w,gpu\n1000,100,A100\n{highest},200,A100\n")
    points = choose(read_series(file))
    assert points.clocks == 2
    assert points.supported_mhz is None


def test_a_cache_gives_its_best_configuration_over_the_clocks(shared_data: Path) -> None:
    points = choose(read_series(shared_data / "kernel-tuner/ps3_RTX4000Ada_wmma_complex_gemm_f16.json.gz"))
    assert points.clocks == 10
    assert points.gpu == "NVIDIA RTX 4000 Ada Generation"
    assert "N_PER_BLOCK=128" in points.series
    assert points.supported_mhz is not None
    assert 1500 in points.supported_mhz, "clocks of that generation go in steps of 15 MHz"


def test_a_cache_without_power_says_so(shared_data: Path) -> None:
    with pytest.raises(InputError, match="no measurement has a clock and a power"):
        choose(read_series(shared_data / "kernel-tuner/dedispersion_milo-A100.json.gz"))


def test_the_recommended_clock_of_the_a100_costs_at_most_half_a_per_cent(shared_data: Path) -> None:
    document = as_json(fit_points(choose(read_series(shared_data / "clock-sweeps/a100_synthetic_fp32_10_clocks.json"))))
    measured = {1035: 21.16, 1020: 21.17, 1050: 21.34, 960: 21.61, 1080: 21.79}
    assert measured[document["recommended_clock_mhz"]] <= 1.005 * 21.16
    assert document["gpu"] == "NVIDIA A100-PCIE-40GB"


def test_the_document_holds_no_nan(file: Path) -> None:
    document = as_json(fit_points(choose(read_series(write(file, "clock_mhz,power_w", "900,80")))))
    json.dumps(document, allow_nan=False)
    assert document["identifiable"] is False
    assert document["ridge_mhz"] is None
    for key in ("gpu", "series", "points", "form", "p_idle_w", "p_max_w", "alpha_w_per_mhz", "beta_per_mhz", "r2"):
        assert key in document


def session(source: str = "simulated") -> ResultTable:
    rows = [(block, clock) for block in (64, 128) for clock in CLOCKS]
    table = ResultTable(space_of_table({"block_size_x": (), "graphics_clock_mhz": ()}, rows))
    for block, clock in rows:
        configuration = {"block_size_x": block, "graphics_clock_mhz": clock}
        row = table.space.row_of(configuration)
        assert row is not None
        failed = (block, clock) == (64, 600)
        capped = clock == 1350
        values = {"time_s": block / clock, "power_w": clock / 10.0, "observed_clock_mhz": 1300.0 if capped else clock}
        table.append(
            Measurement(
                row=row,
                configuration=configuration,
                state=State.RUNTIME if failed else State.OK,
                values={} if failed else values,
                event_reasons=int(EventReason.POWER_CAP) if capped else 0,
                source=source,
            )
        )
    return table


def test_a_session_gives_observed_clocks_and_the_limits_that_acted() -> None:
    points = choose(series_of_table(session(), gpu="board", simulated=True))
    assert points.series == "block_size_x=128", "the other one failed at one clock"
    assert points.clock_mhz.tolist() == [600, 750, 900, 1050, 1200, 1300]
    assert points.limited is not None
    assert points.limited.tolist() == [False] * 5 + [True]
    assert points.supported_mhz is not None
    assert set(CLOCKS) <= set(points.supported_mhz)
    assert points.simulated


def test_a_recording_does_not_show_whether_a_limit_acted() -> None:
    assert choose(series_of_table(session("recorded"))).limited is None


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_clocks_in_another_unit_than_their_heading_says_are_refused(file: Path, factor: float) -> None:
    """Of clocks in GHz under `clock_mhz` a fit would recommend 1 MHz."""
    write(file, "clock_mhz,power_w", *(f"{factor * clock},{50 + clock / 10}" for clock in CLOCKS))
    with pytest.raises(InputError) as refused:
        fit_points(choose(read_series(file)))
    assert "MHz" in str(refused.value)
