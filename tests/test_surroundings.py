"""Every command in every surrounding a user may have: it ends with one clear line, never with a traceback."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
from nvml.as_nobody import permitted_capabilities, read_everything

from app.base.paths import resources
from app.cli import main
from app.engine.report.export import export_session
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_specification
from app.engine.session.run import run_session
from app.engine.specification.plan import SearchOptions
from app.engine.store.database import Store
from app.sensors.select import open_gpu

ROOT = Path(__file__).resolve().parents[1]
SWEEP = "clock_mhz,power_w,time_s\n" + "".join(
    f"{clock},{60 + clock * 0.08 + max(0, clock - 1000) ** 2 * 4e-4:.2f},{1000 / clock:.4f}\n"
    for clock in range(500, 1501, 100)
)
# The commands as a user types them; {spec}, {cache} and {sweep} are files, {out} a folder to write into.
COMMANDS = {
    "demo": "demo --no-window --max-evaluations 3 --out {out}",
    "gpus": "gpus --verbose",
    "monitor": "monitor --gpu simulated:a100 --duration 0.1 --out {out}/trace.csv",
    "measure": "measure --gpu simulated:a100 -- true",
    "tune": "tune {spec} --gpu simulated:a100 --max-evaluations 3",
    "replay": "replay {cache} --max-evaluations 3 --strategy random_sample",
    "characterise": "characterise --gpu simulated:a100 --show",
    "space": "space {spec}",
    "score": "score {cache} --strategy random_sample --repeats 2",
    "fit": "fit {sweep}",
    "compare-methods": "compare-methods {cache}",
    "roofline": "roofline --predict 1e9,1e9",
    "export": "export 1 --kind csv --out {out}",
    "export-file": "export {cache} --kind t4 --out {out}",
    "apply": "apply --gpu simulated:a100 --clock 900 --keep",
    "restore": "restore",
    "analyse": "analyse 1",
    "analyse-file": "analyse {cache}",
    "report": "report {cache} --out {out}/report.html",
    "compare": "compare {cache} {cache}",
    "strategies": "strategies",
    "sessions": "sessions",
    "twin": "twin a100 --truth",
    "help": "--help",
    "usage": "tune --no-such-option",
}
READ_ONLY_WORKS = ("gpus", "analyse", "analyse-file", "sessions", "export", "export-file", "report", "fit", "space")


@dataclass(frozen=True)
class Place:
    """Where the commands run: their files and a data folder that holds session 1."""

    folder: Path
    data: Path
    spec: Path
    cache: Path
    sweep: Path

    def words(self, command: str, **changes: object) -> list[str]:
        names = {"spec": self.spec, "cache": self.cache, "sweep": self.sweep, "out": self.folder / "out"} | changes
        return [word.format(**names) for word in COMMANDS[command].split()]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Session 1 is a short search of the GEMM example, and the cache is its export."""
    folder = tmp_path_factory.mktemp("surroundings")
    spec = resources() / "examples" / "gemm.toml"
    gpu = open_gpu("simulated:a100", speed=float("inf"))
    plan = plan_specification(
        load_specification(spec), gpu, SearchOptions(max_evaluations=40, strategy="random_sample", seed=1)
    )
    (folder / "data").mkdir()
    with Store(folder / "data" / "wattridge.sqlite") as store:
        result = run_session(plan, store, lambda _: None, threading.Event())
    gpu.close()
    cache, _ = export_session(plan, result.table, result.session, None, folder, ["cache"])
    (folder / "sweep.csv").write_text(SWEEP)
    return Place(folder, folder / "data", spec, cache, folder / "sweep.csv")


