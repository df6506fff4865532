"""What reaches a terminal: no control characters from names, valid JSON, and lines no longer than COLUMNS."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError, WattridgeError
from app.base.paths import resources
from app.base.text import one_line, visible
from app.cli import main
from app.commands.terminal import print_json, print_table, say, show
from app.engine.store.database import Store

# Clears the screen, renames the window, forges a line, turns the reading direction, hides, ends the text.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\nforged line\u202egnp.exe\u2066\u200b\x9b31m\x7f\u2028\ud800\x00"
IN_FILES = HOSTILE.replace("\ud800", "").replace("\x00", "")  # what TOML and JSON can hold


def is_harmless(text: str) -> bool:
    return all(unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in text if letter != "\n")


@given(st.text(st.characters(), max_size=40))
def test_any_text_is_made_harmless_and_plain_text_stays(text: str) -> None:
    assert is_harmless(one_line(text))
    assert "\n" not in visible(text)
    if text.isprintable():
        assert visible(text) == text


@given(st.text(st.characters(), max_size=40))
def test_any_text_comes_back_from_the_json(text: str) -> None:
    from app.base.text import safe_json

    for ascii_only in (True, False):
        document = safe_json(json.dumps({text: text}, indent=1, ensure_ascii=ascii_only))
        assert is_harmless(document)
        assert json.loads(document) == {text: text}


def test_every_way_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show(f"title: {HOSTILE}")
    print_table([[HOSTILE, 1.0], ["plain", 2.0]], [HOSTILE, "value"])
    print_json({HOSTILE: [HOSTILE]})
    say(HOSTILE)
    say(str(WattridgeError(HOSTILE, HOSTILE, HOSTILE)))
    say(str(InputError(HOSTILE, HOSTILE, HOSTILE)))
    out, err = capsys.readouterr()
    assert is_harmless(out)
    assert is_harmless(err)
    assert not any(line.startswith("forged") for line in (out + err).splitlines())


@pytest.fixture
def hostile_files(tmp_path: Path) -> dict[str, Path]:
    """A twin and a specification whose names hold all of it."""
    twin = (resources() / "twins" / "a100.toml").read_text(encoding="utf-8")
    name = next(line for line in twin.splitlines() if line.startswith("name"))
    (tmp_path / "bad.toml").write_text(twin.replace(name, f"name = {json.dumps(IN_FILES)}"), encoding="utf-8")
    source = resources() / "examples" / "gemm.toml"
    spec = source.read_text(encoding="utf-8").replace('name = "gemm"', f"name = {json.dumps(IN_FILES)}")
    (tmp_path / "spec.toml").write_text(spec, encoding="utf-8")
    for each in source.parent.glob("*.cu"):
        (tmp_path / each.name).write_bytes(each.read_bytes())
    return {"twin": tmp_path / "bad.toml", "spec": tmp_path / "spec.toml"}


def test_hostile_names_of_boards_kernels_sessions_and_tags(
    hostile_files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], own_data_folder: Path
) -> None:
    board = ["--gpu", f"simulated:{hostile_files['twin']}"]
    commands = [
        ["tune", str(hostile_files["spec"]), *board, "--max-evaluations", "5"],
        ["monitor", *board, "--duration", "0.1"],
        ["fit", *board, "--points", "4"],
        ["apply", *board, "--clock", "900", "--keep"],
        ["characterise", *board, "--show"],
        ["twin", str(hostile_files["twin"]), "--truth"],
        ["twin", HOSTILE],
        ["tune", HOSTILE.replace("\x00", "")],
        ["analyse", "1"],
        ["sessions"],
        ["export", "1", "--out", str(tmp_path / "out"), "--force"],
        ["report", "1", "--out", str(tmp_path / "r.html"), "--force"],
        ["compare", "1", "1"],
    ]
    for command in commands:
        for as_json in (False, True):
            status = main([*command, *(["--json"] if as_json else [])])
            out, err = capsys.readouterr()
            assert status == (2 if HOSTILE[:4] in command[-1] else 1 if command[0] == "characterise" else 0), (
                command,
                err,
            )
            assert is_harmless(out), command
            assert is_harmless(err), command
            assert "fault in Wattridge" not in err, err
            if as_json:
                json.loads(out)
            assert not any(line.startswith("forged") for line in (out + err).splitlines()), command
        if command[0] == "tune" and len(command) > 2:
            with Store() as store:
                path = store.path
            with closing(sqlite3.connect(path)) as db, db:
                tags = json.dumps([HOSTILE])
                db.execute("UPDATE sessions SET name = ?, tags = ?, notes = ?", (IN_FILES, tags, IN_FILES))


# --- widths -----------------------------------------------------------------------------------------------------------


@given(
    columns=st.integers(1, 9),
    width=st.integers(20, 200),
    cells=st.lists(st.text("abcdefgh", max_size=60) | st.integers(0, 10**9), min_size=9, max_size=9),
)
def test_no_line_of_a_table_is_longer_than_columns(columns: int, width: int, cells: list[object]) -> None:
    import contextlib
    import io
    import os

    header = [f"column{i}" for i in range(columns)]
    out = io.StringIO()
    os.environ["COLUMNS"] = str(width)
    try:
        with contextlib.redirect_stdout(out):
            print_table([cells[:columns], cells[:columns]], header)
    finally:
        del os.environ["COLUMNS"]
    assert max(map(len, out.getvalue().splitlines())) <= width
    for name in header:
        assert name in out.getvalue()  # a column that does not fit follows below
    for cell in cells[:columns]:
        if isinstance(cell, int):
            assert str(cell) in out.getvalue()  # figures are never cut


def test_without_columns_and_terminal_a_table_is_as_wide_as_its_content(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([["x" * 500, 1]], ["words", "n"])
    assert "x" * 500 in capsys.readouterr().out


@pytest.mark.parametrize("words", [["gpus"], ["twin", "a100", "--truth"], ["strategies"]])
def test_commands_respect_columns(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert main(words) == 0
    table = [line for line in capsys.readouterr().out.splitlines() if "─" in line]
    assert table
    assert max(map(len, table)) <= 60
