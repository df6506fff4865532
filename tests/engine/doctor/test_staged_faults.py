"""Each fault that a machine can have, staged with a stand-in: the check names it, and says the remedy for it."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from app.base.installation import how_to_add
from app.base.processes import stop_on_interrupt
from app.engine.control import client, installing
from app.engine.doctor import boards, installation
from app.engine.doctor.checks import BY_NAME, found_by
from app.engine.doctor.examine import examine
from app.engine.doctor.finding import Finding, State
from app.engine.runner.cuda import toolchain as toolchains
from app.engine.runner.cuda.toolchain import Toolchain
from app.engine.runner.profiling.ncu import counters_refused
from app.sensors.nvml import library as nvml
from app.sensors.opencl import devices as opencl


@pytest.fixture
def board_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has a board of NVIDIA's."""
    monkeypatch.setattr(boards, "has_board", lambda vendor, *_: vendor == boards.NVIDIA)


@pytest.fixture
def no_board(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards, "has_board", lambda *_: False)


class _NvmlError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


def _nvml(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
    """A driver's library that answers so; a number raises that error."""

    def entry(answer: Any) -> Callable[..., Any]:
        def call(*_: Any) -> Any:
            if isinstance(answer, int) and not isinstance(answer, bool) and answer < 0:
                raise _NvmlError(-answer)
            return answer

        return call

    module = types.SimpleNamespace(NVMLError=_NvmlError, nvmlShutdown=lambda: None)
    for name, answer in {"nvmlInit": None, **answers}.items():
        setattr(module, name, entry(answer))
    stand_in = nvml.NvmlLibrary(module)  # type: ignore[arg-type]
    monkeypatch.setattr(boards, "LIBRARY", stand_in)


def _wrong(found: Finding, *words: str) -> None:
    assert found.state is State.WRONG, found
    assert all(word in f"{found.what} -> {found.remedy}" for word in words), found


def _missing(found: Finding, *words: str) -> None:
    assert found.state is State.MISSING, found
    assert all(word in f"{found.what} -> {found.remedy}" for word in words), found


# --- the driver -------------------------------------------------------------------------------------------------------


def test_a_board_without_a_driver_is_wrong_and_a_machine_without_either_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    _nvml(monkeypatch, nvmlInit=-9)
    monkeypatch.setattr(boards, "has_board", lambda *_: True)
    _wrong(found_by("nvidia_driver"), "the NVIDIA driver is not loaded", "sudo modprobe nvidia", "--gpus all")
    monkeypatch.setattr(boards, "has_board", lambda *_: False)
    _missing(found_by("nvidia_driver"), "no driver answers", "simulated:a100")


def test_a_driver_of_another_version_than_its_library_needs_a_reboot(
    monkeypatch: pytest.MonkeyPatch, board_here: None
) -> None:
    _nvml(monkeypatch, nvmlInit=-18)
    _wrong(found_by("nvidia_driver"), "of different versions", "reboot")


def test_a_board_that_the_driver_refuses_to_this_user_is_named(
    monkeypatch: pytest.MonkeyPatch, board_here: None
) -> None:
    _nvml(monkeypatch, nvmlDeviceGetCount=1, nvmlSystemGetDriverVersion=b"575.57", nvmlDeviceGetHandleByIndex=-4)
    _wrong(found_by("nvidia_driver"), "1 of 1 boards", "refuses this to the present user", "/dev/nvidia")


def test_a_driver_that_shows_all_its_boards_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    _nvml(monkeypatch, nvmlDeviceGetCount=2, nvmlSystemGetDriverVersion="575.57", nvmlDeviceGetHandleByIndex=object())
    found = found_by("nvidia_driver")
    assert (found.state, found.what) == (State.OK, "driver 575.57, 2 boards")


def test_boards_are_found_by_what_the_system_says_of_its_bus(tmp_path: Path) -> None:
    for name, vendor, kind in (("a", "0x10de", "0x030200"), ("b", "0x1002", "0x040300"), ("c", "0x8086", "0x030000")):
        device = tmp_path / "sys/bus/pci/devices" / name
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text(f"{kind}\n")
    assert boards.has_board(boards.NVIDIA, tmp_path)
    assert not boards.has_board(boards.AMD, tmp_path)  # b is its sound


@pytest.mark.skipif(os.name != "posix", reason="device files")
def test_device_files_that_the_user_may_not_open_name_the_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, board_here: None
) -> None:
    control = tmp_path / "nvidiactl"
    control.touch()
    monkeypatch.setattr(boards, "_DEVICES", (str(control),))
    monkeypatch.setattr(boards, "_group_of", lambda _: "video")
    monkeypatch.setattr(os, "access", lambda path, *_, **__: str(path) != str(control))
    _wrong(found_by("nvidia_devices"), str(control), "usermod -aG video")
    control.unlink()
    _missing(found_by("nvidia_devices"), "not there", "container")


