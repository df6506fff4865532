"""What Nsight Compute prints is understood: both pages, units, numbers of any locale, and what stands between."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.runner.profiling.ncu import decimal_point, factor, number, read_ncu
from app.engine.workloads.hardware_counters import COUNTERS, METRICS, counters_of

HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)
KERNEL = '"{id}","4711","python3","127.0.0.1","{name}","1","7","(16, 16, 1)","(64, 64, 1)","0","9.0"'


def details(*rows: tuple[int, str, str, str, str]) -> str:
    """The page `details`: (id, kernel, metric, unit, value)."""
    lines = [
        f'{KERNEL.format(id=at, name=name)},"Command line profiler metrics","{metric}","{unit}","{value}"'
        for at, name, metric, unit, value in rows
    ]
    return "\n".join(["==PROF== Connected to process 4711 (/usr/bin/python3.12)", HEADER, *lines, ""])


def test_the_page_details_has_a_line_for_each_metric() -> None:
    text = details(
        (0, "sgemm(float *, const float *)", "dram__bytes_read.sum", "Mbyte", "10.24"),
        (0, "sgemm(float *, const float *)", "gpu__time_duration.sum", "usecond", "41.28"),
        (1, "sgemm(float *, const float *)", "dram__bytes_read.sum", "byte", "53,261,312"),
        (1, "sgemm(float *, const float *)", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "n/a"),
    )
    first, second = read_ncu(text).launches
    assert first.name == "sgemm(float *, const float *)"
    assert (first.block, first.grid) == ((16, 16, 1), (64, 64, 1))
    assert first.metrics == pytest.approx({"dram__bytes_read.sum": 10.24e6, "gpu__time_duration.sum": 41.28e-6})
    assert second.metrics == {"dram__bytes_read.sum": 53_261_312.0}


def test_the_page_raw_has_a_column_for_each_metric_and_a_line_of_units() -> None:
    text = """==PROF== Profiling "sgemm" - 0: 0%....50%....100% - 9 passes
