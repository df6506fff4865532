"""Units and quotients of units in headings, and letters that name a quantity or something else."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from app.cli import main
from app.engine.analysis.iso_lines import role_of
from app.engine.formats.columns import parse_columns
from app.engine.formats.headings import Column, Role, by_itself
from app.engine.formats.roles import roles_of


def by_heading(heading: str, *values: float) -> Column:
    return by_itself(heading, np.array(values or (1.5, 2.25, 3.75, 4.5), float))


def found(text: str) -> dict[str, Column]:
    return {column.heading: column for column in roles_of(parse_columns(text, "file.csv").by_kind())}


@pytest.mark.parametrize(
    "unit", ["J/sample", "mJ/step", "Wh/sentence", "MWh/SY", "J/solve", "pJ/flop", "J/second of audio"]
)
def test_energy_of_each_is_no_speed(unit: str) -> None:
    assert by_heading(unit).role is Role.WORK_ENERGY
    assert role_of(unit) is None


def test_the_most_joules_of_a_sample_are_not_the_fastest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "table.csv"
    path.write_text("batch_size,GPU power (W),J/sample\n1,210,4.0\n4,235,1.2\n16,305,0.5\n64,388,0.3\n")
    assert main(["analyse", str(path)]) == 0
    said = capsys.readouterr().out
    assert "max:J/sample" not in said
    assert re.search(r"(?m)^Least energy +388 +64", said)


@pytest.mark.parametrize("rate", ["tok/s", "GB/s", "samples/sec", "it/s (mean)", "work/s", "Tokens/second", "GFLOP/s"])
def test_work_by_the_second_is_a_speed(rate: str) -> None:
    assert role_of(rate) is not None


@pytest.mark.parametrize(
    ("heading", "role", "scale"),
    [
        ("P / W", Role.POWER, 1.0),
        ("P_GPU / kW", Role.POWER, 1e3),
        ("t / s", Role.TIME, 1.0),
        ("t/ms", Role.TIME, 1e-3),
        ("E / kJ", Role.ENERGY, 1e3),
        ("E/J", Role.ENERGY, 1.0),
        ("$P$ [W]", Role.POWER, 1.0),
        ("$E$ / kJ", Role.ENERGY, 1e3),
        ("Laufzeit / s", Role.TIME, 1.0),
        ("Energie/kJ", Role.ENERGY, 1e3),
        ("Leistung / W", Role.POWER, 1.0),
        ("t/s", Role.THROUGHPUT, 1.0),  # tokens, as llama.cpp writes them
        ("T4 img/s", Role.THROUGHPUT, 1.0),
        ("E2E tok/J", Role.EFFICIENCY, 1.0),
        ("P100 img/W", Role.EFFICIENCY, 1.0),
        ("Perf/W", Role.EFFICIENCY, 1.0),
        ("Bilder / s", Role.THROUGHPUT, 1.0),
        ("GFLOPS/W", Role.EFFICIENCY, 1.0),
        ("Leistung pro Watt", Role.POWER, 1.0),
        ("hours/ns", Role.TIME, 3600.0),
        ("days/ns", Role.TIME, 86_400.0),
        ("min/epoch", Role.TIME, 60.0),
        ("ns/day", Role.THROUGHPUT, 1.0),
        ("ns/iter", Role.TIME, 1e-9),
        ("watt-hours", Role.ENERGY, 3600.0),
        ("Energy (kilowatt hours)", Role.ENERGY, 3.6e6),
        ("kWhr", Role.ENERGY, 3.6e6),
        ("energy [W·h]", Role.ENERGY, 3600.0),
        ("energy (kW·s)", Role.ENERGY, 1e3),
        ("hours", Role.TIME, 3600.0),
        ("usecs", Role.TIME, 1e-6),
        ("Energy (MWh)", Role.ENERGY, 3.6e9),
        ("energy_mwh", Role.ENERGY, 3.6),
        ("jobs/h", Role.THROUGHPUT, 1.0),
        ("km/h", Role.FIGURE, 1.0),
        ("$/h", Role.FIGURE, 1.0),
        ("tok/s/MW", Role.EFFICIENCY, 1.0),
        ("tok/s/GPU", Role.THROUGHPUT, 1.0),
        ("TPS per GPU", Role.THROUGHPUT, 1.0),
        ("tok/s/user", Role.FIGURE, 1.0),
        ("timeMs", Role.TIME, 1e-3),
    ],
)
def test_a_quotient_of_units_or_a_quantity_over_its_unit(heading: str, role: Role, scale: float) -> None:
    column = by_heading(heading)
    assert column.role is role
    assert column.scale == pytest.approx(scale)


def test_tokens_a_second_are_a_time_beside_quantities_over_their_units() -> None:
    beside = found("f/MHz,P/W,t/s,E/J\n510,104.2,22.35,2329\n690,125.2,17.3,2166\n1410,390,10,3900\n")
    assert [beside[name].role for name in ("P/W", "t/s", "E/J")] == [Role.POWER, Role.TIME, Role.ENERGY]
    assert found("threads,t/s,W\n1,7.5,60.5\n4,21.2,80.1\n8,30.4,95.2\n")["t/s"].role is Role.THROUGHPUT


@pytest.mark.parametrize("heading", ["GPUs", "SMs", "num_GPUs", "GPUs active", "CPUs", "TBs", "VMs"])
def test_things_in_the_plural_are_no_times(heading: str) -> None:
    assert by_heading(heading, 1, 2, 4, 8).role is Role.PARAMETER


@pytest.mark.parametrize(
    ("heading", "values", "role"),
    [
        ("qps", (210, 410, 790, 1500), Role.THROUGHPUT),
        ("achieved_qps", (100, 200, 399, 790), Role.THROUGHPUT),
        ("rps", (120_000, 180_000, 81_000, 110_000), Role.THROUGHPUT),
        ("qps", (1, 2, 5, 10, 15), Role.PARAMETER),
        ("rps", (8, 8, 16, 16, 32), Role.PARAMETER),
        ("RPS", (100, 250, 500, 1000), Role.PARAMETER),
        ("qps", (120, 140, 160, 180), Role.PARAMETER),
        ("target_qps", (110, 220, 370), Role.PARAMETER),
    ],
)
def test_rates_that_someone_asks_for_are_round(heading: str, values: tuple[float, ...], role: Role) -> None:
    assert by_heading(heading, *values).role is role


@pytest.mark.parametrize(
    ("text", "letters"),
    [
        ("N,P,Q,Time,Power_W\n9,1,4,15.5,1480\n9,2,2,13.7,1590\n9,4,1,16.2,1450\n", "P"),
        ("P,batch,latency_ms,power_draw_W\n1,8,21.5,310\n2,8,12.3,602\n4,8,7.9,1150\n", "P"),
        ("n,p,T,S,E\n4,1,64,1,1\n4,2,32.6,1.96,0.98\n4,4,16.9,3.79,0.95\n", "pE"),
        ("E,lr,time_h,kWh\n10,0.1,1.1,0.36\n20,0.1,2.2,0.71\n40,0.1,4.3,1.4\n", "E"),
        ("P,Q,seconds,joules\n1,4,20.5,8800\n2,2,18.2,8420\n4,1,19.1,8900\n", "P"),
    ],
)
def test_a_letter_is_no_quantity_beside_one_that_says_it(text: str, letters: str) -> None:
    columns = found(text)
    assert not {Role.POWER, Role.ENERGY} & {columns[letter].role for letter in letters}
    assert Role.TIME in {column.role for column in columns.values()} or "latency_ms" in columns


@pytest.mark.parametrize("text", ["f,P,t,E\n510,104,22.4,2329\n690,125,17.3,2166\n1410,390,10,3900\n"])
def test_letters_that_nothing_contradicts_are_quantities(text: str) -> None:
    columns = found(text)
    assert [columns[letter].role for letter in "PtE"] == [Role.POWER, Role.TIME, Role.ENERGY]


def test_t_beside_rates_of_prompts_and_tokens_counts_threads() -> None:
    assert found("t,b,pp,tg,watts\n4,1,61,8.1,88\n8,1,110,12.9,121\n16,1,190,14.8,168\n")["t"].role is Role.PARAMETER


def test_the_height_and_width_of_a_kernel_are_no_kilowatts() -> None:
    text = "kh,kw,latency_ms,energy_mJ\n1,1,0.11,22\n3,3,0.35,85\n5,5,0.8,210\n"
    assert found(text)["kw"].role is Role.PARAMETER
    assert found(text.replace("kh,", "block,"))["kw"].role is Role.POWER


def test_a_power_of_a_gpu_whose_whole_numbers_come_again_was_measured() -> None:
    assert by_heading("GPU W", 210, 260, 210, 260).role is Role.POWER
    assert by_heading("tile_w", 16, 32, 16, 32).role is Role.PARAMETER
