"""Whatever ends Wattridge ends all that it started: programs and what they started, compilers, runners, folders."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from environment import need_terminal

if not Path("/proc/self/stat").exists():
    pytest.skip("looks for processes in /proc", allow_module_level=True)

ROOT = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.usefixtures("no_signal_is_ignored")
ENDINGS = [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
PATIENCE_S = 60.0
# A program with a child of its own, both of which run for long and neither of which holds our pipes.
PROGRAM = "sleep 7777 >/dev/null 2>&1 </dev/null & echo $$ $! > {pids}.new; mv {pids}.new {pids}; wait"


def wait_for(happened: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def alive(process: int) -> bool:
    """A zombie is not: nobody may be left to reap it."""
    try:
        return stat_of(process)[0] != "Z"
    except OSError:
        return False


def stat_of(process: int) -> list[str]:
    """State, parent, group and so on. Raises OSError where there is none."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


class Started:
    """A Wattridge process, and the ids that what it started writes to a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pids = folder / "pids"
        self.temporary = folder / "temporary"
        self.temporary.mkdir()
        self.process: subprocess.Popen[bytes] | None = None
        self.began: list[int] = []

    def start(self, *words: str, terminal: int | None = None, ids: int | None = 2) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *words],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests" / "engine")]),
                "TMPDIR": str(self.temporary),
                "QT_QPA_PLATFORM": "offscreen",
            },
            stdin=subprocess.DEVNULL if terminal is None else terminal,
            stdout=subprocess.DEVNULL if terminal is None else terminal,
            stderr=subprocess.PIPE if terminal is None else terminal,
            start_new_session=True,
            preexec_fn=None if terminal is None else _take_terminal,
        )
        wait_for(lambda: self.pids.exists() or self.process.poll() is not None, "nothing was started")
        assert self.pids.exists(), self.process.communicate()[1]
        if ids is None:  # they come one by one
            return
        self.began = [int(word) for word in self.pids.read_text().split()]
        assert len(self.began) == ids
        assert all(alive(each) for each in self.began)

    def end(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=PATIENCE_S)
        assert b"Traceback" not in (errors or b"")
        wait_for(lambda: not any(alive(each) for each in self.began), "what it started lives on")

    @property
    def left_folders(self) -> list[str]:
        return sorted(path.name for path in self.temporary.glob("wattridge-*"))


def _take_terminal() -> None:
    """The child's terminal is the one on its standard input, as after a login."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    made = Started(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.communicate()
    for each in made.began:
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


@pytest.mark.parametrize("number", ENDINGS)
def test_measure_ends_the_program_and_what_that_started(started: Started, number: signal.Signals) -> None:
    program = ("sh", "-c", PROGRAM.format(pids=started.pids))
    started.start("-m", "app", "measure", "--gpu", "simulated:a100", "--", *program)
    started.end(number)


@pytest.mark.parametrize("number", ENDINGS)
def test_measure_at_a_terminal_ends_them_too(started: Started, number: signal.Signals) -> None:
    """There the program shares our group, so that the terminal's keys reach it; the shell is not what ends."""
    need_terminal()
    ours, theirs = os.openpty()
    words = ["measure", "--gpu", "simulated:a100", "--", "sh", "-c", PROGRAM.format(pids=started.pids)]
    shell = "import os, subprocess, sys, time; subprocess.run([sys.executable, *sys.argv[1:]]); time.sleep(7777)"
    try:
        started.start("-c", shell, "-m", "app", *words, terminal=theirs)
        wattridge = int(stat_of(started.began[0])[1])
        assert {os.getpgid(each) for each in started.began} == {os.getpgid(wattridge)}
        os.kill(wattridge, number)
        wait_for(lambda: not any(alive(each) for each in [wattridge, *started.began]), "what it started lives on")
        assert alive(started.process.pid)
    finally:
        os.close(ours)
        os.close(theirs)


COMMAND = """
[command]
run = "sh program.sh {{n}}"
timeout_s = 7000
[command.values]
score = 'score=([0-9.]+)'
[parameters]
n = [1, 2]
[objective]
minimise = "score"
"""


def command_specification(started: Started) -> Path:
    (started.folder / "program.sh").write_text(PROGRAM.format(pids=started.pids))
    path = started.folder / "command.toml"
    path.write_text(COMMAND.replace("{{", "{").replace("}}", "}"))
    return path


@pytest.mark.parametrize("number", ENDINGS)
def test_a_session_ends_its_command(started: Started, number: signal.Signals) -> None:
    path = command_specification(started)
    started.start("-m", "app", "tune", str(path), "--gpu", "simulated:a100", "--speed", "1")
    started.end(number)


@pytest.mark.parametrize("number", ENDINGS)
def test_the_window_ends_the_command_of_its_session(started: Started, number: signal.Signals) -> None:
    path = command_specification(started)
    code = (
        "from pathlib import Path\nfrom app.views.shell.app import run\n"
        f"raise SystemExit(run('simulated:a100', demo=True, specification=Path({str(path)!r})))"
    )
    started.start("-c", code)
    started.end(number)


