"""`wattridge.h`: programs in C, C++ and Fortran that measure themselves, and how odd questions are answered."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.base.paths import resources
from app.cli import main

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="its clock and sockets are Linux'")

IMPLEMENTATION = '#define WATTRIDGE_IMPLEMENTATION\n#include "wattridge.h"\n'
IN_CPP = """
#include <cerrno>
#include <cstdio>
#include <thread>
#include <vector>
#include <time.h>
#include "wattridge.h"
static void rest(int ms) { timespec t = {ms / 1000, ms % 1000 * 1000000L}; nanosleep(&t, nullptr); }
int main() {
    std::vector<std::thread> threads;
    double joules[4], low[4], high[4], seconds[4];
    for (int i = 0; i < 4; i++) threads.emplace_back([&, i] {
        wattridge_span span = wattridge_begin();
        rest(500 + 100 * i);
        wattridge_end(&span);
        seconds[i] = (span.end_ns - span.begin_ns) * 1e-9;
        joules[i] = wattridge_joules(&span, &low[i], &high[i]);
    });
    for (auto &thread : threads) thread.join();
    for (int i = 0; i < 4; i++) std::printf("%.9f %.9f %.9f %.9f\\n", seconds[i], joules[i], low[i], high[i]);
    wattridge_span open = wattridge_begin();
    errno = 0;
    double none = wattridge_joules(&open, nullptr, nullptr);
    std::printf("%d %d\\n", none != none, errno == EINVAL);
}
"""
IN_FORTRAN = """
program measured
  use, intrinsic :: iso_c_binding
  implicit none
  type, bind(C) :: span_t
    integer(c_int64_t) :: begin_ns, end_ns
  end type
  interface
    function wattridge_begin() bind(C) result(span)
      import :: span_t
      type(span_t) :: span
    end function
    subroutine wattridge_end(span) bind(C)
      import :: span_t
      type(span_t), intent(inout) :: span
    end subroutine
    function wattridge_joules(span, low, high) bind(C) result(joules)
      import :: span_t, c_double
      type(span_t), intent(in) :: span
      real(c_double), intent(out) :: low, high
      real(c_double) :: joules
    end function
  end interface
  type(span_t) :: span
  real(c_double) :: joules, low, high
  span = wattridge_begin()
  call execute_command_line("sleep 0.6")
  call wattridge_end(span)
  joules = wattridge_joules(span, low, high)
  print '(4f16.9)', (span%end_ns - span%begin_ns) * 1d-9, joules, low, high
end program
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Path]:
    """The socket of a server beside a simulated H200, which rests at 83 W."""
    path = tmp_path / "energy.sock"
    command = [sys.executable, "-m", "app", "serve-energy", "--gpu", "simulated:h200", "--socket", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        assert str(path) in server.stderr.readline()
        time.sleep(1.2)  # the board's averages reach back a second
        yield path
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)
    assert not path.exists()


def built(tmp_path: Path, compiler: str, source: Path, *flags: str) -> Path:
    """A program of that source and of the header's implementation in C99."""
    if shutil.which(compiler) is None or shutil.which("cc") is None:
        pytest.skip(f"there is no {compiler if shutil.which('cc') else 'cc'}")
    header, library = resources() / "include", tmp_path / "wattridge.o"
    implementation = tmp_path / "wattridge.c"
    implementation.write_text(IMPLEMENTATION)
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run(["cc", *strict, f"-I{header}", "-c", implementation, "-o", library], check=True, timeout=120)
    program = tmp_path / "program"
    linked = [compiler, *flags, f"-I{header}", source, library, "-o", program]
    subprocess.run(linked, check=True, timeout=120, cwd=tmp_path)
    return program


def printed(program: Path, path: Path) -> list[list[float]]:
    environment = {**os.environ, "WATTRIDGE_SOCKET": str(path)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True, timeout=120)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def is_of_the_resting_board(seconds: float, joules: float, low: float, high: float) -> bool:
    return joules == pytest.approx(83.0 * seconds, rel=0.03) and low < joules < high


def test_threads_of_a_program_in_cpp_measure_each_its_own_span(tmp_path: Path, served: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text(IN_CPP)
    *spans, refused = printed(built(tmp_path, "c++", source, "-std=c++17", "-pthread"), served)
    assert len(spans) == 4
    assert all(is_of_the_resting_board(*span) for span in spans), spans
    assert refused == [1.0, 1.0]  # a span that has not ended


def test_a_program_in_fortran_measures_itself(tmp_path: Path, served: Path) -> None:
    source = tmp_path / "program.f90"
    source.write_text(IN_FORTRAN)
    [span] = printed(built(tmp_path, "gfortran", source), served)
    assert is_of_the_resting_board(*span), span


def test_without_a_server_the_joules_are_not_known(tmp_path: Path) -> None:
    source = tmp_path / "program.cpp"
    source.write_text(IN_CPP)
    *spans, _ = printed(built(tmp_path, "c++", source, "-std=c++17", "-pthread"), tmp_path / "nobody.sock")
    assert all(joules != joules for _, joules, _, _ in spans)


def ask(path: Path, question: bytes) -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(60)
        client.connect(str(path))
        client.sendall(question)
        client.shutdown(socket.SHUT_WR)
        return client.makefile().readline().strip()


def test_odd_questions_have_an_answer_and_the_server_goes_on(served: Path) -> None:
    now_ns = time.monotonic_ns()
    for question in (
        b"",
        b"\n",
        b"joules\n",
        b"1 2 3\n",
        b"9" * 400,
        b"2 1\n",
        f"{now_ns} {now_ns + 10**12}\n".encode(),
    ):
        assert ask(served, question) == "not two times of CLOCK_MONOTONIC, in ns, that have passed", question
    assert ask(served, f"1 {now_ns}\n".encode()) == "it began before this did"
    assert "too short" in ask(served, f"{now_ns - 1000} {now_ns}\n".encode())
    assert served.stat().st_mode & 0o777 == 0o600
    assert len(ask(served, f"{now_ns - 8 * 10**8} {now_ns}\n".encode()).split()) == 3


def test_a_second_server_does_not_take_the_place_of_the_first(served: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve-energy", "--gpu", "simulated:h200", "--socket", str(served)]) == 2
    assert "another one serves there" in capsys.readouterr().err
    assert served.exists()


def test_where_the_header_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve-energy", "--include"]) == 0
    assert (Path(capsys.readouterr().out.strip()) / "wattridge.h").is_file()
