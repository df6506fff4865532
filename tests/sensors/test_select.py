"""Which GPU is opened: by index, UUID, simulated or recorded name, and what is said where there is none."""

from __future__ import annotations

import json
import math
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures.fake_pynvml import LOST, Board, FakePynvml, sampled_board
from fixtures.scripted_gpu import ScriptedGpu

from app.base.errors import InputError, WattridgeError
from app.cli import main
from app.engine.runner.opencl.language import opencl_device_of
from app.sensors import select
from app.sensors.gpu import Gpu
from app.sensors.nvml.library import LIBRARY
from app.sensors.opencl import devices
from app.sensors.opencl.devices import OpenclDevice
from app.sensors.recorded.recording import RecordingWriter
from app.sensors.select import gpu_selectors, list_gpus, open_gpu


@pytest.fixture
def opened() -> Iterator[list[Gpu]]:
    gpus: list[Gpu] = []
    yield gpus
    for gpu in gpus:
        gpu.close()


@pytest.fixture(autouse=True)
def library_loaded_here() -> Iterator[None]:
    """No test sees the driver's library as another one has loaded it."""
    LIBRARY.close()
    yield
    LIBRARY.close()


def put_in(monkeypatch: pytest.MonkeyPatch, module: FakePynvml) -> None:
    """A stand-in for pynvml, no nvidia-smi, and no board of AMD's."""
    LIBRARY.close()
    monkeypatch.setattr("app.sensors.amd.library.places", lambda: iter(()))
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr("app.sensors.nvml.channels.shutil.which", lambda *program, **where: None)


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    put_in(monkeypatch, FakePynvml(driver=False))


@pytest.fixture
def two_boards(monkeypatch: pytest.MonkeyPatch) -> tuple[Board, Board]:
    boards = (sampled_board(), Board(name="NVIDIA A100", uuid="GPU-22222222-0000", pci="00000000:41:00.0"))
    put_in(monkeypatch, FakePynvml(*boards))
    return boards


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    gpu = ScriptedGpu()
    with RecordingWriter(tmp_path / "mine.csv.gz", gpu) as writer:
        for _ in range(5):
            writer.write(gpu.read())
            gpu.clock.wait(0.02)
    return tmp_path / "mine.csv.gz"


def test_without_a_driver_the_simulated_a100_is_opened_and_says_so(no_driver: None) -> None:
    gpu = open_gpu()
    assert gpu.info.source == "simulated"
    assert "A100" in gpu.info.name
    assert "simulated" in gpu.info.label


def test_with_a_driver_gpu_0_is_opened(two_boards: tuple[Board, Board], opened: list[Gpu]) -> None:
    opened.append(open_gpu())
    assert (opened[0].info.source, opened[0].info.index, opened[0].info.label) == ("nvml", 0, "NVIDIA H200")


@pytest.mark.parametrize("selector", ["1", "GPU-22222222-0000", "gpu-2222", " 1 "])
def test_a_board_is_chosen_by_index_or_uuid(two_boards: tuple[Board, Board], opened: list[Gpu], selector: str) -> None:
    opened.append(open_gpu(selector))
    assert opened[0].info.name == "NVIDIA A100"


@pytest.mark.parametrize("selector", ["2", "GPU-", "GPU-3", "gpu"])
def test_a_board_that_is_not_there_is_bad_input_that_names_what_is(
    two_boards: tuple[Board, Board], selector: str
) -> None:
    with pytest.raises(InputError) as caught:
        open_gpu(selector)
    assert "simulated:a100" in caught.value.remedy
    assert caught.value.where == "--gpu"


def test_an_index_without_a_driver_is_bad_input_and_names_the_simulated(no_driver: None) -> None:
    for selector in ("0", "3", "GPU-1234"):
        with pytest.raises(InputError, match="no GPU") as caught:
            open_gpu(selector)
        assert "simulated:h200" in caught.value.remedy


@pytest.mark.parametrize("name", ["simulated:h200", "Simulated:H200", "simulated:titan-rtx", "simulated:Titan RTX"])
def test_a_simulated_board_is_chosen_by_name(name: str) -> None:
    assert open_gpu(name, seed=7).info.source == "simulated"


def test_a_recording_is_chosen_by_file_and_runs_at_any_speed(recording: Path) -> None:
    gpu = open_gpu(f"recorded:{recording}", speed=math.inf)
    assert gpu.info.source == "recorded"
    assert gpu.clock.speed == math.inf


def test_a_recording_that_comes_with_the_program_is_chosen_by_name(
    recording: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "recordings").mkdir()
    recording.rename(tmp_path / "recordings" / "mine.csv.gz")
    monkeypatch.setattr(select, "resources", lambda: tmp_path)
    assert open_gpu("recorded:mine").info.uuid == "recorded:mine"
    with pytest.raises(InputError) as caught:
        open_gpu("recorded:theirs")
    assert "mine" in caught.value.remedy


