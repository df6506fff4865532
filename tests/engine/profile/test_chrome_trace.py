"""Traces of PyTorch's profiler: what ran, in which ranges, and how much of a damaged file is read."""

from __future__ import annotations

import contextlib
import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.profile.chrome_trace import read_chrome_trace
from app.engine.profile.program_trace import ProgramTrace
from tests.fixtures.pytorch_traces import (
    BASE_NS,
    kernel,
    launch,
    named_range,
    operator,
    range_on_stream,
    text_of,
    write_trace,
)

EXCERPT = Path(__file__).parent / "data" / "train-trace.json.gz"
STEP = (
    named_range("ProfilerStep#4", 0, 1000),
    named_range("forward", 10, 300),
    named_range("attention", 20, 100),
    named_range("backward", 400, 500),
)


def ranges(trace: ProgramTrace) -> list[tuple[str, ...]]:
    """The path of the range of each slice."""
    return [trace.paths[trace.range_path[row]] if row >= 0 else () for row in trace.instance.tolist()]


def test_slices_come_in_the_order_of_time_on_the_wall_clock(tmp_path: Path) -> None:
    events = [kernel("b", 20.5, 3.25), kernel("a", 10.001, 2)]
    trace = read_chrome_trace(write_trace(tmp_path / "trace.json", events))
    assert [trace.names[name] for name in trace.name] == ["a", "b"]
    assert trace.start_ns.tolist() == [BASE_NS + 10_001, BASE_NS + 20_500]
    assert trace.duration_ns.tolist() == [2000, 3250]
    assert (trace.board, trace.on_wall, trace.notes) == ("NVIDIA H200", True, ())


def test_a_slice_belongs_to_the_innermost_range_open_at_its_launch(tmp_path: Path) -> None:
    launches = [launch(30, 1), launch(200, 2), launch(350, 3), launch(2000, 4)]
    kernels = [kernel("k", 5000 + number, 1, correlation=number) for number in (1, 2, 3, 4)]
    trace = read_chrome_trace(write_trace(tmp_path / "trace.json.gz", [*kernels, *launches, *STEP]))
    step = ("ProfilerStep",)
    assert ranges(trace) == [(*step, "forward", "attention"), (*step, "forward"), step, ()]


def test_what_a_thread_without_ranges_launches_belongs_to_those_of_the_main_thread(tmp_path: Path) -> None:
    events = [kernel("grad", 5000, 1, correlation=1), launch(500, 1, thread=77), *STEP]
    trace = read_chrome_trace(write_trace(tmp_path / "trace.json", events))
    assert ranges(trace) == [("ProfilerStep", "backward")]


def test_without_launches_the_ranges_on_the_stream_serve(tmp_path: Path) -> None:
    """Kernels of autograd's thread carry the numbers of another block of operators than the main thread's."""
    events = [
        *(named_range(name, at, 90, number=number) for name, at, number in (("fwd", 0, 10), ("bwd", 100, 20))),
        *(range_on_stream(name, at, 50, number) for name, at, number in (("fwd", 1000, 10), ("bwd", 1100, 20))),
        range_on_stream("optimizer", 1300, 50, 30),
        kernel("early", 900, 1, **{"External id": 5}),
        kernel("in forward", 1010, 1, **{"External id": 11}),
        kernel("between", 1060, 1, **{"External id": 15}),
        kernel("in backward", 1110, 1, **{"External id": 21}),
        kernel("autograd", 1200, 1, **{"External id": 900}),
        kernel("step", 1310, 1, **{"External id": 31}),
    ]
    trace = read_chrome_trace(write_trace(tmp_path / "trace.json", events))
    assert ranges(trace) == [(), ("fwd",), (), ("bwd",), ("bwd",), ("optimizer",)]
    assert "1 slices that another thread launched" in trace.notes[0]


def test_operators_name_the_shapes_of_what_they_launch(tmp_path: Path) -> None:
    events = [
        operator("aten::mm", 3, [[128, 64], [64, 32]], ["c10::BFloat16"] * 2),
        kernel("gemm", 10, 1, **{"External id": 3}),
        kernel("other", 20, 1, **{"External id": 4}),
    ]
    trace = read_chrome_trace(write_trace(tmp_path / "trace.json", events))
    call = trace.operators[trace.operator[0]]
    assert (call.name, call.dims, call.types[0]) == ("aten::mm", ((128, 64), (64, 32)), "c10::BFloat16")
    assert trace.operator[1] == -1


