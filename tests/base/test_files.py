"""What files are called, and which are not read."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from app.base import files
from app.base.errors import InputError
from app.base.files import read_text, title_of
from app.engine.specification.toml_edit import rebased
from app.engine.specification.toml_section import read_toml
from app.sensors.simulated.twin import load_twin


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_without_a_writer_a_device_and_a_socket_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="nobody writes into this pipe"):
        read_text(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for path in (tmp_path / "socket", Path("/dev/zero")):
            with pytest.raises(InputError, match="a device or a socket"):
                read_text(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PIPED_S", 0.2)
    os.mkfifo(tmp_path / "pipe")
    held = os.open(tmp_path / "pipe", os.O_RDWR)
    with pytest.raises(InputError, match="did not end"):
        read_text(tmp_path / "pipe")
    os.close(held)


DEEP = {
    "a key": "a." * 40_000 + "a = 1",
    "a table": f"[{'a.' * 40_000}a]",
    "quoted": '"a\\"" . \'b\'.' * 20_000 + "a = 1",
    "an inline table": f"x = {{ {'a.' * 40_000}a = 1 }}",
}


@pytest.mark.parametrize("case", DEEP)
def test_a_key_of_very_many_parts_is_refused_before_it_is_parsed(case: str, tmp_path: Path) -> None:
    """Parsing one of 40,000 parts takes 6 GB."""
    path = tmp_path / "deep.toml"
    path.write_text(f"# deep\n{DEEP[case]}\n")
    for read in (read_toml, lambda path: load_twin(str(path))):
        with pytest.raises(InputError, match="line 2: a key of more than 16 parts"):
            read(path)
    with pytest.raises(InputError, match="line 2: a key of more than 16 parts"):
        rebased(path.read_text(), tmp_path, tmp_path / "other")


def test_texts_and_numbers_with_many_dots_are_no_deep_keys(tmp_path: Path) -> None:
    path = tmp_path / "flat.toml"
    path.write_text(f"a = '{'.' * 100}'\nb = [{'1.5, ' * 100}]\nc.d.e.f.'g.h' = 1\n# {'... ' * 50}\n")
    assert read_toml(path)["c"]["d"]["e"]["f"]["g.h"] == 1