@pytest.mark.parametrize("selector", ["simulated:gtx9999", "simulated:missing.toml", "recorded:nothing", "recorded:"])
def test_what_is_not_there_is_bad_input_with_a_remedy(selector: str) -> None:
    with pytest.raises(InputError) as caught:
        open_gpu(selector)
    assert caught.value.remedy


def test_a_real_board_has_its_own_speed(two_boards: tuple[Board, Board]) -> None:
    with pytest.raises(InputError, match="own speed"):
        open_gpu("0", speed=2.0)


@pytest.mark.parametrize("speed", [0.0, -1.0, math.nan])
def test_a_speed_that_makes_no_sense_is_bad_input(speed: float) -> None:
    with pytest.raises(InputError):
        open_gpu("simulated:a100", speed=speed)


def opencl(monkeypatch: pytest.MonkeyPatch, **tells: str) -> None:
    """OpenCL has a processor, and a GPU that tells so much of itself."""
    plain = {"platform": "P", "driver": "1", "uuid": "", "pci": ""}
    figures = {"compute_units": 4, "work_group_size": 512, "local_byte": 32768, "memory_mib": 1024.0}
    found = (
        OpenclDevice(**plain, number="0.0", name="A processor", kind="CPU", **figures),
        OpenclDevice(**{**plain, **tells}, number="1.0", name="NVIDIA A100", kind="GPU", **figures),
    )
    monkeypatch.setattr(devices, "opencl_devices", lambda: found)


@pytest.mark.parametrize(
    "tells", [{"uuid": "22222222-0000"}, {"pci": "00000000:41:00.0"}], ids=lambda tells: next(iter(tells))
)
def test_an_opencl_device_that_says_which_board_it_is_is_that_board(
    two_boards: tuple[Board, Board], opened: list[Gpu], monkeypatch: pytest.MonkeyPatch, tells: dict[str, str]
) -> None:
    opencl(monkeypatch, **tells)
    opened.append(open_gpu("opencl:a100"))
    assert (opened[0].info.source, opened[0].info.uuid) == ("nvml", two_boards[1].uuid)
    device = opencl_device_of(opened[0])
    assert device.number == "1.0"
    opened.append(open_gpu("0"))
    with pytest.raises(WattridgeError, match="no OpenCL device says that it is this board"):
        opencl_device_of(opened[1])


def test_one_that_does_not_say_it_is_timed_alone(
    two_boards: tuple[Board, Board], opened: list[Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    opencl(monkeypatch)
    opened.append(open_gpu("opencl:1"))
    assert opened[0].info.label == "NVIDIA A100 (unmetered)"
    assert {channel.available for channel in opened[0].channels} == {False}
    assert math.isnan(opened[0].read().values[0])


def test_opencl_devices_are_listed_with_where_their_energy_comes_from(
    two_boards: tuple[Board, Board], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opencl(monkeypatch, uuid="22222222-0000")
    assert main(["gpus", "--verbose", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)[0]["opencl"]
    assert [each["energy"] for each in listed] == ["no energy: this device reports none", "that of GPU 1"]


def test_every_selector_of_the_menu_opens(
    two_boards: tuple[Board, Board], opened: list[Gpu], recording: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opencl(monkeypatch)
    monkeypatch.setattr(devices, "opencl_installed", lambda: True)
    selectors = gpu_selectors()
    assert {"opencl", "host"} <= {selector for selector, _ in selectors}
    assert [label for _, label in selectors[:2]] == ["0: NVIDIA H200", "1: NVIDIA A100"]
    assert sum("(simulated)" in label for _, label in selectors) >= 6
    for selector, _ in selectors:
        opened.append(open_gpu(selector))


def test_listing_gives_real_boards_and_only_without_a_driver_the_simulated(
    two_boards: tuple[Board, Board], opened: list[Gpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened += list_gpus()
    assert [gpu.info.source for gpu in opened] == ["nvml", "nvml"]
    put_in(monkeypatch, FakePynvml(driver=False))
    simulated = list_gpus()
    assert {gpu.info.source for gpu in simulated} == {"simulated"}
    assert [gpu.info.index for gpu in simulated] == list(range(len(simulated)))


def test_a_lost_board_does_not_hide_the_others(two_boards: tuple[Board, Board], opened: list[Gpu]) -> None:
    two_boards[0].failing["everything"] = LOST
    opened += list_gpus()
    assert [gpu.info.name for gpu in opened] == ["NVIDIA A100"]


def test_the_simulated_boards_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gpu_selectors()
    monkeypatch.setattr(tomllib, "loads", lambda text: pytest.fail(f"again:\n{text}"))
    assert gpu_selectors() == before
