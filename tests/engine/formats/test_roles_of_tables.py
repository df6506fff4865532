"""Which columns of others' tables were chosen and which were measured; nothing that is said contradicts the table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from app.cli import main
from app.engine.analysis.describe_analysis import describe_analysis
from app.engine.analysis.session_analysis import analyse
from app.engine.formats.any_table import read_table

LIMITS = "cap_W,narr_TPS,code_TPS,actual_W,sm_clk_MHz,eff_TPS_per_W\n" + "".join(
    f"{cap},{rate:.2f},{rate - 0.1:.2f},{cap - 0.3},{cap * 4 - 200},{rate / cap:.3f}\n"
    for cap in range(190, 400, 10)
    for rate in [14 + ((cap - 190) / 10) ** 0.5 * 4]
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "table.csv"
    path.write_text(text)
    return path


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    assert main(list(words)) == 0
    return capsys.readouterr().out


def test_a_sweep_of_power_limits_has_one_parameter_and_is_measured_in_every_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, LIMITS)
    read = read_table(path)
    assert read.space().names == ("power_limit_w",)
    assert read.value_names[:5] == ("narr_TPS", "code_TPS", "actual_W", "sm_clk_MHz", "eff_TPS/W")
    out = printed(capsys, "analyse", str(path))
    assert "21 of 21" in out
    assert "No configuration worked" not in out
    assert "power_limit_w:" not in out
    rows = [line.split(",") for line in LIMITS.splitlines()[1:]]
    least = min(rows, key=lambda row: float(row[3]) / float(row[1]))
    assert next(line for line in out.splitlines() if line.startswith("Least energy ")).split()[-1] == least[0]
    assert "by narr_TPS" in out


def test_fit_reads_the_same_as_power_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(printed(capsys, "fit", str(write(tmp_path, LIMITS)), "--json"))
    rows = [[float(cell) for cell in line.split(",")] for line in LIMITS.splitlines()[1:]]
    assert document["best_limit_w"] == min(rows, key=lambda row: row[3] / row[1])[0]
    assert document["points"] == 21


@pytest.mark.parametrize(("kind", "best", "product"), [("dense", 290, 310), ("moe", 210, 230)])
def test_the_published_sweeps_of_power_limits(
    shared_data: Path, capsys: pytest.CaptureFixture[str], kind: str, best: int, product: int
) -> None:
    file = str(shared_data / f"limits/rtx3090_{kind}_decode.csv")
    lines = printed(capsys, "analyse", file).splitlines()
    chosen = {line[:32].strip(): line.split()[-1] for line in lines if line.strip()}
    assert chosen["Least energy"] == str(best)
    assert chosen["Least energy-delay product E t"] == str(product)
    assert json.loads(printed(capsys, "fit", file, "--json"))["best_limit_w"] == best


def test_a_figure_without_a_unit_is_read_by_its_meaning_and_the_assumption_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{limit},{30 - limit / 20},{limit * 0.95}" for limit in range(100, 300, 25)]
    path = write(tmp_path, "\n".join(["power_limit,time_per_epoch,average_power", *rows]))
    out = printed(capsys, "analyse", str(path))
    assert "No configuration worked" not in out
    assert "Least energy" in out
    assert "time_per_epoch names no unit: its numbers are read as s" in out
    assert "average_power names no unit: its numbers are read as W" in out
    named = "time_ms=time_per_epoch,power_w=average_power"
    renamed = printed(capsys, "analyse", str(path), "--figures", named)
    assert "Least energy" in renamed
    assert "names no unit" not in renamed


def test_figures_of_no_known_kind_are_refused_and_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"{limit},{30 - limit / 20},{limit * 0.95}" for limit in range(100, 300, 25)]
    path = write(tmp_path, "\n".join(["power_limit,score,beauty", *rows]))
    assert main(["analyse", str(path)]) == 2
    said = capsys.readouterr().err
    assert "no column is a time, an energy, a power or a speed that is known" in said
    assert "--figures time_s=COLUMN,energy_j=COLUMN" in said
    assert "score, beauty" in said
    assert "Least energy" in printed(capsys, "analyse", str(path), "--roles", "score=time,beauty=power")


@pytest.mark.parametrize(
    ("heading", "parameters"),
    [
        ("tile_w,tile_h,time_ms,energy_j", ("tile_w", "tile_h")),
        ("power_cap,tokens_per_s,watts_avg,x_time", ("power_limit_w",)),
        ("target_w,qps,power_w,time_ms", ("power_limit_w",)),
        ("pl_limit_W,throughput,draw_W,elapsed_s", ("power_limit_w",)),
    ],
)
def test_what_was_set_is_a_parameter(tmp_path: Path, heading: str, parameters: tuple[str, ...]) -> None:
    rows = [f"{2 ** (index // 2)},{4 + index % 2},{3.5 - index / 4},{20.5 + index}" for index in range(8)]
    if len(parameters) == 1:
        rows = [f"{100 + 10 * index},{4.5 + index},{3.5 - index / 4},{20.5 + index}" for index in range(8)]
    assert read_table(write(tmp_path, "\n".join([heading, *rows]))).space().names == parameters


LIMIT, CLOCK = "power_limit_w", "graphics_clock_mhz"
NAMES = dict.fromkeys(("cap_W", "power_limit_w", "limit [W]"), LIMIT) | {"batch": "batch"}
NAMES |= dict.fromkeys(("clock_mhz", "locked clock (MHz)"), CLOCK)
NUMBERS = st.floats(0.01, 1e6).map(lambda value: float(f"{value:.6g}"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chosen=st.sampled_from(list(NAMES)),
    figures=st.lists(
        st.sampled_from(("time_s", "narr_TPS", "energy_j", "actual_W", "power_w", "runtime_ms", "avg_clock_mhz")),
        min_size=1,
        max_size=5,
        unique=True,
    ),
    data=st.data(),
)
def test_nothing_is_said_that_the_table_contradicts(
    tmp_path: Path, chosen: str, figures: list[str], data: st.DataObject
) -> None:
    """As many rows worked as were measured, and the least and the largest of each column are those of the table."""
    count = data.draw(st.integers(3, 12))
    columns = {name: data.draw(st.lists(NUMBERS, min_size=count, max_size=count)) for name in figures}
    assume(all(len(set(values)) > 1 for values in columns.values()))
    assume(figures != ["avg_clock_mhz"])  # nothing to choose by: refused
    lines = [",".join([chosen, *figures])]
    lines += [
        ",".join([str(100 + 15 * index), *(repr(columns[name][index]) for name in figures)]) for index in range(count)
    ]
    read = read_table(write(tmp_path, "\n".join(lines)))
    assert read.space().names == (NAMES[chosen],)
    measured = list(read.measurements())
    assert sum(each.state == "ok" for each in measured) == count
    for name in figures:  # a time is called otherwise where it is not that of the same work
        found = [each.values.get(name, each.values.get(f"{name} (of all)")) for each in measured]
        assert (min(found), max(found)) == (min(columns[name]), max(columns[name]))
    analysis = analyse(read.table(), read.objective)
    titles = [each.title for each in describe_analysis(analysis)]
    assert not any("worked" in title or "failed" in title for title in titles)
    for choice in analysis.choices:
        if choice.name == "fastest" and choice.index is not None and {"time_s"} <= {*figures} & {*read.value_names}:
            at = analysis.table.measurement(choice.index).configuration[NAMES[chosen]]
            assert columns["time_s"][(int(at) - 100) // 15] == min(columns["time_s"])
