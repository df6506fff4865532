"""Processes that are watched: CUPTI's records, as a stand-in for its library hands them over, become a trace."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.profile.injected import wattridge_watcher
from app.engine.profile.injected.wattridge_watcher import Problem, Watcher, hook_pytorch
from app.engine.profile.program_trace import COPY, KERNEL
from app.engine.profile.watched import NOT_WATCHED, read_watched, trace_of
from tests.fixtures.fake_cupti import FakeCupti

MS, US = 1_000_000, 1_000
UUID = "3ab7d018ebbb1484532cee464c1e07f5"


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> FakeCupti:
    library = FakeCupti()
    real = ctypes.CDLL
    monkeypatch.setattr(wattridge_watcher, "find_library", lambda: "libcupti.so.13")
    monkeypatch.setattr(wattridge_watcher, "FLUSH_S", 0.005)
    monkeypatch.setattr(
        wattridge_watcher.ctypes, "CDLL", lambda name: library if name == "libcupti.so.13" else real(name)
    )
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "")
    return library


def watched_file(folder: Path) -> Path:
    return folder / f"{os.getpid()}.watched"


def test_kernels_copies_and_ranges_come_back_as_they_ran(cupti: FakeCupti, tmp_path: Path) -> None:
    watcher = Watcher(str(tmp_path))
    base = cupti.now
    cupti.launch(b"_Z5saxpyifPfS_", base + 10 * US, base + 30 * US, 1, 77, base + 5 * US)
    cupti.launch(b"gemm", base + 40 * US, base + 90 * US, 2, 77, base + 20 * US)
    cupti.launch(b"outside", base + 95 * US, base + 99 * US, 4, 77, base + 60 * US)
    cupti.copy(base + 100 * US, base + 120 * US, 4096, 3)
    cupti.mark(b"forward", 1, 77, base + 2 * US, base + 50 * US)
    cupti.mark(b"layer # 12", 2, 77, base + 15 * US, base + 25 * US)
    watcher.stop()

    trace = trace_of([read_watched(watched_file(tmp_path))], "train", "train")

    assert [trace.names[name] for name in trace.name] == [
        "saxpy(int, float, float*, float*)",
        "gemm",
        "outside",
        "Memcpy HtoD",
    ]
    assert trace.kind.tolist() == [KERNEL, KERNEL, KERNEL, COPY]
    assert (trace.start_ns - base).tolist() == [10 * US, 40 * US, 95 * US, 100 * US]
    assert trace.duration_ns.tolist() == [20 * US, 50 * US, 4 * US, 20 * US]
    assert trace.moved_bytes.tolist() == [0, 0, 0, 4096]
    assert trace.on_wall
    ranges = [trace.paths[trace.range_path[place]] if place >= 0 else () for place in trace.instance.tolist()]
    assert ranges == [("forward",), ("forward", "layer"), (), ()]
    assert trace.notes == ()


def test_only_calls_that_launch_something_are_recorded(cupti: FakeCupti, tmp_path: Path) -> None:
    watcher = Watcher(str(tmp_path))
    assert cupti.calls == {("driver", 307), ("runtime", 211)}
    assert cupti.enabled == {10, 1, 2, 22, 12}
    watcher.stop()
    assert cupti.calls == set()
    assert cupti.enabled == set()


def test_a_process_that_is_killed_leaves_what_was_written(cupti: FakeCupti, tmp_path: Path) -> None:
    watcher = Watcher(str(tmp_path))
    base = cupti.now
    cupti.launch(b"early", base, base + US, 1, 7, base)
    cupti.cuptiActivityFlushAll(0)
    watcher._write_records()
    killed = tmp_path / "killed.watched"
    shutil.copy(watched_file(tmp_path), killed)
    watcher.stop()

    watched = read_watched(killed)

    assert len(watched.slices) == 1
    assert "ended without a word" in watched.notes[0]


def test_what_ran_while_nothing_was_watched_has_slices_of_its_own(cupti: FakeCupti, tmp_path: Path) -> None:
    watcher = Watcher(str(tmp_path))
    base = cupti.now
    for number in range(10):
        cupti.launch(b"step", base + number * MS, base + number * MS + 900 * US, number, 7, base + number * MS)
    cupti.now = base + 10 * MS
    watcher.pause()
    cupti.launch(b"unseen", base + 11 * MS, base + 12 * MS, 50, 7, base + 11 * MS)
    cupti.now = base + 20 * MS
    watcher.resume()
    for number in range(20, 25):
        cupti.launch(
            b"step", base + number * MS + 500, base + number * MS + 900 * US, number, 7, base + number * MS + 400 * US
        )
    cupti.now = base + 30 * MS
    watcher.stop()

    trace = trace_of([read_watched(watched_file(tmp_path))], "train", "train")

    unknown = trace.name == trace.names.index(NOT_WATCHED)
    assert (trace.start_ns[unknown] - base).tolist() == [9 * MS + 900 * US]  # from the end of the last that is known
    assert trace.duration_ns[unknown].tolist() == [20 * MS + 500 - 9 * MS - 900 * US]
    assert "unseen" not in trace.names


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    parts=st.lists(
        st.tuples(st.lists(st.sampled_from("lcm"), min_size=1, max_size=5), st.integers(1, 90)), min_size=1, max_size=6
    )
)
def test_records_are_found_in_whatever_order_they_stand(
    cupti: FakeCupti, tmp_path: Path, parts: list[tuple[list[str], int]]
) -> None:
    """Launches, copies and marks in patterns that recur, and that break off."""
    watcher = Watcher(str(tmp_path))
    watched_file(tmp_path).write_bytes(b"")
    letters = [letter for pattern, times in parts for letter in pattern * times]
    base = cupti.now
    watcher._open_marks.clear()
    watcher._write(b"META", json.dumps({"pid": 1}).encode())
    for number, letter in enumerate(letters):
        at = base + number * US
        if letter == "l":
            cupti.launch(b"k%d" % (number % 7), at, at + 5, number, 7, at)
        elif letter == "c":
            cupti.copy(at, at + 3, number, number)
        else:
            cupti.mark(b"m", number, 7, at, at + 2)
    watcher.stop()

    watched = read_watched(watched_file(tmp_path))

    by_kind = {kind: watched.slices[watched.slices[:, 0] == kind] for kind in (KERNEL, COPY)}
    assert by_kind[KERNEL][:, 7].tolist() == [at for at, letter in enumerate(letters) if letter == "l"]
    assert by_kind[COPY][:, 7].tolist() == [at for at, letter in enumerate(letters) if letter == "c"]
    assert watched.launches[:, 0].tolist() == [at for at, letter in enumerate(letters) if letter == "l"]
    assert (watched.host[:, 2] - base).tolist() == [US * at for at, letter in enumerate(letters) if letter == "m"]
    names = [watched.names[name] for name in by_kind[KERNEL][:, 3]]
    assert names == [f"k{at % 7}" for at, letter in enumerate(letters) if letter == "l"]


def test_the_board_is_waited_for_before_kinds_are_switched_off(
    cupti: FakeCupti, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Switched off while kernels ran, CUPTI 13.0.1 ended 5 of 13 programs by SIGSEGV or SIGABRT."""
    seen: list[set[int]] = []
    driver = SimpleNamespace(cuCtxSynchronize=lambda: seen.append(set(cupti.enabled)))
    monkeypatch.setattr(wattridge_watcher.ctypes, "CDLL", lambda name: driver if name == "libcuda.so.1" else cupti)
    watcher = Watcher(str(tmp_path))
    watcher.stop()
    assert seen == [{10, 1, 2, 22, 12}]


