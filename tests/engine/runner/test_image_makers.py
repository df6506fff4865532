"""What makes images: a library in processes that stay, a program for each image, and one for what the other refuses."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest

from app.engine.results.measurement import State
from app.engine.runner.cuda.toolchain import NvccTarget, NvrtcElseNvcc
from app.engine.runner.kernels.compiler import (
    MAX_MESSAGE,
    MOST_RESIDENT_BYTE,
    Compiled,
    Compiler,
    ImageMaker,
    LibraryMaker,
    NotCompiled,
    ProgramMaker,
)
from app.engine.runner.kernels.process import KernelFailed
from app.engine.workloads.source_kernel import Build

HERE = Path(__file__).parents[1]
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def the_stand_ins_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))


@pytest.fixture
def library() -> Iterator[LibraryMaker]:
    made = LibraryMaker("fake_library", "fake library 1", ("-arch",))
    yield made
    made.close()


@pytest.fixture
def program() -> Iterator[ProgramMaker]:
    made = ProgramMaker(NvccTarget((sys.executable, str(HERE / "fake_cuda.py")), "fake nvcc", (9, 0)))
    yield made
    made.close()


def process_of(made: Compiled) -> int:
    return int(made.image.rpartition(b"|")[2])


def wait_for(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def alive(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


# --- what all of them do


@pytest.mark.parametrize("kind", ["library", "program"])
def test_a_text_that_does_not_compile_is_refused_with_the_error_first(
    kind: str, request: pytest.FixtureRequest
) -> None:
    maker: ImageMaker = request.getfixturevalue(kind)
    refused = {"library": "broken so", "program": "#define fault broken\n"}[kind]
    with pytest.raises(NotCompiled) as failed:
        maker.make(refused, ())
    assert failed.value.state is State.COMPILE
    assert failed.value.what.startswith("kernel.cu(3): error:")
    assert maker.make("#define fault none\n", ()).image, "and it compiles the next one"


@pytest.mark.parametrize("kind", ["library", "program"])
def test_once_closed_nothing_is_made(kind: str, request: pytest.FixtureRequest) -> None:
    maker: ImageMaker = request.getfixturevalue(kind)
    maker.close()
    with pytest.raises(KernelFailed, match="the session ended"):
        maker.make("text", ())


# --- a library


def test_images_are_made_by_one_process_that_stays(library: LibraryMaker) -> None:
    first, second = library.make("one", ("-O3",)), library.make("two", ())
    assert first.image == b"one|-arch -O3|%d" % process_of(first)
    assert process_of(first) == process_of(second) != os.getpid()


def test_the_first_process_starts_before_anything_is_asked(library: LibraryMaker) -> None:
    wait_for(lambda: bool(library._idle), "it stands")
    [process] = library._idle
    assert process_of(library.make("one", ())) == process.pid


def test_what_it_says_without_end_is_cut(library: LibraryMaker) -> None:
    assert library.make(f"warns {MAX_MESSAGE + 1}", ()).said == "x" * MAX_MESSAGE


def test_a_crash_costs_one_image_and_another_process_takes_over(library: LibraryMaker) -> None:
    before = process_of(library.make("one", ()))
    with pytest.raises(NotCompiled, match=r"the compiler's process ended by SIGKILL: a bug of the library's"):
        library.make("crash", ())
    assert process_of(library.make("two", ())) != before
    assert not alive(before)


def test_a_process_that_was_ended_while_it_was_idle_costs_no_image(library: LibraryMaker) -> None:
    before = process_of(library.make("one", ()))
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: library._idle[0].has_ended, "it ends")
    assert process_of(library.make("two", ())) != before


def test_a_text_without_end_costs_its_time_and_no_more() -> None:
    library = LibraryMaker("fake_library", "fake", compile_s=0.3)
    before = process_of(library.make("one", ()))
    with pytest.raises(KernelFailed, match=r"the compiler took longer than 0\.3 s") as failed:
        library.make("hang", ())
    assert not isinstance(failed.value, NotCompiled), "another compiler is not asked after that"
    assert not alive(before)
    library.close()


def test_a_process_that_has_grown_is_not_asked_again(library: LibraryMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    before = process_of(library.make("one", ()))
    module = LibraryMaker.__module__
    monkeypatch.setattr(f"{module}.MOST_RESIDENT_BYTE", 60 << 20)
    grown = library.make(f"grow {60 << 20}", ())
    assert process_of(grown) == before, "its image counts"
    monkeypatch.setattr(f"{module}.MOST_RESIDENT_BYTE", MOST_RESIDENT_BYTE)
    assert process_of(library.make("two", ())) != before


def test_what_a_large_program_holds_does_not_count_as_its_compilers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linux's getrusage counts for a process what its parent held when it was started."""
    monkeypatch.setattr(f"{LibraryMaker.__module__}.MOST_RESIDENT_BYTE", 200 << 20)
    held = b"x" * (300 << 20)
    with closing(LibraryMaker("fake_library", "fake library 1")) as library:
        assert process_of(library.make("one", ())) == process_of(library.make("two", ()))
    assert held


def test_several_threads_share_the_processes_and_each_gets_its_own_image(library: LibraryMaker) -> None:
    texts = [f"text{index}" for index in range(40)]
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda text: library.make(text, ()), texts))
    assert [each.image.partition(b"|")[0].decode() for each in made] == texts
    assert len({process_of(each) for each in made}) <= 4