def test_of_several_boards_the_busiest_is_read_or_the_one_named(tmp_path: Path) -> None:
    path = write_trace(
        tmp_path / "t.json", [kernel("a", 0, 1), kernel("b", 5, 9, device=1), kernel("c", 15, 9, device=1)]
    )
    assert len(read_chrome_trace(path)) == 2
    assert "boards 0, 1" in read_chrome_trace(path).notes[0]
    assert len(read_chrome_trace(path, 0)) == 1
    with pytest.raises(InputError, match="nothing ran on board 5"):
        read_chrome_trace(path, 5)


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path, packed: bool) -> None:
    data = text_of(kernel(f"k{number}", number * 10, 5) for number in range(400)).encode()
    content = gzip.compress(data) if packed else data
    path = tmp_path / ("trace.json.gz" if packed else "trace.json")
    path.write_bytes(content[: len(content) // 2])
    trace = read_chrome_trace(path)
    assert 50 < len(trace) < 400
    assert "not complete" in trace.notes[0]


def test_of_a_file_that_is_cut_off_only_the_time_in_which_nothing_is_missing_counts(tmp_path: Path) -> None:
    """The profiler writes its buffers from the latest back, here those of kernels and of sets in turn."""
    kinds = {name: [(at, kernel(name, 1e6 * at, 900)) for at in np.arange(0, 10, 0.001)] for name in ("k", "s")}
    buffers = {"k": [(8, 10), (6, 8), (4, 6), (2, 4), (0, 2)], "s": [(7, 10), (3.5, 7), (0, 3.5)]}
    written = [("k", 0), ("s", 0), ("k", 1), ("s", 1), ("k", 2), ("k", 3), ("s", 2), ("k", 4)]
    events = [
        event
        for name, number in written
        for at, event in kinds[name]
        if buffers[name][number][0] <= at < buffers[name][number][1]
    ]
    text = text_of(events)
    (tmp_path / "t.json").write_text(text[: text.rindex('"k"') * 6 // 10])
    trace = read_chrome_trace(tmp_path / "t.json")
    start_s = (trace.start_ns - BASE_NS) / 1e9
    assert start_s[-1] == pytest.approx(9.999)
    assert 3.4 < start_s[0] < 7.1
    assert len(trace) == pytest.approx(2000 * (10 - start_s[0]), abs=20)
    assert "in which nothing is missing" in trace.notes[0]


def test_a_damaged_file_is_read_up_to_there(tmp_path: Path) -> None:
    text = text_of(kernel(f"k{number}", number * 10, 5) for number in range(20))
    at = text.index('"k12"')
    (tmp_path / "t.json").write_text(text[:at] + "oops" + text[at:])
    trace = read_chrome_trace(tmp_path / "t.json")
    assert len(trace) == 12
    assert "line" in trace.notes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no list 'traceEvents'"),
        ("{}", "no list 'traceEvents'"),
        ("[]", "not valid JSON"),
        ('{"traceEvents": []}', "no kernels"),
        (json.dumps({"traceEvents": [named_range("x", 0, 1)]}), "did not watch a GPU"),
    ],
)
def test_what_is_no_trace_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        read_chrome_trace(tmp_path / "t.json")
    assert "\n" not in str(caught.value)


def test_the_excerpt_of_a_training_has_its_phases() -> None:
    trace = read_chrome_trace(EXCERPT)
    paths = ranges(trace)
    busy_ns = {path: int(trace.duration_ns[[each == path for each in paths]].sum()) for path in set(paths)}
    assert trace.board == "NVIDIA H200"
    assert busy_ns["backward",] > 1.8 * busy_ns["forward",] > 10 * busy_ns["data",]
    assert ("optimizer", "Optimizer.step#AdamW.step") in busy_ns


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(
    ["kernel", "gpu_memcpy", "gpu_memset", "user_annotation", "gpu_user_annotation", "cuda_runtime", "cpu_op"]
)
keys = st.sampled_from(["device", "stream", "correlation", "External id", "Input Dims", "Input type", "bytes"])
numbers = st.integers(-5, 40) | st.floats(0, 50)
events = st.fixed_dictionaries(
    {"ph": st.just("X") | values, "cat": kinds, "name": st.text(max_size=12) | values},
    optional={
        "ts": numbers | values, "dur": numbers | values, "pid": st.integers(0, 2) | values, "tid": values,
        "args": st.dictionaries(keys, numbers | values, max_size=5) | values,
    },
)  # fmt: skip


@given(st.lists(events | values, max_size=12), st.integers(0, 400))
def test_whatever_the_events_hold_they_are_read_or_refused_in_one_line(made: list[object], cut: int) -> None:
    trace = None
    text = json.dumps({"baseTimeNanoseconds": BASE_NS, "traceEvents": [kernel("k", 1, 2), *made]})
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write((text[:-cut] if cut % 2 else text).encode("utf-8", "surrogatepass"))
        file.flush()
        with contextlib.suppress(InputError):
            trace = read_chrome_trace(Path(file.name))
    if trace is None:
        return
    assert len(trace) >= 1
    assert (trace.duration_ns >= 0).all()
    assert (np.diff(trace.start_ns) >= 0).all()
    assert trace.instance.max() < len(trace.range_path)
    assert trace.range_parent.max(initial=-1) < len(trace.range_path)
