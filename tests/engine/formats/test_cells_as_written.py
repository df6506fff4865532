"""Cells as people write them: with units, words, marks, thousands, placeholders, and results that were printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.errors import InputError
from app.engine.formats.any_table import read_table
from app.engine.formats.recording import Recording


def read(tmp_path: Path, text: str, name: str = "table.csv") -> Recording:
    path = tmp_path / name
    path.write_text(text)
    return read_table(path)


def values(recording: Recording, name: str) -> list[float]:
    return [m.values[name] for m in recording.in_file_order() if name in m.values]


def test_units_and_remarks_in_the_cells_of_a_page_belong_to_the_heading(tmp_path: Path) -> None:
    text = (
        "# A page\n\nwords\n\n| Cap | Rate | Mean Draw | Heat |\n|---|:---|---|---|\n"
        "| **320W** (as sold) | `61.5 images/s` | 300.5 W | 71.5°C |\n"
        "| **240W** (lower) | 58.25 images/s | 0.5W | 60°C |\n"
    )
    recording = read(tmp_path, text.replace("Cap", "Power Cap"), "page.md")
    assert [m.configuration["power_limit_w"] for m in recording.in_file_order()] == [320, 240]
    assert values(recording, "power_w") == [300.5, 0.5]
    assert values(recording, "Rate [1/s]") == [61.5, 58.25]


def test_a_column_of_several_units_is_left_as_it_is(tmp_path: Path) -> None:
    recording = read(tmp_path, "size label,time_ms\n4 MB,1.5\n2 GB,2.5\n4 MB,1.25\n2 GB,2.25\n")
    assert {m.configuration["size label"] for m in recording.in_file_order()} == {"4 MB", "2 GB"}


def test_a_small_letter_behind_a_number_is_no_unit(tmp_path: Path) -> None:
    recording = read(tmp_path, "pool,time_ms\n4c,1.5\n8c,2.5\n4c,1.25\n8c,2.25\n")
    assert {m.configuration["pool"] for m in recording.in_file_order()} == {"4c", "8c"}


def test_a_comma_before_three_digits_and_a_point_is_between_thousands(tmp_path: Path) -> None:
    recording = read(tmp_path, 'tile,energy_j\n8,"1,234,567.25"\n16,"12,345"\n32,987.5\n')
    assert values(recording, "energy_j") == [1234567.25, 12345, 987.5]


def test_a_name_among_the_values_of_a_choice_is_one_more_choice(tmp_path: Path) -> None:
    recording = read(tmp_path, "threads,tok_s\nserial_code,12.5\n4,40.25\n8,71.5\n")
    assert [m.configuration["threads"] for m in recording.in_file_order()] == ["serial_code", "4", "8"]
    with pytest.raises(InputError, match="'4o' is not a number"):
        read(tmp_path, "threads,tok_s\n4o,12.5\n4,40.25\n8,71.5\n")


def test_stamps_may_be_written_in_two_ways(tmp_path: Path) -> None:
    text = "created,tile,time_ms\n1783977193,8,1.5\n1783977293,16,2.5\n1783977393,32,2.75\n2026-08-14T04:58:10,64,3.5\n"
    assert values(read(tmp_path, text), "time_s") == pytest.approx([1.5e-3, 2.5e-3, 2.75e-3, 3.5e-3])


def test_a_round_rate_far_above_all_others_that_comes_again_stands_for_none(tmp_path: Path) -> None:
    rates = [31.5, 1e6, 42.25, 1e6, 55.5, 1e6]
    text = "batch,tok_s,ttft_s\n" + "".join(f"{n},{rate},{n / 7}\n" for n, rate in enumerate(rates, 1))
    recording = read(tmp_path, text)
    assert values(recording, "tok_s") == [31.5, 42.25, 55.5]
    assert any("3 cells of tok_s are 1e+06" in note for note in recording.notes)
    assert len(values(read(tmp_path, text.replace("1000000.0", "61.5")), "tok_s")) == 6


LONG = """machine,nodes,net,measure,result
one,1,a,kJ,"1,250.5"
one,1,a,minutes,20.5
one,2,a,kJ,"1,350.5"
one,2,a,minutes,11.25
two,1,a,kJ,990.5
two,1,a,minutes,30.5
"""


def test_a_row_for_each_quantity_is_read_as_one_for_each_run(tmp_path: Path) -> None:
    recording = read(tmp_path, LONG)
    assert values(recording, "energy_j") == [1250500, 1350500, 990500]
    assert values(recording, "time_s") == [1230, 675, 1830]


def test_a_quantity_that_is_not_known_stays_under_its_own_name_and_of_several_numbers_the_mean_counts(
    tmp_path: Path,
) -> None:
    rows = "".join(
        f"{stack},TPS,{tps - 2.5},{tps},0.5\n{stack},TTFT (s),0.5,{tps / 50},0.25\n{stack},marks,1.5,2.5,0.125\n"
        for stack, tps in (("one", 50.5), ("two", 75.25))
    )
    recording = read(tmp_path, "stack,metric,min,mean,std\n" + rows)
    assert values(recording, "TPS") == [50.5, 75.25]
    assert values(recording, "marks") == [2.5, 2.5]


@pytest.mark.parametrize(("other", "time"), [("points", "marks"), ("minutes", "minutes")])
def test_rows_of_which_no_quantity_is_known_or_one_comes_twice_are_not_joined(
    tmp_path: Path, other: str, time: str
) -> None:
    text = LONG.replace("kJ", other).replace("minutes", time)
    with pytest.raises(InputError, match=r"not clear|no column is"):
        read(tmp_path, text)


PRINTED = """Starting with streams={0}, prompt_len=512 ...
INFO 10:02 something : went by
============ Result of the run ============
Good requests:                     {0}
Output token throughput (tok/s):   {1}
--------------Time to First Token---------------
Mean TTFT (ms):                    {2}
===========================================
Done with streams={0}.
"""


def test_results_that_were_printed_for_a_person_are_a_row_each(tmp_path: Path) -> None:
    text = "".join(PRINTED.format(*row) for row in ((1, 27.5, 1058.21), (4, 93.25, 1200.5), (8, 161.5, 1555.75)))
    recording = read(tmp_path, text, "runs.log")
    assert [m.configuration for m in recording.in_file_order()] == [{"streams": 1}, {"streams": 4}, {"streams": 8}]
    assert values(recording, "Output token throughput (tok/s)") == [27.5, 93.25, 161.5]


def test_results_that_were_printed_without_what_was_set_are_repeats(tmp_path: Path) -> None:
    text = "".join(PRINTED.format(*row) for row in ((4, 92.5, 1058.21), (4, 93.25, 1200.5)))
    recording = read(tmp_path, text.replace("streams=4", ""), "runs.log")
    assert recording.space().names[-1] == "repeat"


def test_a_figure_that_is_0_in_all_rows_was_not_filled_where_another_column_has_it(tmp_path: Path) -> None:
    text = "tile,duration_s,run_time_s,energy_j\n8,0,1.5,30.5\n16,0,2.5,40.5\n"
    assert values(read(tmp_path, text), "time_s") == [1.5, 2.5]


def test_groups_of_runs_under_keys_are_rows_where_one_failed_and_something_else_stands_beside(tmp_path: Path) -> None:
    def run(rate: float) -> dict[str, float]:
        return {"output_tok_per_s": rate, "wall_time_s": 100 / rate}

    document = {
        "about": {"board": "one", "engine": {"layers": 24}},
        "by load": {"rate2": run(25.5), "rate4": run(38.75)},
        "by format": {"int8": run(61.5), "int4": {"rejected": "it does not fit"}},
        "by block": {"16": run(65.5), "32": run(64.25)},
    }
    recording = read(tmp_path, json.dumps(document), "groups.json")
    assert sorted(values(recording, "output_tok/s")) == [25.5, 38.75, 61.5, 64.25, 65.5]
