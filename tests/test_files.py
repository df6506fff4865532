"""What files are called."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.files import title_of


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("gemm.json", "gemm"),
        ("gemm.csv.gz", "gemm"),
        ("run.1.csv", "run.1"),
        ("2026.11.23.json.gz", "2026.11.23"),
        ("power.csv.gz.part", "power"),
        ("A100.40GB", "A100.40GB"),
        (".json", ".json"),
        ("x", "x"),
    ],
)
def test_a_title_is_the_name_without_the_endings_of_formats(name: str, title: str) -> None:
    assert title_of(Path("some.folder") / name) == title