def test_a_text_without_end_holds_no_other_up(library: LibraryMaker) -> None:
    before = process_of(library.make("one", ()))
    with ThreadPoolExecutor(1) as threads:
        endless = threads.submit(library.make, "hang", ())
        wait_for(lambda: not library._idle, "the process is asked")
        assert process_of(library.make("two", ())) != before
        library.close()
        assert isinstance(endless.exception(PATIENCE_S), KernelFailed)


def test_closing_ends_what_compiles_and_what_waits(library: LibraryMaker) -> None:
    process = process_of(library.make("one", ()))
    failures: list[str] = []

    def hang() -> None:
        try:
            library.make("hang", ())
        except KernelFailed as failure:
            failures.append(failure.what)

    threads = [threading.Thread(target=hang) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_for(lambda: not library._idle, "the process is asked")
    library.close()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert failures == ["the session ended"] * 3
    assert not alive(process)


def test_a_library_that_cannot_be_loaded_is_a_failure_each_time() -> None:
    library = LibraryMaker("no_such_library", "none")
    for _ in range(2):
        with pytest.raises(NotCompiled, match=r"No module named 'no_such_library'"):
            library.make("one", ())
    library.close()


# --- NVRTC, and nvcc for the rest


class Recorded:
    """A maker that refuses what it is told to, and keeps what it was asked for."""

    def __init__(self, identity: str, refuses: str = "") -> None:
        self.identity = identity
        self.refuses = refuses
        self.asked: list[str] = []
        self.closed = False

    def make(self, text: str, options: object) -> Compiled:
        self.asked.append(text)
        if self.refuses:
            raise NotCompiled(self.refuses)
        return Compiled(self.identity.encode(), "a warning")

    def close(self) -> None:
        self.closed = True


def test_what_nvrtc_compiles_is_not_given_to_nvcc() -> None:
    nvrtc, nvcc = Recorded("NVRTC 1"), Recorded("nvcc 2")
    both = NvrtcElseNvcc(nvrtc, nvcc)
    assert both.make("text", ()) == Compiled(b"NVRTC 1", "a warning")
    assert not nvcc.asked
    assert both.identity == "NVRTC 1, else nvcc 2"
    both.close()
    assert nvrtc.closed
    assert nvcc.closed


def test_an_image_by_nvcc_says_so_and_why() -> None:
    both = NvrtcElseNvcc(Recorded("NVRTC 1", 'k.cu(1): error: could not open "iostream"\nmore'), Recorded("nvcc 2"))
    made = both.make("text", ())
    assert made.image == b"nvcc 2"
    assert made.said == ('compiled by nvcc 2, as NVRTC does not: k.cu(1): error: could not open "iostream"\na warning')


def test_where_neither_compiles_it_nvcc_has_the_word() -> None:
    both = NvrtcElseNvcc(Recorded("NVRTC 1", "error: by NVRTC"), Recorded("nvcc 2", "error: by nvcc"))
    with pytest.raises(NotCompiled, match="by nvcc"):
        both.make("text", ())


def test_what_the_assembler_refuses_is_not_tried_again() -> None:
    said = "ptxas error   : Entry function 'f' uses too much shared data (0x40000 bytes, 0x38c00 max)"
    nvcc = Recorded("nvcc 2")
    with pytest.raises(NotCompiled, match="too much shared data"):
        NvrtcElseNvcc(Recorded("NVRTC 1", said), nvcc).make("text", ())
    assert not nvcc.asked


def test_an_nvcc_that_does_not_start_leaves_nvrtcs_word() -> None:
    absent = ProgramMaker(NvccTarget(("/no/such/nvcc",), "nvcc 2", (9, 0)))
    with pytest.raises(NotCompiled, match="by NVRTC"):
        NvrtcElseNvcc(Recorded("NVRTC 1", "error: by NVRTC"), absent).make("text", ())


class TooLarge:
    """An assembler that refuses a text for the kernels that are too large, unless it is asked for another one alone."""

    identity = "nvcc 2"

    def __init__(self, *names: str) -> None:
        self.names = names
        self.asked: list[tuple[str, ...]] = []

    def make(self, text: str, options: Sequence[str]) -> Compiled:
        self.asked.append(tuple(options))
        alone = [option.removeprefix("-e=") for option in options if option.startswith("-e=")]
        if alone and alone[0] not in (*self.names, "small"):
            raise NotCompiled(f"ptxas fatal   : Unknown function {alone[0]}")
        refused = [name for name in self.names if not alone or name in alone]
        if refused:
            said = "\n".join(f"ptxas error   : Entry function '{name}' uses too much shared data" for name in refused)
            raise NotCompiled(said)
        return Compiled(b"image", "a warning")

    def close(self) -> None:
        """Nothing."""


def test_a_kernel_is_not_lost_to_another_one_of_its_source_that_does_not_fit(tmp_path: Path) -> None:
    """As in Kernel Tuner's expdist, whose file has two."""
    maker = TooLarge("big", "bigger")
    compiler = Compiler(maker, folder=tmp_path, jobs=1)
    made = compiler.compile(Build("text", (), (), ("-O3",), kernel="small"))
    assert made.image == b"image"
    assert made.said == "left out, as it takes too much shared memory: big, bigger\na warning"
    assert maker.asked == [("-O3",), ("-O3", "-Xptxas", "-e=small")]
    for kernel in ("big", "", "mangled"):  # itself too large, with others of the text wanted, or not known by its name
        with pytest.raises(NotCompiled, match="'big' uses too much shared data"):
            compiler.compile(Build("text", (), (), (), kernel=kernel))
    compiler.close()
