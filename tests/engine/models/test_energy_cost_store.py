"""What a board's sessions learnt of energies is kept beside it, for the next shape or board."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.engine.models.energy_cost import Sample, fit, keep_model, kept_model

PARAMETERS = ("tile", "width")


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path))


def sample() -> Sample:
    rng = np.random.default_rng(1)
    return Sample(PARAMETERS, rng.integers(1, 9, (40, 2)).astype(float), 1e-3 * (1 + rng.random(40)))


def test_the_own_board_comes_first_then_the_newest_of_the_kernel() -> None:
    here, there = (fit(sample(), power_w * sample().time_s) for power_w in (100.0, 300.0))
    assert kept_model("A100", PARAMETERS) is None
    keep_model("H200", PARAMETERS, there)
    found = kept_model("A100", PARAMETERS)
    assert found is not None
    assert found.energy_j(sample()) == pytest.approx(there.energy_j(sample()))
    keep_model("A100", PARAMETERS, here)
    found = kept_model("A100", ("width", "tile"))
    assert found is not None
    assert found.energy_j(sample()) == pytest.approx(here.energy_j(sample()))
    assert kept_model("A100", ("block",)) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "parameters": ["tile", "width"]}'])
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, text: str) -> None:
    keep_model("A100", PARAMETERS, fit(sample(), 100.0 * sample().time_s))
    (kept,) = (tmp_path / "energy-models").iterdir()
    kept.write_text(text)
    assert kept_model("A100", PARAMETERS) is None
