"""`doctor --bundle`: one file for a report, from which a test can be made, and nothing in it names anybody."""

from __future__ import annotations

import getpass
import gzip
import json
import math
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "nvml"))
from fixtures.stand_in_fixtures import Boards, boards  # noqa: F401

from app.base.paths import resources
from app.base.text import nameless, names_of_this_machine
from app.cli import main
from app.engine.doctor.bundle import write_bundle
from app.engine.doctor.checks import BY_NAME
from app.engine.doctor.examine import examine
from app.engine.doctor.finding import ok
from app.sensors.channel import CHANNELS
from app.sensors.gpu import Gpu, GpuLost
from app.sensors.recorded.gpu import RecordedGpu
from app.sensors.recorded.recording import read_recording
from app.sensors.select import open_gpu

SERIAL = "0324K19-00001"  # the stand-in's first board


@pytest.fixture
def named_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine and a user with names."""
    monkeypatch.setattr(socket, "gethostname", lambda: "node-7.example.org")
    monkeypatch.setattr(getpass, "getuser", lambda: "ada")
    names_of_this_machine.cache_clear()
    yield
    names_of_this_machine.cache_clear()


def unpacked(bundle: Path) -> dict[str, bytes]:
    """Every file of a bundle, recordings as text."""
    with ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return {name: gzip.decompress(data) if name.endswith(".gz") else data for name, data in files.items()}


def recording_in(bundle: Path, folder: Path, name: str = "board-0.csv.gz") -> RecordedGpu:
    with ZipFile(bundle) as archive:
        archive.extract(name, folder)
    return RecordedGpu(read_recording(folder / name))


def test_every_board_is_recorded_with_its_driver_channels_clocks_and_limits(boards: Boards, tmp_path: Path) -> None:  # noqa: F811
    boards("h200", "old")
    listed = write_bundle(tmp_path / "b.zip", [], duration_s=0.4)
    assert [board["file"] for board in listed] == ["board-0.csv.gz", "board-1.csv.gz"]
    for index, each in enumerate(listed):
        real, again = open_gpu(str(index)), recording_in(tmp_path / "b.zip", tmp_path, each["file"])
        assert (again.info.name, again.info.driver) == (real.info.name, real.info.driver)
        assert again.info.power_limit.maximum_w == real.info.power_limit.maximum_w
        assert list(again.graphics_clocks_mhz()) == list(real.graphics_clocks_mhz()) != []
        assert list(again.memory_clocks_mhz()) == list(real.memory_clocks_mhz()) != []
        absent = [(channel.name, channel.unavailable) for channel in real.channels if not channel.available]
        assert [(c.name, c.unavailable) for c in again.channels if not c.available] == absent
        power_w = dict(zip(CHANNELS, again.read().values, strict=True))["power_limit_w"]
        assert power_w == real.info.power_limit.current_w
        real.close()


@pytest.mark.usefixtures("named_machine")
def test_nothing_in_it_names_board_machine_or_user(boards: Boards, tmp_path: Path) -> None:  # noqa: F811
    stand_in = boards("h200", "mi210")
    stand_in.boards[0].name = f"NVIDIA H200 {SERIAL}".encode()
    found = list(examine([BY_NAME["nvidia_driver"], BY_NAME["sensors"]]))
    assert SERIAL in found[1][1].what
    names = [*stand_in.uuids, SERIAL, "0000:3b:00.0", "node-7.example.org", str(Path.home()), "1652923012345"]
    told = ok(f"it says: {', '.join(names)}", named=names)
    write_bundle(tmp_path / "b.zip", [*found, (BY_NAME["data"], told)], duration_s=0.2)
    files = unpacked(tmp_path / "b.zip")
    assert {"README.txt", "doctor.json", "board-0.csv.gz", "board-1.csv.gz"} == set(files)
    for content in files.values():
        text = content.decode().lower()
        assert not [name for name in names if name.lower() in text]
    assert "NVIDIA H200 …" in files["board-0.csv.gz"].decode()
    assert json.loads(files["doctor.json"])["checks"][1]["what"].startswith("NVIDIA H200 …")


def test_a_twin_with_a_serial_number_is_recorded_without_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (resources() / "twins" / "a100.toml").read_text(encoding="utf-8")
    twin, bundle = tmp_path / "twin.toml", tmp_path / "b.zip"
    twin.write_text(text.replace("NVIDIA A100-PCIE-40GB", "NVIDIA A100 serial number 1652923012345"), encoding="utf-8")
    assert main(["doctor", "program", "--bundle", str(bundle), "--gpu", f"simulated:{twin}"]) == 0
    assert "1 recording" in capsys.readouterr().out
    assert not [name for name, content in unpacked(bundle).items() if b"1652923012345" in content]
    again = recording_in(bundle, tmp_path)
    assert again.info.name == "NVIDIA A100 …, simulated"
    assert again.length_s > 4.0
    assert math.isfinite(again.energy_j())


def test_a_board_that_does_not_open_is_named_with_the_reason_and_the_others_are_recorded(
    boards: Boards,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = boards("h200", "a100").uuids[0]

    def opened(selector: str) -> Gpu:
        if selector == gone:
            raise GpuLost(f"{gone} fell off the bus")
        return open_gpu(selector)

    monkeypatch.setattr("app.engine.doctor.bundle.open_gpu", opened)
    listed = write_bundle(tmp_path / "b.zip", [], duration_s=0.2)
    assert listed == [{"error": "… fell off the bus"}, {"file": "board-1.csv.gz"}]
    assert json.loads(unpacked(tmp_path / "b.zip")["doctor.json"])["boards"] == listed


def test_the_same_readings_make_the_same_file_and_none_is_replaced_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = [(BY_NAME["fonts"], ok("3 fonts", count=3))]
    monkeypatch.setattr("app.engine.doctor.bundle.real_boards", list)
    monkeypatch.setattr("app.engine.doctor.bundle.amd_boards", list)
    assert write_bundle(Path("a.zip"), found) == write_bundle(Path("b.zip"), found) == []
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes()
    assert main(["doctor", "program", "--bundle", "a.zip"]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["doctor", "--bundle", "program"]) == 2
    assert "ZIP" in capsys.readouterr().err
    assert not Path("program").exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("driver 550.54.14, 81559 MiB, 12:30:05, 1980 MHz", None),
        ("NVIDIA H200 at 0000:3B:00.0", "NVIDIA H200 at …"),
        ("board 3b:00.0 of 2", "board … of 2"),
        ("GPU-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0 is lost", "GPU-… is lost"),
        ("0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "…"),
        ("S/N: 0324K19001, fan 3", "…, fan 3"),
        ("12.345678901234 W", None),
    ],
)
def test_names_go_and_figures_stay(text: str, shown: str | None) -> None:
    assert nameless(text) == (text if shown is None else shown)


@pytest.mark.usefixtures("named_machine")
def test_the_user_and_the_machine_are_named_nowhere() -> None:
    said = nameless("/scratch/ada/x on node-7 (node-7.example.org), node-71, Canada")
    assert said == "/scratch/…/x on … (…), node-71, Canada"
