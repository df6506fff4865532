"""A board that sleeps is listed as asleep, and nothing wakes it before the user names it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.fake_pynvml import Board, FakePynvml, sampled_board
from fixtures.staged_pci import AMD, put_device

sys.path.insert(0, str(Path(__file__).parents[1] / "nvml"))
from boards import StandIn
from fixtures.stand_in_fixtures import boards  # noqa: F401

from app.base.errors import InputError
from app.cli import main
from app.sensors.gpu import Gpu
from app.sensors.nvml.library import LIBRARY
from app.sensors.pci import asleep, pci_boards
from app.sensors.select import gpu_selectors, list_gpus, open_gpu
from app.views.shared.watched_boards import is_real, watched_gpu

FIRST, SECOND = "0000:01:00.0", "0000:41:00.0"


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """The folder that every test reads in place of the machine's own."""
    return tmp_path / "sys"


@pytest.fixture
def nvidia(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakePynvml]:
    """Two boards of NVIDIA's, no nvidia-smi, and no library of AMD's."""
    module = FakePynvml(sampled_board(), Board(name="NVIDIA A100", uuid="GPU-22222222-0000", pci=f"0000{SECOND}"))
    monkeypatch.setitem(sys.modules, "pynvml", module)
    monkeypatch.setattr("app.sensors.amd.library.places", lambda: iter(()))
    monkeypatch.setattr("app.sensors.nvml.channels.shutil.which", lambda *program, **where: None)
    LIBRARY.close()
    yield module
    LIBRARY.close()


@pytest.fixture
def opened() -> Iterator[list[Gpu]]:
    gpus: list[Gpu] = []
    yield gpus
    for gpu in gpus:
        gpu.close()


def test_the_gpus_on_the_bus_are_told_from_other_devices(sysfs: Path) -> None:
    put_device(sysfs, FIRST, kind="0x030000", status="active")
    put_device(sysfs, SECOND)
    put_device(sysfs, "0000:01:00.1", kind="0x040300")  # the first one's sound
    put_device(sysfs, "0000:81:00.0", vendor=AMD, kind="0x120000")
    put_device(sysfs, "0000:82:00.0", vendor="0x8086", kind="0x030000")
    assert [(board.address, board.asleep) for board in pci_boards("nvml")] == [(FIRST, False), (SECOND, True)]
    assert [(board.selector, board.name) for board in asleep()] == [
        (f"pci:{SECOND}", "NVIDIA GPU"),
        ("pci:0000:81:00.0", "AMD GPU"),
    ]
    (sysfs / "bus/pci/devices" / FIRST / "power/runtime_status").unlink()  # kernels without runtime power management
    assert [board.asleep for board in pci_boards("nvml")] == [False, True]


