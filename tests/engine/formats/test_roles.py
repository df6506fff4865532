"""What a column is, by unit, name, values and the physics between columns; and what is asked about."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.json_rows import flattened, rows_in
from app.cli import main
from app.engine.formats.any_table import read_table
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import Column, Role
from app.engine.formats.recording import Recording
from app.engine.formats.remembered_roles import NAME, remember, remembered
from app.engine.formats.roles import roles_of
from app.engine.formats.table_columns import TableColumns


def found(text: str) -> dict[str, Column]:
    return {column.heading: column for column in roles_of(parse_columns(text, "file.csv").by_kind())}


def one(heading: str, *values: object) -> tuple[Role, str, float]:
    """The role, unit and scale of a column by itself."""
    texts = [str(value) for value in values or (1.5, 2.25, 3.75, 4.5)]
    numbers = all(text.replace(".", "").replace("-", "").isdigit() for text in texts)
    (column,) = roles_of({heading: np.array(texts, float) if numbers else texts})
    return column.role, column.unit, column.scale


@pytest.mark.parametrize(
    ("heading", "role", "unit", "scale"),
    [
        ("energy_mj", Role.ENERGY, "J", 1e-3),
        ("Energía (kWh)", Role.ENERGY, "J", 3.6e6),
        ("power/W", Role.POWER, "W", 1.0),
        ("time/us", Role.TIME, "s", 1e-6),
        ("avgPower [mW]", Role.POWER, "W", 1e-3),
        ("totalpower", Role.POWER, "W", 1.0),
        ("GFLOPS/W", Role.EFFICIENCY, "", 1.0),
        ("tok/s", Role.THROUGHPUT, "", 1.0),
        ("img_s", Role.THROUGHPUT, "", 1.0),
        ("avg_ts", Role.THROUGHPUT, "", 1.0),
        ("J/token", Role.WORK_ENERGY, "", 1.0),
        ("energy_per_token_joules", Role.WORK_ENERGY, "", 1.0),
        ("EDP (J*s)", Role.PRODUCT, "", 1.0),
        ("peak_power_w", Role.FIGURE, "W", 1.0),
        ("idle_power_w", Role.FIGURE, "W", 1.0),
        ("power_std_w", Role.UNUSED, "", 1.0),
        ("compile_time_ms", Role.UNUSED, "s", 1e-3),
        ("time to first token (ms)", Role.LATENCY, "s", 1e-3),
        ("learning_rate", Role.FIGURE, "", 1.0),
        ("Apparent Power (VA)", Role.FIGURE, "", 1.0),
        ("reactive_power_kvar", Role.FIGURE, "", 1.0),
        ("power_plugged", Role.FIGURE, "", 1.0),
        ("power_on_hours", Role.FIGURE, "", 1.0),
        ("statistical_power", Role.FIGURE, "", 1.0),
        ("power_factor", Role.FIGURE, "", 1.0),
        ("server_power_kilowatts", Role.POWER, "W", 1e3),
        ("power_uw", Role.POWER, "W", 1e-6),
    ],
)
def test_units_and_words_name_the_quantity(heading: str, role: Role, unit: str, scale: float) -> None:
    assert one(heading) == (role, unit, pytest.approx(scale))


def test_a_negative_clock_is_an_offset_and_where_nothing_was_set_none_is() -> None:
    assert one("memory_clock", -1000, -500, 0, 500)[0] is Role.CLOCK_OFFSET
    assert one("clock_mhz", -1, 0, 900, 900)[0] is Role.GRAPHICS_CLOCK


def test_clocks_in_hz_and_khz_are_known_by_their_size() -> None:
    assert one("GPU Frequencies", 114750000, 522750000, 1300500000, 1300500000)[2] == 1e-6
    assert one("freq", 345600, 1420800, 345600, 1420800)[2] == 1e-3


def test_energy_that_is_power_times_time_tells_the_units_that_no_heading_names() -> None:
    rows = [(2000 + 100 * n, 150 + n) for n in range(8)]  # ms, W
    text = "size,time,power,energy\n" + "".join(f"{n},{t},{p},{t * p / 1e6}\n" for n, (t, p) in enumerate(rows))
    columns = found(text)
    scales = {name: columns[name].scale for name in ("time", "power", "energy")}
    assert scales["energy"] / (scales["time"] * scales["power"]) == pytest.approx(1e6)
    assert all(columns[name].confirmed for name in scales)


def test_an_energy_that_is_not_power_times_time_is_contradicted(tmp_path: Path) -> None:
    rows = "".join(f"{n},{2 + n},{100 + n},{(2 + n) * (100 + n) * 1.6}\n" for n in range(6))
    column = found("block,time_s,power_w,energy_j\n" + rows)["energy_j"]
    assert "differs by 60 %" in column.contradicted
    read = table(tmp_path, "block,time_s,power_w,energy_j\n" + rows)
    assert any("energy_j is not 'power_w' times 'time_s'" in note for note in read.notes)


def table(tmp_path: Path, text: str, columns: TableColumns | None = None, name: str = "table.csv") -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path, columns)


def test_a_power_that_contradicts_its_own_row_is_not_used(tmp_path: Path) -> None:
    rows = [f"{n},{2 + n},{100 + n},{(2 + n) * (100 + n)}" for n in range(9)]
    rows[4] = f"4,6,900,{6 * 104}"
    read = table(tmp_path, "\n".join(["block,time_s,watts,energy_j", *rows]))
    assert "the power of 1 rows is not their energy over their time, and is not used" in read.notes
    assert sorted(m.values["power_w"] for m in read.measurements())[-1] == 108


def test_times_of_different_work_are_not_compared(tmp_path: Path) -> None:
    rows = [f"{2**n},{0.1 * 2**n / (1 + n)},{10.0 * (1 + n)}" for n in range(6)]
    read = table(tmp_path, "\n".join(["batch,time_s,images_per_s", *rows]))
    assert "time_s" not in read.value_names
    assert "time_s (of all)" in read.value_names
    assert str(read.objective.goal) == "max:images/s"
    tokens = [(100, 50.0, 1000.0), (200, 60.0, 1500.0), (400, 90.0, 2400.0)]
    rows = [f"{150 + 50 * n},{t},{e},{e / count}" for n, (count, t, e) in enumerate(tokens)]
    read = table(tmp_path, "\n".join(["cap_w,total_s,total_j,joules_per_token", *rows]))
    assert {"work/s", "work/J"} <= set(read.value_names), "tokens per second follow from energy over energy per token"
    assert [m.values["work/s"] for m in read.in_file_order()] == pytest.approx([2.0, 200 / 60, 400 / 90])


def test_boards_kernels_and_amounts_of_work_are_kept_apart(tmp_path: Path) -> None:
    lines = [f"{gpu},{app},{n},{b},{n / b}" for gpu in "AB" for app in ("x", "y") for n in (8, 16) for b in (1, 2, 4)]
    read = table(tmp_path, "\n".join(["gpu,appName,n,block,time_ms", *lines]))
    assert read.space().names == ("kernel", "block")
    assert len({m.configuration["kernel"] for m in read.measurements()}) == 8
    again = table(tmp_path, "\n".join(["gpu,appName,n,block,time_ms", *lines]), TableColumns.parse(**read.read_with))
    assert again.space().names == ("kernel", "block"), "as a stored session reads its file again"


def test_what_the_user_says_of_a_column_that_would_be_joined_or_added_counts(tmp_path: Path) -> None:
    lines = [f"{app},{n},{b},{n / b}" for app in ("x", "y") for n in (8, 16) for b in (1, 2, 4)]
    text = "\n".join(["dataset,n,block,time_ms", *lines])
    for roles, names in (
        ("dataset=parameter", ("kernel", "dataset", "block")),
        ("dataset=kernel", ("kernel", "block")),
        ("block=kernel,n=parameter", ("kernel", "n")),
    ):
        read = table(tmp_path, text, TableColumns.parse(roles=roles))
        assert read.space().names == names
        assert table(tmp_path, text, TableColumns.parse(**read.read_with)).space().names == names
    energies = "limit_w,time_s,gpu0_energy,gpu1_energy\n" + "".join(
        f"{w},{9 - w / 50},{w},{w}\n" for w in (100, 150, 200)
    )
    read = table(tmp_path, energies, TableColumns.parse(roles="gpu1_energy=not-used"))
    assert [m.values["energy_j"] for m in read.in_file_order()] == [100, 150, 200]


def test_the_energies_of_several_boards_are_added_and_a_setting_in_a_name_is_read(tmp_path: Path) -> None:
    lines = [f"limit_{w},{300 / w},{w},{2 * w}" for w in (100, 150, 200)]
    read = table(tmp_path, "\n".join(["window,elapsed_s,gpu0_energy,gpu1_energy", *lines]))
    assert read.space().names == ("power_limit_w",)
    assert [m.values["energy_j"] for m in read.in_file_order()] == [300, 450, 600]


def test_rows_of_zeros_and_of_failures_are_failed_and_those_of_warming_up_are_left_out(tmp_path: Path) -> None:
    rows = ["1,warmup,ok,9,9", "1,run,ok,2,200", "2,run,ok,0,0", "3,run,out of memory,3,100", "4,run,ok,1,150"]
    read = table(tmp_path, "\n".join(["batch,phase,status,time_s,energy_j", *rows]))
    assert len(read) == 4
    assert read.table().failures() == {"runtime": 2}
    assert "1 row is of warming up or of an idle board, and is left out" in read.notes


def test_what_is_drawn_beyond_the_limit_is_named(tmp_path: Path) -> None:
    rows = [f"{w},{w - 1 if w != 150 else 400},{10 + w / 50}" for w in (100, 150, 200)]
    read = table(tmp_path, "\n".join(["cap_w,power_w,tps", *rows]))
    assert "1 rows draw more than their limit, row 2 400 W under 150 W" in read.notes


def test_several_times_that_are_no_statistics_of_one_are_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(
        "tile,torch_ref_ms,fused_op_ms,split_op_ms\n" + "".join(f"{n},{n + 1},{9 - n},5\n" for n in range(4))
    )
    assert main(["analyse", str(path)]) == 0
    out = capsys.readouterr()
    assert "torch_ref_ms is read as time, but may be other figure: it is not certain" in out.out
    assert "not certain: time or other figure" in out.err
    assert main(["analyse", str(path), "--roles", "torch_ref_ms=not-used,split_op_ms=not-used"]) == 0
    assert "not certain" not in capsys.readouterr().out


def test_a_power_in_even_steps_may_be_a_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.csv"
    path.write_text("power,tokens_per_s\n" + "".join(f"{w},{w**0.5:.2f}\n" for w in range(100, 260, 25)))
    assert main(["analyse", str(path)]) == 2
    assert main(["analyse", str(path), "--roles", "power=power-limit"]) == 0
    assert "power limit" in capsys.readouterr().err


def test_a_role_that_is_none_and_a_column_that_is_not_there_are_one_line(tmp_path: Path) -> None:
    for roles, said in (("time_s=beauty", "'beauty' of 'time_s' is no role"), ("speed=time", "no column 'speed'")):
        with pytest.raises(InputError) as caught:
            table(tmp_path, "block,time_s\n1,2\n2,3\n", TableColumns.parse(roles=roles))
        assert said in caught.value.what
        assert caught.value.remedy


def test_what_is_said_is_remembered_for_tables_of_the_same_headings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("block,time_s,score\n1,2,5\n2,3,6\n")
    assert main(["analyse", str(path), "--roles", "score=throughput", "--remember"]) == 0
    other = tmp_path / "b.csv"
    other.write_text("block,time_s,score\n4,2,5\n8,3,6\n")
    assert {c.heading: c.role for c in read_table(other).columns}["score"] is Role.THROUGHPUT
    assert remembered(other, ["block", "time_s"]) == {}, "of another shape"
    remember(other, ["block", "time_s", "score"], {"roles": "score=not-used"})
    assert remembered(path, ["score", "time_s", "block"]) == {"roles": "score=not-used"}, "the later counts"
    (tmp_path / NAME).write_text("[1]")
    with pytest.raises(InputError, match="no roles of columns"):
        read_table(path)
    capsys.readouterr()
    assert main(["analyse", str(path), "--remember"]) == 2
    assert "say it" in capsys.readouterr().err


def test_a_database_and_json_of_any_depth_hold_the_same_as_a_table(tmp_path: Path) -> None:
    rows = [{"block": 2**n, "time_s": 1.0 + n, "energy_j": 9.0 - n} for n in range(4)]
    plain = [m.values for m in table(tmp_path, "block,time_s,energy_j\n" + "".join(
        f"{r['block']},{r['time_s']},{r['energy_j']}\n" for r in rows
    )).measurements()]  # fmt: skip
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("CREATE TABLE small (x)")
        db.execute('CREATE TABLE "the runs" (block INTEGER, time_s REAL, energy_j REAL)')
        db.executemany('INSERT INTO "the runs" VALUES (:block, :time_s, :energy_j)', rows)
    assert [m.values for m in read_table(path).measurements()] == plain
    for document in (
        rows,
        {"machine": {"gpu": "X"}, "results": rows},
        {"a": {"block": 1, "time_s": 1.0, "energy_j": 9.0}} | {str(n): row for n, row in enumerate(rows[1:])},
        {name: [row[name] for row in rows] for name in rows[0]},
    ):
        file = tmp_path / "table.json"
        file.write_text(json.dumps(document))
        assert [m.values for m in read_table(file).measurements()] == plain
    (tmp_path / "bad.db").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match="no SQLite database"):
        read_table(tmp_path / "bad.db")


def test_a_rate_of_requests_without_a_bound_is_a_value(tmp_path: Path) -> None:
    read = table(tmp_path, "rate,tok_s\n1,10.5\n2,20.25\ninf,30.75\n")
    assert [m.configuration["rate"] for m in read.in_file_order()] == ["1", "2", "inf"]


def test_a_table_within_what_a_program_printed_is_found(tmp_path: Path) -> None:
    text = "Device 0: X\n\nrunning 3 sizes\nblock,time_ms\n1,5\n2,4\n4,3\n\nNOTE: done, thanks\n"
    assert len(table(tmp_path, text)) == 3


def test_a_table_without_a_header_is_read_once_its_columns_are_named(tmp_path: Path) -> None:
    text = "".join(f"{w * 1000},{200 - w / 4},{w - 1.5}\n" for w in (100, 150, 200))
    with pytest.raises(InputError, match="no column is a time"):
        table(tmp_path, text)
    roles = "column 1=power-limit,column 2=time,column 3=power"
    read = table(tmp_path, text, TableColumns.parse(roles=roles))
    assert [m.values["time_s"] for m in read.in_file_order()] == [175, 162.5, 150]
    assert {c.heading: c.scale for c in read.columns}["column 1"] == 1e-3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(JSON)
def test_any_json_has_rows_or_none(document: object) -> None:
    for row in rows_in(document):
        assert isinstance(row, dict)
        for name, value in flattened(row):
            assert isinstance(name, str)
            assert value is None or isinstance(value, str | int | float | bool)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=12)
        | st.sampled_from(["power_w", "time", "clock_mhz", "energy (J)", "tok/s", "gpu"]),
        st.lists(st.floats(-1e6, 1e12) | st.just(float("nan")), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_any_headings_over_any_numbers_have_a_role_and_a_scale(cells: dict[str, list[float]]) -> None:
    columns = roles_of({name: np.array(values) for name, values in cells.items()})
    assert [column.heading for column in columns] == list(cells)
    assert all(np.isfinite(column.scale) and column.scale > 0 for column in columns)
