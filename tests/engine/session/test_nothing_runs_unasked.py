"""A file's programs run when a session is started, and at no other time: not when it is read or looked at."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import main
from app.engine.session.load import load_specification
from app.engine.session.planning import plan_resume, plan_specification, space_of
from app.engine.session.run import run_session
from app.engine.specification.document import document_of
from app.engine.specification.plan import SessionPlan
from app.engine.store.database import Store
from app.sensors.select import open_gpu
from app.views.inspector.inspector_panel import read_kernel_text
from app.views.tune.draft import draft_of_file
from app.views.tune.preview import measure, read

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the programs are shell scripts")
KERNEL = """
[kernel]
name = "scale"
language = "c"
generator = "./generate {k}"
returns = "nothing"
arguments = [{ name = "y", type = "float32", shape = [16], output = true }]
verify = { command = "./verify {y} {k}" }
[parameters]
k = [1, 2]
[objective]
minimise = "time_s"
[search]
strategy = "brute_force"
"""
COMMAND = """
[command]
run = "./measure {k}"
values = { points = "points ([0-9]+)" }
[parameters]
k = [1, 2]
[objective]
maximise = "points"
[search]
strategy = "brute_force"
"""
SERVICE = """
[service]
start = "./measure {k}"
stop = "./verify"
url = "http://127.0.0.1:9"
[service.client]
run = "./generate {k}"
values = { points = "points ([0-9]+)" }
[parameters]
k = [1, 2]
[objective]
maximise = "points"
[search]
strategy = "brute_force"
"""


class Programs:
    """Programs that leave a trace where they run."""

    def __init__(self, folder: Path) -> None:
        self._trace = folder / "trace"
        source = 'echo "void scale(float *y) { for (int i = 0; i < 16; i++) y[i] = $1; }"'
        for name, does in (("generate", source), ("verify", "true"), ("measure", 'echo "points $1"')):
            script = folder / name
            script.write_text(f"#!/bin/sh\necho {name} >> {self._trace}\n{does}\n")
            script.chmod(script.stat().st_mode | stat.S_IXUSR)

    @property
    def ran(self) -> set[str]:
        return set(self._trace.read_text().split()) if self._trace.exists() else set()


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def specification(folder: Path, text: str) -> Path:
    path = folder / "spec.toml"
    path.write_text(text)
    return path


def planned(path: Path) -> SessionPlan:
    return plan_specification(load_specification(path), open_gpu("host"))


def look_in_the_editor(path: Path) -> None:
    reading = read(path.read_text(), path)
    assert reading.spec is not None, reading.found
    assert measure(reading, open_gpu("host"), threading.Event()).space is not None


def look_in_tune(path: Path) -> None:
    draft = draft_of_file(path, open_gpu("host"), None, threading.Event())
    assert draft.refused is None


LOOKS: dict[str, Callable[[Path], object]] = {
    "load": load_specification,
    "space": lambda path: space_of(load_specification(path)),
    "space on a device": lambda path: space_of(load_specification(path), open_gpu("host")),
    "wattridge space": lambda path: main(["space", str(path)]),
    "plan": planned,
    "the editor": look_in_the_editor,
    "Tune's preview": look_in_tune,
    "the Inspector's source": lambda path: read_kernel_text({"kind": "specification", "file": str(path)}),
    "its document": lambda path: document_of(load_specification(path), path.parent),
}


@pytest.mark.parametrize("text", [KERNEL, COMMAND, SERVICE], ids=["kernel", "command", "service"])
@pytest.mark.parametrize("look", LOOKS)
def test_looking_runs_nothing(tmp_path: Path, programs: Programs, look: str, text: str) -> None:
    if text == KERNEL and shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    LOOKS[look](specification(tmp_path, text))
    assert programs.ran == set()


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_start_runs_them_and_says_so_before(
    tmp_path: Path, programs: Programs, capsys: pytest.CaptureFixture[str]
) -> None:
    path = specification(tmp_path, KERNEL)
    notes = planned(path).space.notes
    assert programs.ran == set()
    for command in ("./generate {k}", "./verify {y} {k}"):
        assert any(note.startswith("starting it runs") and command in note for note in notes)
    assert main(["tune", str(path), "--gpu", "host"]) == 0
    said = capsys.readouterr().err
    assert said.index("./generate {k}") < said.index("1/2"), "before the first configuration"
    assert programs.ran == {"generate", "verify"}


def test_a_program_is_named_before_it_runs(tmp_path: Path, programs: Programs) -> None:
    assert any("./measure {k}" in note for note in planned(specification(tmp_path, COMMAND)).space.notes)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_resumed_session_names_them_again(tmp_path: Path, programs: Programs) -> None:
    path = specification(tmp_path, KERNEL)
    with Store() as store:
        stop = threading.Event()
        result = run_session(planned(path), store, lambda event: None, stop)
        (tmp_path / "trace").unlink()
        resumed = plan_resume(store, result.session, gpu=open_gpu("host"))
        assert any("./generate {k}" in note for note in resumed.space.notes)
    assert programs.ran == set()
