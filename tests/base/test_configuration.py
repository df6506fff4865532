"""The configuration file: arguments win over the environment, this over the file, the file over the defaults."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.base.configuration import setting
from app.base.errors import InputError
from app.cli import make_parser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("WATTRIDGE_CONFIG", str(path))
    return path


def run(path: Path, *words: str, **environment: str) -> tuple[int, str, str]:
    variables = {**os.environ, "WATTRIDGE_CONFIG": str(path), **environment}
    done = subprocess.run(
        [sys.executable, "-m", "app", *words], cwd=ROOT, env=variables, capture_output=True, text=True
    )
    return done.returncode, done.stdout, done.stderr


def test_an_argument_wins_over_a_variable_and_this_over_the_file(configured: Path) -> None:
    configured.write_text('gpu = "simulated:h200"\n[monitor]\nduration = 0.05\nspeed = 10\n', encoding="utf-8")

    def board(*words: str, **environment: str) -> str:
        status, output, errors = run(configured, "monitor", "--json", *words, **environment)
        assert status == 0, errors
        return str(json.loads(output)["gpu"])

    assert board() == "NVIDIA H200"
    assert board(WATTRIDGE_GPU="simulated:v100").startswith("Tesla V100")
    assert board("--gpu", "simulated:a100", WATTRIDGE_GPU="simulated:v100").startswith("NVIDIA A100")
    assert board(WATTRIDGE_CONFIG="").startswith("NVIDIA A100")  # no file: the default where no driver answers


def test_a_commands_table_holds_its_options_and_the_command_line_wins(configured: Path) -> None:
    text = "[tune]\nmax_evaluations = 7\nseed = 3\nlimit = ['time_s<=1', 'power_w<=200']\n[fit]\nuniform = true\n"
    configured.write_text(text, encoding="utf-8")
    arguments = make_parser().parse_args(["tune", "gemm", "--seed", "5"])
    assert (arguments.max_evaluations, arguments.seed) == (7, 5)
    assert arguments.limit == ["time_s<=1", "power_w<=200"]
    assert make_parser().parse_args(["fit", "x.csv"]).uniform is True


def test_what_the_command_line_says_excludes_its_alternatives_in_the_file(configured: Path) -> None:
    configured.write_text("[tune]\nmaximise = 'GFLOPS/W'\nseed = 4\n[analyse]\nevidence = [1, 2]\n", encoding="utf-8")
    arguments = make_parser().parse_args(["tune", "gemm", "--minimise=energy_j"])
    assert (arguments.minimise, arguments.maximise, arguments.seed) == ("energy_j", None, 4)
    arguments = make_parser().parse_args(["tune", "gemm"])
    assert (arguments.minimise, arguments.maximise) == (None, "GFLOPS/W")
    assert make_parser().parse_args(["analyse"]).evidence == [1, 2]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("nonsense = 1", "'nonsense' is no setting"),
        ("data = [1]", "'data' is no setting"),
        ("data = ", "Invalid value"),
        ("[tune]\nspeed = 'fast'", "'speed': invalid"),
        ("[tune]\nmax_evaluations = true", "'max_evaluations' is True"),
        ("[tnue]\nseed = 1", "there is no command 'tnue'"),
        ("[tune]\nno_such = 1", "'no_such' is no option of `tune`"),
        ("[tune]\nallow_control = true", "'allow_control' is said on the command line, each time"),
        ("[tune]\njson = true", "'json' is said on the command line, each time"),
    ],
)
def test_what_is_wrong_in_it_is_one_line_with_the_file(configured: Path, text: str, part: str) -> None:
    configured.write_text(text, encoding="utf-8")
    status, _, errors = run(configured, "tune", "gemm", "--gpu", "simulated:a100", WATTRIDGE_DATA="")
    assert status == 2
    assert part in errors
    assert str(configured) in errors
    assert errors.count("\n") == 1


def test_a_file_that_is_named_must_be_there(configured: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        setting("WATTRIDGE_DATA_OF_NOBODY")


def test_it_is_found_in_the_users_folder_of_configurations(tmp_path: Path) -> None:
    folder = tmp_path / "wattridge"
    folder.mkdir()
    (folder / "config.toml").write_text(f'data = "{tmp_path}/sessions"\n', encoding="utf-8")
    code = "from app.base.paths import data_folder; print(data_folder())"
    variables = {k: v for k, v in os.environ.items() if k not in ("WATTRIDGE_DATA", "WATTRIDGE_CONFIG")}
    variables["XDG_CONFIG_HOME"] = str(tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=variables, capture_output=True, text=True)
    assert done.stdout.strip() == f"{tmp_path}/sessions"


def test_read_only_stands_in_the_file_too(configured: Path) -> None:
    from app.engine.control.client import read_only

    configured.write_text("read_only = true\n", encoding="utf-8")
    assert read_only()


def test_what_happens_is_logged_to_the_file_that_is_named_and_to_a_scripts_own_handlers(
    tmp_path: Path, configured: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log.txt"
    configured.write_text(f'log = "{log}"\n', encoding="utf-8")
    words = ("tune", "dot", "--gpu", "simulated:a100", "--speed", "inf", "--max-evaluations", "3")
    status, _, errors = run(configured, *words, WATTRIDGE_DATA=str(tmp_path / "data"))
    assert status == 0, errors
    text = log.read_text(encoding="utf-8")
    assert "DEBUG wattridge: wattridge tune dot" in text
    assert "on NVIDIA A100" in text
    assert "(simulated)" in text
    assert "session 1 done: 3 configurations" in text
    configured.write_text("", encoding="utf-8")
    import app

    with caplog.at_level(logging.INFO, "wattridge"):
        app.tune(lambda n: n, {"n": [1, 2]}, minimise="time_s", gpu="host", quiet=True)
    assert any("2 configurations" in record.message for record in caplog.records)
