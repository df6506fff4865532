"""`wattridge new`: a specification of a kernel, printed or written; guesses go to standard error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.paths import resources
from app.cli import main
from app.engine.session.load import load_specification

KERNEL = resources() / "kernels" / "n_body.cu"


def test_what_is_written_is_a_specification_for_that_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "mine.toml"
    assert main(["new", str(KERNEL), "--out", str(out)]) == 0
    spec = load_specification(out)
    assert spec.kernel is not None
    assert spec.kernel.sources == (KERNEL.resolve(),)
    said = capsys.readouterr()
    assert said.out == ""
    assert "guessed: " in said.err
    assert "fill in: " in said.err
    assert main(["new", str(KERNEL), "--out", str(out)]) == 1, "nothing is overwritten"


def test_the_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", str(KERNEL), "--kernel", "n_body_reference", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kernel"] == "n_body_reference"
    assert found["kernels"] == ["n_body", "n_body_reference"]
    assert "[parameters]" in found["specification"]
    assert found["guessed"]


def test_an_unknown_kernel_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", str(KERNEL), "--kernel", "nothing"]) == 2
    assert "known: n_body, n_body_reference" in capsys.readouterr().err