COMPILE = """
import os, sys
from app.commands.terminal import end_on_signals
from app.engine.runner.cuda.toolchain import cuda_compiler
from app.engine.runner.kernels.process import RunnerProcess
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.workloads.source_kernel import Build
from pathlib import Path

with end_on_signals():
    runner = RunnerProcess("fake_cuda", "0", {{}})
    runner.ready()
    compiler = cuda_compiler((9, 0), toolchain=Toolchain(("sh", {script!r}), "slow"), folder=Path({folder!r}))
    try:
        compiler.compile(Build("text", (), (), ()))
    finally:
        compiler.close()
        runner.close()
"""


@pytest.mark.parametrize("number", ENDINGS)
def test_compilers_runner_processes_and_temporary_folders_go_too(started: Started, number: signal.Signals) -> None:
    script = started.folder / "compiler.sh"
    script.write_text(PROGRAM.format(pids=started.pids))
    code = COMPILE.format(script=str(script), folder=str(started.folder / "cubins"))
    started.start("-c", code)
    runners = [int(each) for each in os.listdir("/proc") if each.isdigit() and _is_runner(each, started.process.pid)]
    assert len(runners) == 1
    assert len(started.left_folders) == 1
    started.end(number)
    wait_for(lambda: not alive(runners[0]), "the runner process lives on")
    if number == signal.SIGKILL:  # nobody was left to remove it: the next one does
        assert len(started.left_folders) == 1
        sweep = "from app.engine.children.scratch import scratch_folder; print(scratch_folder())"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(started.temporary)}
        subprocess.run([sys.executable, "-c", sweep], env=environment, check=True, capture_output=True)
    assert started.left_folders == []


LIBRARY = """
from app.commands.terminal import end_on_signals
from app.engine.runner.kernels.compiler import LibraryMaker

with end_on_signals():
    maker = LibraryMaker("fake_library", "slow")
    try:
        maker.make("hang {pids}", ())
    finally:
        maker.close()
"""


@pytest.mark.parametrize("number", ENDINGS)
def test_a_library_that_compiles_ends_in_the_middle_of_a_text(started: Started, number: signal.Signals) -> None:
    started.start("-c", LIBRARY.format(pids=started.pids), ids=1)
    started.end(number)


SCORE = """
import sys, time
from app.engine.strategies import recorded_runs

class Endless:  # a run that no signal reaches: the process must end by itself
    def __init__(self, plan):
        open({pids!r}, "a").write(f"{{__import__('os').getpid()}} ")
    def advantage(self, task):
        while True:
            time.sleep(1)

recorded_runs._Bench = Endless
if __name__ == "__main__":
    import threading
    from app.commands.terminal import stop_on_interrupt
    with stop_on_interrupt() as stop:
        list(recorded_runs._in_processes(None, 2, [("space", "strategy", 1)] * 4, stop))
"""


@pytest.mark.parametrize("number", ENDINGS)
def test_processes_that_share_a_comparison_end_in_the_middle_of_a_run(started: Started, number: signal.Signals) -> None:
    script = started.folder / "score.py"
    script.write_text(SCORE.format(pids=str(started.pids)))
    started.start(str(script), ids=None)
    wait_for(lambda: len(started.pids.read_text().split()) == 2, "the processes did not start")
    started.began = [int(word) for word in started.pids.read_text().split()]
    started.end(number)


def _is_runner(process: str, parent: int) -> bool:
    with suppress(OSError):
        command = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
        return int(stat_of(int(process))[1]) == parent and b"app.engine.runner.kernels.worker" in command
    return False


def test_the_folders_of_a_process_that_lives_and_of_others_are_left_alone(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    (tmp_path / "wattridge-notes").mkdir()
    (tmp_path / "wattridge-notes" / "mine.txt").write_text("mine")
    code = "from app.engine.children.scratch import scratch_folder; print(scratch_folder(), flush=True); input()"
    living = subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert living.stdout is not None
    folder = Path(living.stdout.readline().strip())
    other = code.replace("; input()", "")
    subprocess.run([sys.executable, "-c", other], env=environment, check=True, capture_output=True)
    assert folder.is_dir()
    living.communicate("\n", timeout=PATIENCE_S)
    assert not folder.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["wattridge-notes"]


def test_a_process_that_was_started_to_ignore_hang_ups_stays(started: Started) -> None:
    """As `nohup` starts it."""
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "import sys; sys.argv = ['wattridge']; from app.cli import main\n"
        f"main(['measure', '--gpu', 'simulated:a100', '--', 'sh', '-c', {PROGRAM.format(pids=started.pids)!r}])"
    )
    started.start("-c", code)
    started.process.send_signal(signal.SIGHUP)
    time.sleep(0.5)
    assert all(alive(each) for each in started.began)
    started.end(signal.SIGTERM)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_window_whose_session_runs_ends_by_itself_and_what_was_measured_is_kept(
    started: Started, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.engine.results.state import SessionState
    from app.engine.store.database import Store

    monkeypatch.setenv("WATTRIDGE_DATA", str(started.folder / "data"))
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    process = started.process = subprocess.Popen(
        [sys.executable, "-m", "app", "demo"], cwd=ROOT, env=environment, stderr=subprocess.PIPE
    )

    def measured() -> int:
        assert process.poll() is None, process.communicate()[1]
        with Store() as store:
            return max((record.evaluated for record in store.sessions()), default=0)

    wait_for(lambda: measured() >= 3, "the example measures nothing")
    before = measured()
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, errors
    assert b"Traceback" not in errors
    with Store() as store:
        (record,) = store.sessions()
        assert record.state is SessionState.STOPPED
        assert len(store.load(record.id).table) >= record.evaluated >= before
