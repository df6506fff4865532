"""The server as an assistant meets it: a process, its lines, and a session from start to report."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from app.base.errors import WattridgeError
from app.base.paths import resources
from app.cli import main
from app.commands.assistant import sessions as sessions_module
from app.commands.assistant import tools as tools_module
from app.commands.assistant.allowed import Folders
from app.commands.assistant.tools import NOTICE, Tools
from app.engine.children.ending import prepare_for_the_end
from app.engine.children.python import python_command, python_environment
from app.engine.store.database import Store

Ask = Callable[..., Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tuning"
    (made / "examples").mkdir(parents=True)
    (made / "kernels").mkdir()
    shutil.copy(resources() / "examples" / "gemm.toml", made / "examples")
    shutil.copy(resources() / "kernels" / "gemm.cu", made / "kernels")
    (made / "program.toml").write_text('[command]\nrun = "touch hostile"\n[parameters]\nn = [1, 2]\n')
    return made


@pytest.fixture
def ask(folder: Path) -> Iterator[Ask]:
    """`ask(method, **parameters)`: the answer of a server that was started with the folder."""
    process = subprocess.Popen(
        [*python_command("app"), "mcp", "--folder", str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=python_environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    numbers = iter(range(1000))

    def send(method: str, **parameters: Any) -> Any:
        number = next(numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["id"] == number
        return answer.get("result", answer.get("error"))

    send("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})

    def close() -> None:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0

    send.close = close  # type: ignore[attr-defined]
    yield send
    close()
    process.stdout.close()


def test_an_assistant_tunes_and_reports_and_runs_no_program(ask: Ask, folder: Path) -> None:
    def call(name: str, **arguments: Any) -> Any:
        result = ask("tools/call", name=name, arguments=arguments)
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    listed = call("list_specifications")
    names = [each["specification"] for each in listed["untrusted"]["specifications"]]
    assert sorted(names) == ["examples/gemm.toml", "program.toml"]
    assert listed["notice"] == NOTICE

    refused = call("start_session", specification="program.toml", gpu="simulated:a100")
    assert "runs a program" in refused["untrusted"]["error"]["what"]
    assert not list(folder.glob("**/hostile"))

    begun = call("start_session", specification="examples/gemm.toml", gpu="simulated:a100", max_evaluations=12)
    run = begun["run"]
    second = call("start_session", specification="examples/gemm.toml", gpu="simulated:a100")
    ended = call("session_progress", run=run, wait_seconds=60)
    assert "has not ended" in second.get("untrusted", {}).get("error", {}).get("what", "has not ended")
    assert ended["running"] is False
    found = ended["untrusted"]
    assert (found["ended"]["state"], found["progress"]["evaluated"]) == ("done", 12)

    session = found["started"]["session"]
    report = call("write_report", session=session)
    assert Path(report["file"]).stat().st_size == report["bytes"] > 1000

    # the end of the input stops a session, and what it measured is kept
    more = {"max_evaluations": 10_000, "strategy": "random_sample"}
    assert call("start_session", specification="examples/gemm.toml", gpu="simulated:a100", **more)["running"] is True
    ask.close()  # type: ignore[attr-defined]
    with Store() as store:
        last, first = store.sessions()[:2]
    assert (first.id, first.evaluated, first.source) == (session, 12, "simulated")
    assert last.id != session
    assert last.state == "stopped"
    assert 0 <= last.evaluated < 10_000


def test_every_process_that_it_starts_is_read_only(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    seen: list[Any] = []

    def start(*_: Any, env: Any = None, environment: Any = None, **__: Any) -> NoReturn:
        seen.append(env if environment is None else environment)
        raise OSError(2, "no such file")

    prepare_for_the_end()  # a process too
    monkeypatch.setenv("WATTRIDGE_READ_ONLY", "0")
    monkeypatch.setenv("WATTRIDGE_CUDA_COMPILER", "nvcc")
    monkeypatch.setattr(tools_module, "run_process", start)
    monkeypatch.setattr(sessions_module.subprocess, "Popen", start)
    made = Tools(Folders([folder]))
    board, session = {"gpu": "0", "seconds": 1.0}, {"session": 1}
    file = {"specification": "examples/gemm.toml", "gpu": "0"}
    for name, given in (
        ("read_board", board),
        ("start_session", file),
        ("session_front", session),
        ("list_boards", {}),
    ):
        with pytest.raises((OSError, WattridgeError)):
            made.by_name[name].call(given, threading.Event())
    made.close()
    environments = [environment for environment in seen if environment]
    assert [environment["WATTRIDGE_READ_ONLY"] for environment in environments] == ["1"] * 4
    assert environments[1]["WATTRIDGE_CUDA_COMPILER"] == "nvrtc"  # of the session: what is refused is not given to nvcc


def test_what_is_long_is_shortened_and_said_so(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    boards = [{"name": "x" * 10_000, "clocks": list(range(10_000))}] * 500
    monkeypatch.setattr(tools_module, "_command", lambda *_, **__: boards)
    made = Tools(Folders([folder]))
    found = made.by_name["list_boards"].call({}, None)  # type: ignore[arg-type]
    made.close()
    assert found["shortened"] is True
    assert len(found["untrusted"]) == 100
    assert (len(found["untrusted"][0]["name"]), len(found["untrusted"][0]["clocks"])) == (2000, 100)


def test_no_tool_takes_a_program_a_path_of_output_or_a_right(folder: Path) -> None:
    made = Tools(Folders([folder]))
    names = {name for tool in made.by_name.values() for name in tool.properties}
    made.close()
    assert names == {
        "gpu", "seconds", "specification", "strategy", "max_evaluations", "max_seconds", "seed", "maximise", "minimise",
        "front", "run", "wait_seconds", "session",
    }  # fmt: skip


def test_a_folder_that_is_none_is_said_at_the_start(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["mcp", "--folder", str(tmp_path / "nowhere")]) == 2
    said = capsys.readouterr()
    assert "not a folder" in said.err
    assert not said.out