def test_what_is_too_much_is_not_kept_and_nothing_is_switched_while_the_program_runs(
    cupti: FakeCupti, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wattridge_watcher, "MOST_RECORDS", 3)
    watcher = Watcher(str(tmp_path))
    base = cupti.now
    for number in range(5):
        cupti.launch(b"k", base, base + US, number, 7, base)
        cupti.cuptiActivityFlushAll(0)
        watcher._write_records()
    assert cupti.enabled
    watcher.stop()

    watched = read_watched(watched_file(tmp_path))

    assert len(watched.slices) == 2
    assert "ran too much to watch it all" in watched.notes[0]


def test_processes_on_one_board_come_together_and_keep_their_own_launches(cupti: FakeCupti, tmp_path: Path) -> None:
    files = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        watcher = Watcher(str(folder))
        base = cupti.now
        cupti.mark(b"rank %d" % number, 1, 70 + number, base, base + 100 * US)
        cupti.launch(b"k%d" % number, base + 10 * US, base + 20 * US, 1, 70 + number, base + 5 * US)
        watcher._write(b"BRDS", f'[[0, "NVIDIA H200", "{UUID}"]]'.encode())
        watcher.stop()
        files.append(read_watched(watched_file(folder)))

    trace = trace_of(files, "train", "train", f"GPU-{UUID[:8]}-{UUID[8:12]}-{UUID[12:16]}-{UUID[16:20]}-{UUID[20:]}")

    assert [trace.names[name] for name in trace.name] == ["k0", "k1"]
    assert [trace.paths[trace.range_path[place]] for place in trace.instance] == [("rank 0",), ("rank 1",)]
    assert trace.board == "NVIDIA H200"
    with pytest.raises(InputError, match="another board"):
        trace_of(files, "train", "train", "GPU-00000000-0000-0000-0000-000000000000")


