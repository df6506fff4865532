"""What the command line answers to a word that it does not know, and to other spellings of those that it does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.base.paths import resources
from app.cli import _COMMANDS, main


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """The exit status, and what was printed on standard error."""
    status = main(words)
    return status, capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("gpu",), ["no command 'gpu'", "did you mean 'gpus'?", "wattridge --help"]),
        (("tune", "gemm", "--max-evaluation-s", "3"), ["tune: ", "--max-evaluation-s", "did you mean '--max-eval"]),
        (("tune", "gemm", "--gpuu", "0"), ["tune: not understood: --gpuu 0; did you mean '--gpu'?", "tune --help"]),
        (("helper", "instal"), ["helper: ", "'instal' is not one of show, install, remove; did you mean 'install'?"]),
        (("measure", "ls", "-l"), ["measure: 'ls' is no option", "wattridge measure -- ls"]),
        (("tune", "gem"), ["gem: there is neither a file nor an example of that name", "wattridge examples"]),
        (("tune", "--max-evaluations", "none", "gemm"), ["tune: ", "--max-evaluations", "'none'"]),
    ],
)
def test_bad_usage_is_one_line_that_names_the_program_once(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], parts: list[str]
) -> None:
    status, line = answer(capsys, *words)
    assert status == 2
    assert line.count("\n") == 1
    assert line.startswith("wattridge: ")
    assert not line.startswith("wattridge: wattridge")
    for part in parts:
        assert part in line


def test_an_unknown_command_does_not_list_them_all(capsys: pytest.CaptureFixture[str]) -> None:
    _, line = answer(capsys, "xyzzy")
    assert "..." not in line
    assert "choose from" not in line
    assert "did you mean" not in line


@pytest.mark.parametrize(("spelled", "name"), [("analyze", "analyse"), ("characterize", "characterise")])
def test_american_spellings_are_understood(capsys: pytest.CaptureFixture[str], spelled: str, name: str) -> None:
    assert main([spelled, "--help"]) == 0
    assert f"usage: wattridge {name}" in capsys.readouterr().out


def test_minimize_is_minimise(capsys: pytest.CaptureFixture[str]) -> None:
    documents = []
    for flag in ("--minimise", "--minimize"):
        assert main(["analyse", "h200-sgemm-session", flag, "time_s", "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    assert documents[0] == documents[1]


def test_help_stands_for_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for words in (["help"], ["--help"], ["help", "tune"], ["tune", "--help"]):
        assert main(words) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert printed[2] == printed[3]
    assert main(["help", "nosuch"]) == 2


def test_the_help_lists_every_command_once_under_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    listed = re.findall(r"^  ([a-z][a-z-]+) {2,}\S", text, re.MULTILINE)
    assert sorted(listed) == sorted(_COMMANDS)
    tasks = re.findall(r"^([A-Z][A-Za-z ]+):$", text, re.MULTILINE)
    assert 6 <= len(tasks) <= 10
    assert max(map(len, text.splitlines())) <= 80


def test_every_example_is_known_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "--json"]) == 0
    found = {load["name"]: load for load in json.loads(capsys.readouterr().out)}
    files = [p for p in (resources() / "examples").rglob("*") if p.suffix in (".toml", ".py")]
    assert sorted(found) == sorted(path.stem for path in files), "no two have one name"
    assert all(each["about"] for each in found.values())


def test_an_example_is_tuned_by_its_name_from_any_folder(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["tune", "gemm", "--gpu", "simulated:a100", "--speed", "inf", "--max-evaluations", "3", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["evaluated"] == 3
    assert main(["space", "rtx5090_clocks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["valid"] == 108 + 3  # untouched at three loads


def test_a_signal_that_reaches_code_in_c_ends_the_command_as_it_does_elsewhere(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Qt does while its modules load: the exception of the handler becomes the cause of a SystemError."""

    def interrupted(_arguments: object) -> int:
        raise SystemError("returned a result with an exception set") from SystemExit(143)

    monkeypatch.setattr("app.commands.strategies.strategies", interrupted)
    with pytest.raises(SystemExit) as ended:
        main(["strategies"])
    assert ended.value.code == 143
    assert "fault" not in capsys.readouterr().err
