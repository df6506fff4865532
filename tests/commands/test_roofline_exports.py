"""Every export of a roofline's sweep states the same points, and the same roofline comes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.base.paths import resources
from app.cli import main
from app.engine.formats.read import read_recording
from app.engine.results.measurement import Measurement


def points(path: Path) -> dict[tuple[object, ...], dict[str, Any]]:
    """By configuration, everything that a file states of a measurement; NaN as null, so that it equals itself."""
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    each: Measurement
    for each in read_recording(path).in_file_order():
        stated = {name: getattr(each, name) for name in each.__slots__ if name not in ("row", "configuration")}
        found[tuple(each.configuration.items())] = {n: v if v == v else None for n, v in stated.items()}
    return found


def roofline(path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["roofline", str(path), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("precision", ["fp32", "bf16_tensor"])
def test_csv_cache_and_t4_of_a_roofline_state_the_same_points_and_figures(
    precision: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = resources() / "recordings" / f"h200-roofline-{precision}.json.gz"
    kinds = [word for kind in ("csv", "cache", "t4") for word in ("--kind", kind)]
    assert main(["export", str(recording), *kinds, "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    expected, figures = points(recording), roofline(recording, capsys)
    assert len(expected) > 50
    assert figures["precisions"][precision]["points"] > 10
    files = sorted(path for path in tmp_path.iterdir() if path.name != "receipt.json")
    assert len(files) == 3
    for file in files:
        assert points(file) == expected, file.name
        assert roofline(file, capsys) == figures, file.name