def test_a_version_that_is_not_known_is_not_read(cupti: FakeCupti, tmp_path: Path) -> None:
    cupti.version = 140_000
    with pytest.raises(Problem, match="version 140000"):
        Watcher(str(tmp_path))


def test_records_of_an_unknown_kind_lose_nothing_else(cupti: FakeCupti, tmp_path: Path) -> None:
    cupti.sizes[44] = 24
    watcher = Watcher(str(tmp_path))
    base = cupti.now
    cupti.waiting.append((44).to_bytes(4, "little").ljust(24, b"\7"))
    cupti.launch(b"k", base, base + US, 1, 7, base)
    watcher.stop()
    assert len(read_watched(watched_file(tmp_path)).slices) == 1


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    library, folder = FakeCupti(), tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wattridge_watcher, "find_library", lambda: "libcupti.so.13")
        real = ctypes.CDLL
        patch.setattr(wattridge_watcher.ctypes, "CDLL", lambda name: library if "cupti" in name else real(name))
        patch.setenv("NVTX_INJECTION64_PATH", "")
        watcher = Watcher(str(folder))
        for number in range(30):
            library.launch(
                b"k%d" % (number % 3), library.now + number, library.now + number + 5, number, 7, library.now
            )
        watcher.stop()
    return watched_file(folder).read_bytes()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(cut=st.integers(0, 4000), at=st.integers(0, 4000), byte=st.integers(0, 255))
def test_a_damaged_file_is_read_as_far_as_it_is_whole_or_refused(
    tmp_path: Path, whole: bytes, cut: int, at: int, byte: int
) -> None:
    content = bytearray(whole[: max(0, len(whole) - cut)])
    if at < len(content):
        content[at] = byte
    file = tmp_path / "1.watched"
    file.write_bytes(content)
    with suppress(InputError):
        assert len(trace_of([read_watched(file)], "train", "train")) <= 30


# --- PyTorch ----------------------------------------------------------------------------------------------------------


class _Profile:
    use_device: str | None = "cuda"

    def __init__(self) -> None:
        self.saved = False

    def _prepare_trace(self) -> None:
        pass

    def __enter__(self) -> _Profile:
        self._prepare_trace()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def export_chrome_trace(self, path: str) -> None:
        assert not self.saved, "Trace is already saved."
        self.saved = True
        Path(path).write_text("{}")