@pytest.fixture
def place(model: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A copy that a test may damage; the program looks for its data there."""
    data = tmp_path / "data"
    shutil.copytree(model.data, data)
    shutil.copy(model.sweep, tmp_path / "sweep.csv")
    shutil.copy(model.cache, tmp_path / model.cache.name)
    (tmp_path / "out").mkdir()
    monkeypatch.setenv("WATTRIDGE_DATA", str(data))
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path, data, model.spec, tmp_path / model.cache.name, tmp_path / "sweep.csv")


def run(words: list[str], stdout: IO[str] | None = None, stderr: IO[str] | None = None) -> tuple[int, str, str]:
    """The command in this process with streams of its own: status, output, errors."""
    before = sys.stdout, sys.stderr
    out, err = stdout or io.TextIOWrapper(io.BytesIO(), "utf-8"), stderr or io.TextIOWrapper(io.BytesIO(), "utf-8")
    sys.stdout, sys.stderr = out, err  # type: ignore[assignment]
    try:
        status = main(words)
    finally:
        sys.stdout, sys.stderr = before
    return status, _written(out), _written(err)


def _written(stream: IO[str]) -> str:
    if not isinstance(stream, io.TextIOWrapper) or not isinstance(stream.buffer, io.BytesIO):
        return ""
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "replace")


def assert_clear(status: int, errors: str) -> None:
    """The promise: a known status, no traceback, and where it failed exactly one line that says so."""
    assert status in (0, 1, 2, 130), errors
    assert "Traceback" not in errors, errors
    assert "fault in Wattridge" not in errors, errors
    said = [line for line in errors.splitlines() if line.startswith(("wattridge: ", "usage"))]
    assert len(said) == (1 if status in (1, 2) else 0), errors


# --- the data folder --------------------------------------------------------------------------------------------------


def a_file(place: Place) -> dict[str, str]:
    (place.folder / "file").write_text("mine")
    return {"WATTRIDGE_DATA": str(place.folder / "file")}


def nowhere(_: Place) -> dict[str, str]:
    return {"WATTRIDGE_DATA": "/proc/wattridge/data"}


def no_home(_: Place) -> dict[str, str]:
    return {"WATTRIDGE_DATA": "", "XDG_DATA_HOME": "", "HOME": "/proc/nobody"}


def no_database(place: Place) -> dict[str, str]:
    (place.data / "wattridge.sqlite").write_bytes(b"this was a database once " * 400)
    return {}


def broken_page(place: Place) -> dict[str, str]:
    with (place.data / "wattridge.sqlite").open("r+b") as file:
        file.seek(1024)
        file.write(b"\xff" * 6000)
    return {}


def empty_file(place: Place) -> dict[str, str]:
    (place.data / "wattridge.sqlite").write_bytes(b"")
    return {}


def a_folder_instead(place: Place) -> dict[str, str]:
    (place.data / "wattridge.sqlite").unlink()
    (place.data / "wattridge.sqlite").mkdir()
    return {}


def bad_row(place: Place) -> dict[str, str]:
    with closing(sqlite3.connect(place.data / "wattridge.sqlite")) as db, db:
        db.execute("UPDATE sessions SET objective = 'nonsense', created_s = 'yesterday', tags = x'ff00'")
        db.execute("UPDATE measurements SET measured = '[1', state = 'odd' WHERE ordinal < 9")
    db.close()
    return {}


def bad_profiles(place: Place) -> dict[str, str]:
    (place.data / "profiles.json").write_text('{"version": 1, "profiles": [[[')
    (place.data / "characterisations").write_text("a file in its place")
    return {}


DATA = (a_file, nowhere, no_home, no_database, broken_page, empty_file, a_folder_instead, bad_row, bad_profiles)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", DATA)
def test_whatever_is_in_the_data_folder(
    command: str, damage: Callable[[Place], dict[str, str]], place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in damage(place).items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    status, _, errors = run(place.words(command))
    assert_clear(status, errors)
    if command in ("gpus", "space", "fit", "twin", "strategies", "analyse-file", "compare", "monitor"):
        assert status == 0, errors  # nothing of it is needed


def test_a_damaged_database_is_named_and_left_as_it_is(place: Place) -> None:
    no_database(place)
    before = (place.data / "wattridge.sqlite").read_bytes()
    status, _, errors = run(["sessions"])
    assert status == 1
    assert "damaged" in errors
    assert str(place.data / "wattridge.sqlite") in errors
    run(place.words("tune"))
    assert (place.data / "wattridge.sqlite").read_bytes() == before


def test_one_damaged_session_is_named_and_the_others_are_listed(place: Place) -> None:
    assert run(place.words("tune"))[0] == 0
    with closing(sqlite3.connect(place.data / "wattridge.sqlite")) as db, db:
        db.execute("UPDATE sessions SET origin = '{' WHERE id = 1")
    db.close()
    status, output, errors = run(["sessions", "--json"])
    assert status == 0
    assert [session["session"] for session in json.loads(output)] == [2]
    assert "session 1 is damaged" in errors
    assert run(["analyse", "2"])[0] == 0


def test_a_damaged_measurement_is_left_out_and_said(place: Place) -> None:
    with closing(sqlite3.connect(place.data / "wattridge.sqlite")) as db, db:
        db.execute('UPDATE measurements SET measured = \'{"time_s": "fast"}\' WHERE ordinal = 3')
    db.close()
    status, output, _ = run(["analyse", "1"])
    assert status == 0
    assert "1 of 40 stored measurements are damaged and left out" in output
    for words in (["export", "1", "--kind", "csv"], ["fit", "1"], ["report", "1", "--out", str(place.data / "r.html")]):
        _, output, errors = run([*words, "--json"])
        page = (place.data / "r.html").read_text() if words[0] == "report" else ""
        assert "1 of 40 stored measurements are damaged and left out" in output + errors + page, words
    status, _, errors = run(["tune", "--resume", "1", "--max-evaluations", "50"])
    assert status == 2
    assert "cannot be resumed" in errors or "not resumed" in errors


def test_without_a_home_folder_the_data_folder_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    from app.base.errors import InputError
    from app.base.paths import data_folder

    monkeypatch.delenv("WATTRIDGE_DATA")
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: Path("~/.local/share/wattridge"))
    with pytest.raises(InputError, match="home folder"):
        data_folder()


# --- the streams ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("as_json", [False, True])
def test_into_a_terminal_that_only_knows_ascii(command: str, as_json: bool, place: Place) -> None:
    raw, err = io.BytesIO(), io.BytesIO()
    words = place.words(command)
    if as_json and command not in ("help", "measure"):
        words.append("--json")
    out = io.TextIOWrapper(raw, "ascii")
    error_stream = io.TextIOWrapper(err, "ascii")
    status, _, _ = run(words, out, error_stream)
    out.flush()
    error_stream.flush()
    assert raw.getvalue().isascii()
    assert err.getvalue().isascii()
    if not as_json:
        assert_clear(status, err.getvalue().decode("ascii"))
    elif command not in ("help", "measure"):
        json.loads(raw.getvalue())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("full", ["stdout", "stderr", "both"])
def test_onto_a_full_disk(command: str, full: str, place: Place) -> None:
    with open("/dev/full", "w") as first, open("/dev/full", "w") as second:
        out = first if full != "stderr" else None
        err = second if full != "stdout" else None
        status, output, errors = run(place.words(command), out, err)
    assert status in (0, 1, 2)
    assert "Traceback" not in errors + output
    if full == "stdout" and command not in ("usage", "characterise", "restore"):  # which print nothing here
        assert status == 1
        assert "No space left" in errors
    if full == "stderr":
        assert status == {"usage": 2, "characterise": 1}.get(
            command, 0
        )  # what cannot be said must not end what is done


def test_streams_that_are_closed_take_the_output_and_forget_it(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)
    statuses = [main(place.words(command)) for command in ("sessions", "usage", "gpus")]
    for stream in (sys.stdout, sys.stderr):
        stream.close()
    assert statuses == [0, 2, 0]


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", ["x" * 300, "a\x1b[31m\nb", "\udcff\u202e.toml", ""])
def test_odd_names_of_files(command: str, name: str, place: Place) -> None:
    words = place.words(command, spec=name, cache=name, sweep=name, out=name or ".")
    status, output, errors = run(words)
    assert_clear(status, errors)
    assert not set(output + errors) & {"\x1b", "\u202e", "\udcff"}


def test_a_long_name_of_a_session_is_stored_listed_and_exported(place: Place) -> None:
    spec = place.folder / "long.toml"
    spec.write_text(place.spec.read_text().replace('name = "gemm"', f'name = "{"n" * 300}"'))
    with closing(sqlite3.connect(place.data / "wattridge.sqlite")) as db, db:
        db.execute("UPDATE sessions SET name = ?, title = ?, tags = ?", ("n" * 300, "t" * 300, json.dumps(["g" * 300])))
    db.close()
    for words in (["sessions"], ["analyse", "1"], ["export", "1"], ["report", "1", "--out", "r.html"]):
        status, _, errors = run(words)
        assert status == 0, errors


# --- pipes ------------------------------------------------------------------------------------------------------------


PIPED = [name for name, words in COMMANDS.items() if "{spec}" in words or "{cache}" in words or "{sweep}" in words]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("command", PIPED)
def test_a_pipe_is_read_as_a_file_is(command: str, place: Place) -> None:
    """Once, though the program looks at a file several times."""
    pipes: dict[str, Path] = {}
    feeders = []
    gemm = place.folder / "gemm.toml"  # beside its sources, which it names
    for kind, file in (("spec", place.spec), ("cache", place.cache), ("sweep", place.sweep)):
        if f"{{{kind}}}" in COMMANDS[command]:
            pipe = gemm.with_name("pipe") if kind == "spec" else place.folder / f"pipe-{kind}"
            if kind == "spec":
                for source in place.spec.parent.glob("*.cu"):
                    shutil.copy(source, place.folder)
            os.mkfifo(pipe)
            pipes[kind] = pipe
            feeders.append(threading.Thread(target=pipe.write_bytes, args=(file.read_bytes(),), daemon=True))
            feeders[-1].start()
    status, _, errors = run(place.words(command, **pipes))
    for feeder in feeders:
        feeder.join(10)
    assert status == 0, errors
    shutil.rmtree(place.folder / "out")
    (place.folder / "out").mkdir()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_recordings_and_twins_come_through_pipes_too(place: Place) -> None:
    recorded = place.folder / "seen.csv.gz"
    assert run(["monitor", "--gpu", "simulated:a100", "--duration", "0.3", "--record", str(recorded)])[0] == 0
    for selector, content, name in (
        ("recorded:", recorded.read_bytes(), "pipe"),
        ("simulated:", (resources() / "twins" / "a100.toml").read_bytes(), "pipe.toml"),
    ):
        pipe = place.folder / name
        os.mkfifo(pipe)
        feeder = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
        feeder.start()
        status, _, errors = run(["monitor", "--gpu", f"{selector}{pipe}", "--duration", "0.1"])
        feeder.join(10)
        assert status == 0, errors


# --- processes --------------------------------------------------------------------------------------------------------


def process(
    words: list[str], place: Place, start_new_session: bool = False, **environment: str
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "app", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=place.folder,
        start_new_session=start_new_session,
        env={**os.environ, "PYTHONPATH": str(ROOT), "WATTRIDGE_DATA": str(place.data), **environment},
    )


@pytest.fixture
def ended(place: Place) -> Iterator[Callable[..., tuple[int, str, str]]]:
    def end(words: list[str], **environment: str) -> tuple[int, str, str]:
        running = process(words, place, **environment)
        out, err = running.communicate(timeout=100)
        return running.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    return end


@pytest.mark.parametrize("command", ["sessions", "analyse", "strategies", "twin", "usage"])
def test_a_c_locale_without_utf_8(command: str, place: Place, ended: Callable[..., tuple[int, str, str]]) -> None:
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for environment in (plain, {"PYTHONIOENCODING": "ascii"}):
        status, output, errors = ended(place.words(command), **environment)
        assert_clear(status, errors)
        assert output.isascii()
        assert status == (2 if command == "usage" else 0)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("command", ["sessions", "tune", "analyse", "score"])
def test_interrupted_at_any_time(command: str, place: Place) -> None:
    import signal

    for after_s in (0.03, 0.06, 0.1, 0.2, 0.4, 0.8):
        running = process(place.words(command), place)
        time.sleep(after_s)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=100)
        errors = err.decode()
        if "wattridge" not in errors and running.returncode in (1, -signal.SIGINT, 130):
            continue  # the interpreter itself had not begun to run our first line
        if "init_import_site" in errors:
            continue  # nor here, where the environment has an editable install
        # an interrupt in one call-back of Python's own import is lost in there, before our first line too
        errors = re.sub(
            r"Exception ignored in: <function _get_module_lock\..*?KeyboardInterrupt: *\n", "", errors, flags=re.S
        )
        # Python ends itself by the signal, a shell's 130, where C code of a library met the interrupt first
        assert running.returncode in (0, 1, 130, -signal.SIGINT), errors
        assert "Traceback" not in errors, (after_s, errors)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
@pytest.mark.parametrize("after_s", [0.5, 1.0, 2.0])
def test_an_interrupt_from_the_terminal_reaches_the_processes_of_score_too(after_s: float, place: Place) -> None:
    import signal

    running = process(["score", str(place.cache), "--jobs", "2", "--repeats", "5000"], place, start_new_session=True)
    time.sleep(after_s)
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=100)
    errors = err.decode()
    assert running.returncode in (1, 130, -signal.SIGINT), errors
    assert "Traceback" not in errors
    assert "SpawnPoolWorker" not in errors


@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.parametrize("command", ["sessions", "analyse", "twin", "strategies", "monitor", "tune"])
def test_a_reader_that_goes_away(command: str, place: Place) -> None:
    running = process(place.words(command), place)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.readline()
    running.stdout.close()
    errors = running.stderr.read().decode()
    running.stderr.close()
    assert running.wait(100) in (0, 1), errors
    assert "Traceback" not in errors
    assert "wattridge: " not in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["sessions", "help", "usage"])
def test_the_process_onto_a_full_disk(command: str, place: Place) -> None:
    words = [sys.executable, "-m", "app", *place.words(command)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=environment, text=True, timeout=60)
        both = subprocess.run(words, stdout=full, stderr=full, env=environment, timeout=60)
    assert done.returncode == both.returncode == (2 if command == "usage" else 1)
    assert_clear(done.returncode, done.stderr)


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Without root's right to write everywhere, where the tests run as root; the checkout may lie in root's folder."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    if sys.platform == "linux":
        read_everything(permitted_capabilities())
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
@pytest.mark.parametrize("with_log", [False, True], ids=["closed", "with a write-ahead log"])
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "measure"])  # which starts a program
def test_a_data_folder_that_can_only_be_read(command: str, with_log: bool, place: Place) -> None:
    before = place.folder / "before"
    shutil.copytree(place.data, before)
    run(place.words(command))  # imports what it needs
    shutil.rmtree(place.data)
    shutil.move(before, place.data)
    shutil.rmtree(place.folder / "out")
    (place.folder / "out").mkdir()
    if with_log:  # as after a crash: the newest is only in the log
        code = (
            "import os, sys; from pathlib import Path; from app.engine.store.database import Store;"
            "from app.engine.store.record import Label;"
            "Store(Path(sys.argv[1])).label(1, Label(name='in the log')); os._exit(0)"
        )
        words = [sys.executable, "-c", code, str(place.data / "wattridge.sqlite")]
        subprocess.run(words, check=True, cwd=ROOT, timeout=60)
        (place.data / "wattridge.sqlite-shm").unlink()
    for path in (place.data, *place.data.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in (place.folder, *place.folder.parents):
        if path.name.startswith(("pytest-", "test_", "popen-")):
            path.chmod(path.stat().st_mode | 0o055)
    (place.folder / "out").chmod(0o777)
    kept = {path: path.read_bytes() for path in place.data.rglob("*") if path.is_file()}
    with ordinary_user():
        status, output, errors = run(place.words(command))
    assert_clear(status, errors)
    assert {path: path.read_bytes() for path in place.data.rglob("*") if path.is_file()} == kept
    if command in READ_ONLY_WORKS:
        assert status == 0, errors
    if command == "sessions":
        assert ("in the log" in output) == with_log
    if command in ("tune", "replay"):
        assert status == 1
        assert str(place.data) in errors
    place.data.chmod(0o755)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a megabyte; only root can have one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    words = [mount or "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or subprocess.run(words, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    with suppress(OSError), (folder / "filler").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


@pytest.mark.parametrize("command", ["sessions", "analyse", "tune", "demo", "export", "report", "gpus"])
@pytest.mark.parametrize("with_sessions", [True, False])
def test_a_full_disk_under_the_data_folder(
    command: str, with_sessions: bool, place: Place, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small_disk / "data"
    data.mkdir(0o700)
    if with_sessions:
        shutil.copy(place.data / "wattridge.sqlite", data)
    fill(small_disk)
    monkeypatch.setenv("WATTRIDGE_DATA", str(data))
    words = [*place.words(command, out=data / "out"), *(["--json"] if command == "sessions" else [])]
    status, output, errors = run(words)
    assert_clear(status, errors)
    if command == "sessions":
        assert [session["session"] for session in json.loads(output)] == ([1] if with_sessions else [])
    if command in ("tune", "demo"):
        assert status == 1
        assert str(data) in errors
    if command == "analyse":
        assert status == (0 if with_sessions else 2)
    (small_disk / "filler").unlink()
    monkeypatch.setenv("WATTRIDGE_DATA", str(data))
    if with_sessions:
        assert run(["analyse", "1"])[0] == 0  # nothing was lost


def test_a_disk_that_fills_while_a_session_runs(
    place: Place, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(small_disk))
    with (small_disk / "filler").open("wb") as file:
        file.write(b"x" * 600_000)
    status, _, errors = run(["tune", str(place.spec), "--gpu", "simulated:a100", "--strategy", "random_sample",
                             "--max-evaluations", "20000"])  # fmt: skip
    assert status == 1
    assert "Traceback" not in errors
    (small_disk / "filler").unlink()
    status, output, _ = run(["sessions", "--json"])
    assert status == 0
    [session] = json.loads(output)
    assert session["evaluated"] > 0
    assert run(["analyse", "1"])[0] == 0