def test_where_every_board_sleeps_the_library_is_not_loaded(
    sysfs: Path, nvidia: FakePynvml, opened: list[Gpu], capsys: pytest.CaptureFixture[str]
) -> None:
    put_device(sysfs, FIRST)
    put_device(sysfs, SECOND)
    labels = dict(gpu_selectors())
    assert labels[f"pci:{FIRST}"] == f"{FIRST}: NVIDIA GPU (asleep)"
    assert list_gpus() == []
    with pytest.raises(InputError, match="sleeps, and is not woken unasked") as refused:
        open_gpu()
    assert f"pci:{FIRST}" in refused.value.remedy
    assert watched_gpu(None).info.source == "simulated", "a window opens all the same"
    assert main(["gpus", "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out) == [
        {"uuid": f"pci:{address}", "name": "NVIDIA GPU", "source": "nvml", "asleep": True}
        for address in (FIRST, SECOND)
    ]
    assert main(["gpus"]) == 0
    shown = capsys.readouterr()
    assert f"asleep; woken by --gpu pci:{FIRST}" in shown.out
    assert "simulated" not in shown.out + shown.err
    assert nvidia.initialised == 0


def test_one_that_is_named_is_woken_alone(sysfs: Path, nvidia: FakePynvml, opened: list[Gpu]) -> None:
    put_device(sysfs, FIRST)
    put_device(sysfs, SECOND)
    opened.append(open_gpu(f"pci:{SECOND}"))
    assert opened[0].info.name == "NVIDIA A100"
    assert nvidia.boards[0].calls == {}
    assert [label for _, label in gpu_selectors()[:2]] == ["1: NVIDIA A100", f"{FIRST}: NVIDIA GPU (asleep)"]


@pytest.mark.parametrize("selector", ["0", "GPU-11111111"])
def test_naming_it_by_index_or_uuid_wakes_it_too(
    sysfs: Path, nvidia: FakePynvml, opened: list[Gpu], selector: str
) -> None:
    put_device(sysfs, FIRST)
    put_device(sysfs, SECOND, status="active")
    opened.append(open_gpu(selector))
    assert opened[0].info.name == "NVIDIA H200"


def test_the_others_are_opened_and_it_is_not(
    sysfs: Path, nvidia: FakePynvml, opened: list[Gpu], capsys: pytest.CaptureFixture[str]
) -> None:
    put_device(sysfs, FIRST)
    put_device(sysfs, SECOND, status="active")
    opened.append(open_gpu())
    opened += list_gpus()
    opened.append(open_gpu("1"))
    assert [(gpu.info.index, gpu.info.name) for gpu in opened] == [(1, "NVIDIA A100")] * 3
    assert main(["gpus", "--json"]) == 0
    awake, rests = json.loads(capsys.readouterr().out)
    assert (awake["name"], rests["asleep"]) == ("NVIDIA A100", True)
    assert nvidia.boards[0].calls == {}


def test_a_window_does_not_take_it_for_a_board_that_is_watched_of_itself(sysfs: Path, nvidia: FakePynvml) -> None:
    put_device(sysfs, FIRST)
    put_device(sysfs, SECOND, status="active")
    selectors = [selector for selector, _ in gpu_selectors()]
    assert [selector for selector in selectors if is_real(selector)] == ["GPU-22222222-0000"]
    assert f"pci:{FIRST}" in selectors, "it can be chosen"


def test_an_address_where_no_gpu_is_is_bad_input(sysfs: Path, nvidia: FakePynvml) -> None:
    put_device(sysfs, FIRST)
    with pytest.raises(InputError, match=r"no GPU answers at 0000:99:00\.0"):
        open_gpu("pci:0000:99:00.0")
    assert nvidia.initialised == 0


def test_a_board_of_amds_that_sleeps_is_not_asked_either(
    sysfs: Path,
    boards: Callable[..., StandIn],  # noqa: F811
    opened: list[Gpu],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stand_in = boards("mi210", "mi210")
    stand_in.fault("amdsmi_get_gpu_device_uuid", 15, board=0, times=1)  # whoever asks the first one uses it up
    put_device(sysfs, SECOND, vendor=AMD, kind="0x038000")  # another kind of controller is not looked at
    put_device(sysfs, SECOND, vendor=AMD, kind="0x030000")
    put_device(sysfs, "0000:42:00.0", vendor=AMD, kind="0x030000", status="active")
    opened.append(open_gpu())
    assert opened[0].info.uuid == stand_in.uuids[1]
    assert [selector for selector, label in gpu_selectors() if "asleep" in label] == [f"pci:{SECOND}"]
    assert stand_in.is_faulty("amdsmi_get_gpu_device_uuid"), "nobody has asked it"
    stand_in.no_faults()
    opened.append(open_gpu(f"pci:{SECOND}"))
    assert opened[1].info.uuid == stand_in.uuids[0]


def test_where_every_board_of_amds_sleeps_their_library_is_not_loaded(
    sysfs: Path, nvidia: FakePynvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_device(sysfs, SECOND, vendor=AMD, kind="0x030000")
    put_device(sysfs, FIRST)
    monkeypatch.setattr("app.sensors.amd.library.places", lambda: pytest.fail("it is loaded"))
    assert [selector for selector, label in gpu_selectors() if "asleep" in label] == [f"pci:{FIRST}", f"pci:{SECOND}"]