the program prints "this
"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",\
"dram__bytes_read.sum","dram__bytes_read.sum.per_second","launch__func_cache_config","gpu__time_duration.sum"
"","","","","","","","","","","","byte","Gbyte/second","","ns"
"0","1","python","h","sgemm","1","7","(256, 1, 1)","(5, 20, 1)","0","7.0","10,240,000","1.5","CachePreferNone","40,000"
a line of the program, with, commas
"1","1","python","h","sgemm","1","7","(256, 1, 1)","(5, 20, 1)","0","7.0","2,048","(!) n/a","CachePreferNone","42000"
==PROF== Disconnected from process 1
"""
    first, second = read_ncu(text).launches
    assert first.metrics == pytest.approx(
        {"dram__bytes_read.sum": 10_240_000, "dram__bytes_read.sum.per_second": 1.5e9, "gpu__time_duration.sum": 4e-5}
    )
    assert second.metrics == pytest.approx({"dram__bytes_read.sum": 2048, "gpu__time_duration.sum": 4.2e-5})


def test_kernels_of_several_processes_sections_and_rules_stay_apart() -> None:
    wide = f'{HEADER},"Rule Name","Rule Type","Rule Description"'
    row = f'{KERNEL.format(id=0, name="a")},"Launch Statistics","Duration","ns","100","","",""'
    rule = f'{KERNEL.format(id=0, name="a")},"Occupancy","","","","Bound","OPT","The ""grid"" is\nsmall, very"'
    other = row.replace('"4711"', '"4712"').replace('"a"', '"b"')
    launches = read_ncu("\n".join([wide, row, rule, other, wide, row.replace('"a"', '"c"')])).launches
    assert [launch.name for launch in launches] == ["a", "b", "c"]
    assert launches[0].metrics == {"Duration": pytest.approx(1e-7)}


def test_errors_and_warnings_are_kept_and_progress_is_not() -> None:
    found = read_ncu(
        "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
        "==WARNING== No kernels were profiled.\n"
    )
    assert (found.launches, found.errors) == ([], ["ERR_NVGPUCTRPERM - The user does not have permission"])
    assert found.warnings == ["No kernels were profiled."]


def test_numbers_of_a_locale_with_a_comma_for_the_point() -> None:
    text = details(
        (0, "k", "gpu__time_duration.sum", "ns", "117.344"),
        (0, "k", "dram__bytes_read.sum", "byte", "27.595.520"),
        (0, "k", "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "65,77"),
    )
    assert list(read_ncu(text).launches[0].metrics.values()) == pytest.approx([117.344e-6, 27_595_520, 65.77])


@pytest.mark.parametrize(
    ("numbers", "point"),
    [
        (["1,234", "5"], "."),  # it may be either, and is as in English
        (["1.234,5"], ","),
        (["1,234.5"], "."),
        (["1.234.567"], ","),
        (["0.123"], "."),
        (["0,123"], ","),
        (["1\u202f234,5"], ","),
        (["n/a", "CachePreferNone", ""], "."),
    ],
)
def test_the_numbers_of_an_output_show_its_point(numbers: list[str], point: str) -> None:
    assert decimal_point(numbers) == point


@pytest.mark.parametrize(
    ("unit", "base"),
    [
        ("Kbyte", 1e3),
        ("Gbyte/s", 1e9),
        ("Tbyte/second", 1e12),
        ("byte/nsecond", 1e9),
        ("msecond", 1e-3),
        ("us", 1e-6),
        ("Mhz", 1e6),
        ("cycle/usecond", 1e6),
        ("Ghz", 1e9),
        ("%", 1.0),
        ("inst/cycle", 1.0),
        ("Kbyte/block", 1e3),
        ("register/thread", 1.0),
        ("", 1.0),
        ("Mystery", 1.0),
    ],
)
def test_units_lead_to_base_units(unit: str, base: float) -> None:
    assert factor(unit) == pytest.approx(base)


@given(
    st.floats(min_value=1e-3, max_value=1e15), st.sampled_from([(",", "."), (".", ","), ("'", "."), ("\u202f", ",")])
)
def test_any_number_comes_back_whatever_the_locale(value: float, marks: tuple[str, str]) -> None:
    group, point = marks
    english = f"{value:,.3f}"
    text = english.replace(",", "\0").replace(".", point).replace("\0", group)
    assert number(text, point) == pytest.approx(float(english.replace(",", "")))


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    before = details((0, "k", "dram__bytes_read.sum", "byte", "1"))
    read_ncu(text)
    launches = read_ncu(f"{before}\n{text}").launches
    assert launches[0].metrics["dram__bytes_read.sum"] == 1


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(METRICS), st.floats(min_value=0, max_value=1e15), min_size=1))
def test_what_is_written_on_either_page_is_read_alike(metrics: dict[str, float]) -> None:
    rows = [(0, "k<1, 2>(float *)", name, "", f"{value!r}") for name, value in metrics.items()]
    of_kernel = HEADER.partition(',"Section Name"')[0]
    raw = "\n".join(
        [f"{of_kernel},{','.join(metrics)}", f"{KERNEL.format(id=0, name='k')},{','.join(map(repr, metrics.values()))}"]
    )
    for text in (details(*rows), raw):
        [launch] = read_ncu(text).launches
        assert launch.metrics == pytest.approx(metrics)


def test_a_counter_is_known_where_all_of_its_metrics_are() -> None:
    everything = dict.fromkeys(METRICS, 2.0)
    assert set(counters_of(everything)) == set(COUNTERS)
    assert counters_of(everything)["l2_read_throughput"] == 64  # of sectors of 32 bytes
    assert counters_of(everything)["gld_requested_throughput"] == pytest.approx(0.04)  # 2 % of 2 byte/s
    del everything["dram__bytes_read.sum"]
    assert "dram_read_byte" not in counters_of(everything)
    assert math.isnan(COUNTERS["dram_read_byte"].value({}))
