"""What the program keeps of boards lies where every version has kept it, and damage counts as nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.base.board_files import BoardFiles

UUID = "GPU-5d2aE0f4-0000-1111-2222-333344445555"
GAINS = BoardFiles("gains", (2, 1), most_bytes=200)


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATTRIDGE_DATA", str(tmp_path))


@pytest.mark.parametrize(
    ("folder", "name", "key", "suffix", "file"),
    [
        ("gains", UUID, "", "", "gpu-5d2ae0f4-0000-1111-2222-333344445555-9a82b12c.json"),
        ("boards", UUID, "", "", "gpu-5d2ae0f4-0000-1111-2222-333344445555-9a82b12c.json"),
        (
            "characterisations",
            "NVIDIA H200, simulated 570.1",
            f"{UUID}\x00570.1",
            "",
            "nvidia-h200-simulated-570-1-8b70ab1c.json",
        ),
        ("energy-models", "NVIDIA H200", "", "-9033bb6bd90e", "nvidia-h200-84ff98ac-9033bb6bd90e.json"),
    ],
)
def test_files_have_the_names_of_earlier_versions(
    tmp_path: Path, folder: str, name: str, key: str, suffix: str, file: str
) -> None:
    assert BoardFiles(folder, (1,)).path(name, key, suffix) == tmp_path / folder / file


def test_a_document_comes_back_with_the_version_and_an_older_one_is_read() -> None:
    written = GAINS.keep(GAINS.path("A"), {"gain": 1.03})
    assert GAINS.read(written, lambda document: document) == {"version": 2, "gain": 1.03}
    GAINS.path("B").write_text('{"version": 1, "gain": 0.98}')
    assert sorted(GAINS.all(lambda document: document["gain"])) == [0.98, 1.03]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"text"', "{}", '{"version": 3}', '{"version": 1}', '{"version": 1, "gain": [' + "1," * 99]
)
def test_damage_counts_as_nothing(text: str) -> None:
    def gain(document: Any) -> float:
        return float(document["gain"])

    path = GAINS.path("A")
    path.parent.mkdir()
    path.write_text(text)
    assert GAINS.read(path, gain) is None
    assert list(GAINS.all(gain)) == []
    assert GAINS.read(GAINS.path("none"), gain) is None
