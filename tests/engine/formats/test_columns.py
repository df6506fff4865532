"""What a column's name says of its clocks, and numbers as spreadsheets of other countries write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.records import as_json
from app.engine.formats.columns import parse_columns
from app.engine.models.column_roles import Named, find_roles
from app.engine.models.fit.frequency import fit_points
from app.engine.models.fit.points import choose
from app.engine.models.series import read_series


def roles(header: str, **named: str) -> tuple[str, str | None]:
    """The columns of the clock that the board ran at, and of the one that was requested."""
    cells = ",".join(str(900 + index) for index in range(header.count(",") + 1))
    found = find_roles(parse_columns(f"{header},power_w\n{cells},80\n", "file.csv"), Named(**named))
    return found.names["clock"], found.names.get("requested")


@pytest.mark.parametrize("word", ["applied", "target", "set", "locked", "requested"])
@pytest.mark.parametrize("observed", ["avg", "mean", "observed", "actual"])
def test_requests_and_observations_are_distinguished(word: str, observed: str) -> None:
    request, seen = f"clock_{word}_mhz", f"{observed}_clock_mhz"
    assert roles(f"{request},{seen}") == (seen, request)
    assert roles(f"{seen},{request}") == (seen, request)
    assert roles(request) == (request, None)


@pytest.mark.parametrize("word", ["peak", "max"])
def test_peaks_are_never_used(word: str) -> None:
    assert roles(f"{word}_clock_mhz,clock_mhz") == ("clock_mhz", None)
    assert roles(f"{word}_clock_mhz,clock_target_mhz") == ("clock_target_mhz", None)
    with pytest.raises(InputError, match="no column with clocks"):
        roles(f"{word}_clock_mhz")
    assert roles(f"{word}_clock_mhz", clock=f"{word}_clock_mhz") == (f"{word}_clock_mhz", None), "named, it is"


def test_words_are_whole_words() -> None:
    """'clock' holds 'lock', and 'offset' 'set'."""
    assert roles("sm_clock_mhz,clock_offset_mhz")[1] is None
    assert roles("graphicsClock (MHz),targetClock (MHz),avgClock (MHz)") == ("avgClock (MHz)", "targetClock (MHz)")


def test_beside_an_observed_clock_the_plain_one_was_requested() -> None:
    assert roles("clock_mhz,avg_clock_mhz") == ("avg_clock_mhz", "clock_mhz")
    assert roles("clocks.current.graphics [MHz],clocks.current.sm [MHz],clocks.max.sm [MHz]")[1] is None


def test_a_power_that_is_a_peak_is_not_the_mean(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("clock_mhz,peak_power_w,avg_power_w\n900,120,80\n1000,130,90\n")
    assert choose(read_series(path)).power_w.tolist() == [80, 90]


def test_columns_named_by_their_symbols_are_found() -> None:
    found = find_roles(parse_columns("t,p,f\n2,80,900\n1,90,1000\n", "file.csv"), Named())
    assert found.names == {"clock": "f", "power": "p", "time": "t"}


def test_where_nothing_was_observed_the_request_counts(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("locked_clock_ghz,observed_clock_mhz,power_w\n0.9,897.5,80\n1.0,,90\n1.1,N/A,99\n")
    points = choose(read_series(path))
    assert points.clock_mhz.tolist() == [897.5, 1000, 1100]
    assert points.requested_mhz is not None
    assert points.requested_mhz.tolist() == [900, 1000, 1100]


def test_the_laptop_board_is_judged_by_the_clocks_it_ran_at(shared_data: Path) -> None:
    """Requests above 2145 MHz change nothing; 2145 MHz costs 23 % more than 1305."""
    document = as_json(
        fit_points(choose(read_series(shared_data / "clock-sweeps/rtx4050_laptop_conv_transpose2d.csv")))
    )
    [followed] = [reason for reason in document["reasons"] if "follows" in reason]
    assert "up to 2145 MHz" in followed
    assert "up to 3105 MHz" in followed
    assert 1100 <= document["recommended_clock_mhz"] <= 1500
    assert document["p_max_w"] == pytest.approx(61.5, abs=1)


# --- numbers ----------------------------------------------------------------------------------------------------------


def numbers(text: str, name: str) -> list[float]:
    return parse_columns(text, "file.csv").numbers(name).tolist()


def test_decimal_commas_are_read() -> None:
    text = "clock_mhz;power_w;note\n900;80,25;a, b\n1.200;1.099,5;c\n1500;-0,5e3;\n"
    assert numbers(text, "power_w") == [80.25, 1099.5, -500]
    assert parse_columns(text, "file.csv").cells["note"] == ["a, b", "c", ""]
    assert numbers('a,b\n"0,5",1\n"12,25",2\n', "a") == [0.5, 12.25]
    assert numbers("a;b\n85,123;1\n", "a") == [85.123], "semicolons are there because commas are decimal"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('a,b\n"1,234",1\n', "decimal comma or one between thousands"),
        ("a;b\n1,25;0.5\n", "decimal commas and others with decimal points"),
    ],
)
def test_what_may_be_either_is_refused(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        parse_columns(text, "file.csv")
    assert "decimal" in caught.value.remedy


@given(st.lists(st.tuples(st.integers(-9999, 9999), st.floats(-1e6, 1e6).map(lambda v: round(v, 4))), min_size=1))
def test_a_table_with_decimal_commas_is_the_table_with_points(rows: list[tuple[int, float]]) -> None:
    with_points = "\n".join(["a;b", *(f"{a};{b:.4f}" for a, b in rows)])
    with_commas = with_points.replace(".", ",")
    for name in "ab":
        assert numbers(with_commas, name) == numbers(with_points, name)


def test_units_in_the_cells_are_those_of_the_heading() -> None:
    text = "timestamp, power.draw [W], utilization.gpu [%]\n17:05, 9.73 W, 0 %\n17:06, [N/A], 5 %\n"
    assert numbers(text, "power.draw [W]")[0] == 9.73
    assert numbers(text, "utilization.gpu [%]") == [0, 5]
    with pytest.raises(InputError, match="not a number"):
        numbers("a [W],b\n3 mW,1\n4 W,2\n5 W,3\n", "a [W]")


# --- wide tables ------------------------------------------------------------------------------------------------------

WIDE = "frequency(MHz),757,952,1140,1335,1530\nsrad,93.5,108.1,130.2,160.4,205.8\ncfd,95.7,113.4,124.8,141.0,165.0\n"
SPEEDS = "frequency(MHz),757,952,1140,1335,1530\ncfd,0.74,0.99,1.00,1.01,1.00\nsrad,0.68,0.88,0.93,0.97,1.00\n"


def test_a_wide_table_is_called_one(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(WIDE)
    with pytest.raises(InputError, match=r"one row per application.* 757 to 1530 MHz") as caught:
        read_series(path)
    assert "--transpose" in caught.value.remedy


def test_a_wide_table_is_transposed_on_request(tmp_path: Path) -> None:
    power, speed = tmp_path / "power.csv", tmp_path / "speed.csv"
    power.write_text(WIDE)
    speed.write_text(SPEEDS)
    found = {points.series: points for points in read_series(power, transpose=True, rate=str(speed))}
    assert set(found) == {"application=srad", "application=cfd"}
    srad = found["application=srad"]
    assert srad.clock_mhz.tolist() == [757, 952, 1140, 1335, 1530]
    assert srad.power_w.tolist() == [93.5, 108.1, 130.2, 160.4, 205.8]
    assert srad.rate is not None
    assert srad.rate.tolist() == [0.68, 0.88, 0.93, 0.97, 1.00], "rows are found by their name, not by their place"


def test_figures_named_in_the_headings_keep_their_names(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    clocks = (900, 1000, 1100, 1200)
    heads = [f"power_w_{c}" for c in clocks] + [f"time_ms_{c} MHz" for c in clocks]
    path.write_text(",".join(["app", *heads]) + "\na,80,90,99,110,20,18,16,15\n")
    [points] = read_series(path, transpose=True)
    assert points.power_w.tolist() == [80, 90, 99, 110]
    assert points.rate is not None
    assert points.rate[0] == pytest.approx(50)


@pytest.mark.parametrize(
    ("text", "other", "said"),
    [
        ("clock_mhz,power_w\n900,80\n", None, "not a wide table"),
        ("app,757,900,1000,1100\na,80,x,99,110\n", None, "column '900', line 2: 'x' is not a number"),
        ("app,run1,run2,run3,run4\na,1,2,3,4\n", None, "not a wide table"),
        (WIDE, "frequency(MHz),757,952,1140,1335\nlud,1,2,3,4\n", "no row and clock of it is in the other table"),
    ],
)
def test_what_cannot_be_transposed_is_one_line(tmp_path: Path, text: str, other: str | None, said: str) -> None:
    path, speed = tmp_path / "wide.csv", tmp_path / "speed.csv"
    path.write_text(text)
    speed.write_text(other or "")
    with pytest.raises(InputError, match=said) as caught:
        read_series(path, transpose=True, rate=str(speed) if other else None)
    assert caught.value.remedy