# --- the helper -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="the helper is for Linux")
def test_a_helper_that_is_not_installed_is_missing_only_where_there_is_a_board(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, board_here: None
) -> None:
    nowhere = tmp_path / "wattridge"
    for module in (installing, client):
        monkeypatch.setattr(module, "LIBRARY", nowhere)
    monkeypatch.setattr(os, "geteuid", lambda: 65534)
    _missing(found_by("helper"), "installed once", "wattridge helper install")
    monkeypatch.setattr(boards, "has_board", lambda *_: False)
    assert found_by("helper").state is State.OK


@pytest.mark.skipif(os.name != "posix", reason="the helper is for Linux")
def test_a_helper_that_others_than_root_can_change_is_wrong(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    library = tmp_path / "wattridge"
    library.mkdir()
    if os.geteuid() == 0:
        os.chown(library, 65534, 65534)
    for module in (installing, client):
        monkeypatch.setattr(module, "LIBRARY", library)
    _wrong(found_by("helper"), "may not run as root", "belongs to user", "wattridge helper install")


# --- CUDA -------------------------------------------------------------------------------------------------------------


def test_no_compiler_at_all(monkeypatch: pytest.MonkeyPatch, board_here: None) -> None:
    monkeypatch.setattr(toolchains, "_nvcc", lambda: None)
    monkeypatch.setattr(toolchains.nvrtc, "library_version", lambda: None)
    toolchains.find_toolchain.cache_clear()
    try:
        _missing(found_by("cuda_compiler"), "no CUDA compiler was found", how_to_add("cuda"))
    finally:
        toolchains.find_toolchain.cache_clear()


def _compiler(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    command = (sys.executable, "-I", "-c", program)
    monkeypatch.setattr(boards, "find_toolchain", lambda: Toolchain(command, "NVRTC 12.9"))


def test_nvrtc_without_headers_names_the_packages_that_bring_them(monkeypatch: pytest.MonkeyPatch) -> None:
    said = 'kernel.cu(1): catastrophic error: cannot open source file "cuda_fp16.h"'
    _compiler(monkeypatch, f"import sys; print({said!r}); sys.exit(1)")
    _wrong(found_by("cuda_compiler"), "NVRTC 12.9 has no headers", "cannot open source file", how_to_add("cuda"))


def test_a_compiler_that_fails_is_quoted_and_one_that_works_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    _compiler(monkeypatch, "import sys; print('fatal error: no host compiler'); sys.exit(1)")
    _wrong(found_by("cuda_compiler"), "does not compile: fatal error: no host compiler")
    _compiler(monkeypatch, "import sys; open(sys.argv[sys.argv.index('-o') + 1], 'wb').write(b'image')")
    assert found_by("cuda_compiler").state is State.OK


def test_a_stop_ends_the_trial_compile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    _compiler(monkeypatch, f"import pathlib, time; pathlib.Path({str(begun)!r}).touch(); time.sleep(600)")
    with stop_on_interrupt() as stop:

        def stop_it() -> None:
            while not begun.exists():
                time.sleep(0.01)
            stop.set()

        threading.Thread(target=stop_it, daemon=True).start()
        _wrong(found_by("cuda_compiler"), "not looked at")


@pytest.mark.skipif(os.name != "posix", reason="a program by its first line")
def test_a_stop_ends_the_compiler_of_a_check_and_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    begun, nvcc = tmp_path / "begun", tmp_path / "nvcc"
    program = (
        f"import pathlib, sys, time\npathlib.Path({str(begun)!r}).write_text(' '.join(sys.argv))\ntime.sleep(600)\n"
    )
    version = "import sys\nif '--version' in sys.argv: sys.exit(print('V12.9.1'))\n"
    nvcc.write_text(f"#!{sys.executable} -I\n{version}{program}")
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("WATTRIDGE_CUDA_COMPILER", "nvcc")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    stop = threading.Event()
    checking = threading.Thread(target=lambda: list(examine([BY_NAME["cuda_compiler"]], stop)))
    checking.start()
    while not (begun.exists() and begun.read_text()):
        time.sleep(0.01)
    stop.set()
    checking.join()
    assert not Path(begun.read_text().split()[-1]).parent.exists()


def test_bindings_that_are_newer_than_the_driver_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    library = types.SimpleNamespace(name="cuda-bindings", version="13.0.1", __str__=lambda _: "cuda-bindings 13.0.1")
    monkeypatch.setattr(boards, "find_library", lambda _: library)
    monkeypatch.setitem(sys.modules, "cuda", types.ModuleType("cuda"))
    monkeypatch.setitem(sys.modules, "cuda.bindings", types.ModuleType("cuda.bindings"))
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", types.ModuleType("cuda.bindings.driver"))
    monkeypatch.setattr(boards, "_cuda_driver", lambda: 12090)
    _wrong(found_by("cuda"), "needs a driver for CUDA 13", "is for 12.9", how_to_add("cuda"))


def test_profiling_that_is_for_administrators_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    parameters, status = tmp_path / "params", tmp_path / "status"
    parameters.write_text('RmMsg: ""\nRmProfilingAdminOnly: 1\n')
    status.write_text("CapEff:\t0000000000000000\n")
    monkeypatch.setattr(boards, "find_ncu", lambda *_: Path("ncu"))
    monkeypatch.setattr(boards, "version_of", lambda *_: "Nsight Compute 2025.1")
    monkeypatch.setattr(boards, "counters_refused", lambda: counters_refused(parameters, status))
    _wrong(found_by("profiler"), "ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0")
    status.write_text("CapEff:\t000001ffffffffff\n")
    assert found_by("profiler").state is State.OK
    parameters.write_text("RmProfilingAdminOnly: 0\n")
    status.write_text("CapEff:\t0000000000000000\n")
    assert found_by("profiler").state is State.OK
    parameters.unlink()
    assert "first profile" in found_by("profiler").what


# --- OpenCL -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def a_pyopencl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """`a_pyopencl(text)`: from now on that is the module, here and in the process that lists devices."""

    def put(text: str) -> None:
        (tmp_path / "pyopencl.py").write_text(text)
        opencl.opencl_devices.cache_clear()

    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    yield put
    opencl.opencl_devices.cache_clear()


def test_a_loader_without_devices_is_missing_a_driver(a_pyopencl: Callable[[str], None]) -> None:
    a_pyopencl("class Error(Exception): pass\ndef get_platforms(): return []\n")
    _missing(found_by("opencl"), "there is no OpenCL device", "OpenCL driver of the device")


def test_pyopencl_of_another_architecture_is_installed_again(a_pyopencl: Callable[[str], None]) -> None:
    a_pyopencl("raise ImportError('pyopencl/_cl.so: wrong ELF class: ELFCLASS32')\n")
    _wrong(found_by("opencl"), "wrong ELF class", "--force-reinstall pyopencl")


def test_a_driver_that_crashes_while_devices_are_listed_costs_one_line(a_pyopencl: Callable[[str], None]) -> None:
    a_pyopencl("import os\nos.kill(os.getpid(), 9)\n")
    _wrong(found_by("opencl"), "ended the process", "OCL_ICD_VENDORS")


# --- the window -------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="Debian's packages")
def test_a_missing_library_of_the_xcb_plugin_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QT_QPA_PLATFORM")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("app.base.installation._loads", lambda library: library != "libxcb-cursor.so.0")
    _wrong(found_by("qt"), "system libraries of Qt", "sudo apt-get install libxcb-cursor0")


@pytest.mark.skipif(sys.platform != "linux", reason="displays by environment variables")
def test_no_display_is_missing_and_one_that_does_not_answer_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("QT_QPA_PLATFORM", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    _missing(found_by("display"), "no display", "set DISPLAY")
    monkeypatch.setenv("DISPLAY", ":98765")
    monkeypatch.setenv("QT_QPA_PLATFORM", "xcb")
    ((_, found),) = examine([BY_NAME["display"]])
    _wrong(found, "crashed", "is DISPLAY")


@pytest.mark.skipif(sys.platform != "linux", reason="fontconfig")
def test_a_machine_without_fonts_would_show_boxes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    empty = tmp_path / "fonts.conf"
    empty.write_text(f'<?xml version="1.0"?><fontconfig><dir>{tmp_path}/none</dir></fontconfig>')
    monkeypatch.setenv("FONTCONFIG_FILE", str(empty))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    ((_, found),) = examine([BY_NAME["fonts"]])
    assert found.state is State.MISSING, found
    assert "apt-get install" in found.remedy


# --- the data folder --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_data_folder_that_cannot_be_written_says_why(
    monkeypatch: pytest.MonkeyPatch, own_data_folder: Path, code: int
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(installation.tempfile, "NamedTemporaryFile", refuse)
    _wrong(found_by("data"), "cannot be written", os.strerror(code), "WATTRIDGE_DATA")


def test_a_disk_that_is_nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    used = types.SimpleNamespace(free=3 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda *_: used)
    _wrong(found_by("data"), "only 3 MB are free", "WATTRIDGE_DATA")


@pytest.mark.skipif(os.name != "posix", reason="owners of files")
def test_a_data_folder_of_another_user(monkeypatch: pytest.MonkeyPatch, own_data_folder: Path) -> None:
    own_data_folder.mkdir()
    own = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    _wrong(found_by("data"), f"belongs to user {own}", "chown")


def test_a_store_that_is_no_database(own_data_folder: Path) -> None:
    own_data_folder.mkdir()
    (own_data_folder / "wattridge.sqlite").write_bytes(b"not a database, " * 512)
    _wrong(found_by("data"), "wattridge.sqlite", "damaged", ".recover")


def test_a_file_in_the_place_of_the_data_folder(own_data_folder: Path) -> None:
    own_data_folder.write_text("")
    _wrong(found_by("data"), "not a folder")


def test_a_new_machine_has_no_data_folder_and_that_is_well(own_data_folder: Path) -> None:
    found = found_by("data")
    assert found.state is State.OK
    assert "made by the first session" in found.what
    assert not own_data_folder.exists()