def stand_in() -> Any:
    class RecordFunction:
        def __init__(self, name: str) -> None:
            self.name = name

        def __enter__(self) -> RecordFunction:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    profiler = SimpleNamespace(
        record_function=RecordFunction, profile=type("profile", (_Profile,), dict(vars(_Profile)))
    )
    return SimpleNamespace(autograd=SimpleNamespace(profiler=profiler, backward=lambda loss: loss))


def test_ranges_of_pytorch_and_its_backward_pass_are_named(cupti: FakeCupti, tmp_path: Path) -> None:
    torch, watcher = stand_in(), Watcher(str(tmp_path))
    hook_pytorch(watcher, torch)
    with torch.autograd.profiler.record_function("ProfilerStep#17"):
        assert torch.autograd.backward("loss") == "loss"
    cupti.launch(b"k", cupti.now, cupti.now + 1, 1, 7, cupti.now)
    watcher.stop()

    trace = trace_of([read_watched(watched_file(tmp_path))], "train", "train")

    assert set(trace.paths) == {("ProfilerStep",), ("ProfilerStep", "backward")}


def test_the_records_are_pytorchs_own_while_it_profiles_and_its_trace_is_kept(cupti: FakeCupti, tmp_path: Path) -> None:
    torch, watcher = stand_in(), Watcher(str(tmp_path))
    hook_pytorch(watcher, torch)
    with torch.autograd.profiler.profile() as profile:
        assert cupti.enabled == set()
    assert 10 in cupti.enabled
    profile.export_chrome_trace(str(tmp_path / "own.json"))  # which PyTorch does only once
    assert (tmp_path / "own.json").read_text() == "{}"
    assert len(list(tmp_path.glob("*.trace.json"))) == 1
    watcher.stop()


def test_a_program_that_profiles_again_and_again_fills_no_disk(cupti: FakeCupti, tmp_path: Path) -> None:
    torch, watcher = stand_in(), Watcher(str(tmp_path))
    hook_pytorch(watcher, torch)
    for _ in range(wattridge_watcher.MOST_TRACES + 3):
        with torch.autograd.profiler.profile() as profile:
            pass
    profile.export_chrome_trace(str(tmp_path / "own.json"))
    assert (tmp_path / "own.json").is_file()
    assert len(list(tmp_path.glob("*.trace.json"))) == wattridge_watcher.MOST_TRACES
    assert 10 in cupti.enabled
    watcher.stop()


def test_a_profiler_that_watches_no_board_leaves_the_records_here(cupti: FakeCupti, tmp_path: Path) -> None:
    torch, watcher = stand_in(), Watcher(str(tmp_path))
    hook_pytorch(watcher, torch)
    profile = torch.autograd.profiler.profile()
    profile.use_device = None
    with profile:
        assert 10 in cupti.enabled
    watcher.stop()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_of_a_watched_process_writes_nothing(cupti: FakeCupti, tmp_path: Path) -> None:
    watcher = Watcher(str(tmp_path))
    child = os.fork()
    if child == 0:
        watcher.begin("in the child")
        watcher.end()
        watcher.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    cupti.launch(b"k", cupti.now, cupti.now + 1, 1, 7, cupti.now)
    watcher.stop()
    watched = read_watched(watched_file(tmp_path))
    assert watched.names == ["k"]
    assert watched.notes == []


def test_a_full_disk_ends_the_watching_and_leaves_the_program_and_its_memory_alone(
    cupti: FakeCupti, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(str(tmp_path))
    base = cupti.now
    cupti.launch(b"k", base, base + US, 1, 7, base)
    cupti.cuptiActivityFlushAll(0)
    watcher._write_records()

    class Full:
        closed = False

        def write(self, content: bytes) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr(watcher, "_file", Full())
    for number in range(2, 6):
        cupti.launch(b"k", base + number * US, base + number * US + 1, number, 7, base)
        cupti.cuptiActivityFlushAll(0)
        watcher._write_records()
    assert watcher._file.closed
    assert watcher._full == []
    assert len(watcher._buffers) <= 2, "buffers are used again"
    watcher.stop()
    assert len(read_watched(watched_file(tmp_path)).slices) == 1
