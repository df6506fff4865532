"""Selection of a GPU by `--gpu` and by the window's menu, and the PCI address of a real board."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Callable
from pathlib import Path

from ..base.configuration import setting
from ..base.errors import InputError
from ..base.paths import resources
from .clock import make_clock
from .gpu import Gpu, NoDriver, SensorError, Source
from .pci import PCI, asleep, pci_boards, wake
from .remote.address import SCHEME, parse_address

DEFAULT_TWIN = "a100"  # opened where no driver answers
Listed = tuple[int, str, str]  # index, UUID, name of a real board
_SIMULATED, _RECORDED = "simulated:", "recorded:"
OPENCL = "opencl"  # the first device of OpenCL; with ":NAME" or ":NUMBER" another one
AMD = "amd"  # the first AMD board; with ":INDEX" another one; by UUID too
HOST = "host"  # the processor of this computer, for functions in C, C++ and Fortran
_BARE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")  # a Jetson's UUID has no "GPU-" before it
_AMD_REMEDY = "install ROCm's amd-smi-lib, whose libamd_smi.so is asked"
_SPEED_REMEDY = "only simulated and recorded GPUs run faster than the wall clock; leave the speed at 1"


def open_gpu(
    selector: str | None = None,
    *,
    seed: int = 0,
    speed: float = 1.0,
    voltage: bool = True,
    remote: bool = False,
    give_up: threading.Event | None = None,
) -> Gpu:
    """Open INDEX, amd:INDEX, a UUID, pci:ADDRESS, simulated:NAME|FILE.toml, recorded:NAME|FILE, opencl:NAME or host.

    With `remote` also ssh://[user@]host[/index], a board of another machine, to be looked at and set: the caller runs
    nothing on it, and has the selector from the user, not from a file. Setting `give_up` ends its opening.

    INDEX alone is NVIDIA's, or AMD's where there are no others. None is what the user has configured (`gpu` in the
    file, or WATTRIDGE_GPU), else the first GPU of either that does not sleep, or the simulated A100 where no driver
    answers; a board that sleeps is woken where it is named. `seed` is the simulated sensors' noise, `speed` the seconds
    of the GPU's clock per second (inf: as fast as it can be computed); they mean nothing for a real board. `voltage`
    False leaves nvidia-smi alone, which opens sooner and costs nothing later.
    Raises InputError that names what there is, and SensorError if a real board does not open.
    """
    if not speed > 0 or math.isnan(speed):
        raise InputError(f"a speed of {speed} makes no sense", "--speed", "a positive number, 1 for real time")
    text = (selector or setting("WATTRIDGE_GPU")).strip()
    if text.lower().startswith(_SIMULATED):
        return _open_simulated(text[len(_SIMULATED) :], seed, speed)
    if text.lower().startswith(_RECORDED):
        return _open_recorded(text[len(_RECORDED) :], speed)
    if text and speed != 1.0 and math.isfinite(speed):  # inf is 'as fast as it can', which a real device always is
        raise InputError("a real device runs at its own speed", "--speed", _SPEED_REMEDY)
    if text.lower().startswith(SCHEME):
        return _open_remote(text, remote, give_up)
    if text.lower() == HOST:
        from .unmetered import this_processor

        return this_processor()
    if text.lower() == OPENCL or text.lower().startswith(f"{OPENCL}:"):
        return _open_opencl(text[len(OPENCL) + 1 :], voltage)
    if text.lower() == AMD or text.lower().startswith((f"{AMD}:", f"{AMD}-")):
        return _open_amd(text if text[len(AMD) :].startswith("-") else text[len(AMD) + 1 :])
    if text.lower().startswith(PCI):
        return _open_at(text[len(PCI) :].lower(), voltage)
    if text.isdigit() and not (real_boards() or asleep("nvml")) and (amd_boards() or asleep("amd")):
        return _open_amd(text)
    if text:
        return _open_real(text, voltage)
    for _, uuid, _ in (*real_boards(), *amd_boards()):
        return open_gpu(uuid, speed=speed, voltage=voltage)
    if sleeping := asleep():
        what = f"the {sleeping[0].name} at {sleeping[0].address} sleeps, and is not woken unasked"
        raise InputError(what, "--gpu", f"wake it: {sleeping[0].selector}; or {_SIMULATED}{DEFAULT_TWIN}")
    return _open_simulated(DEFAULT_TWIN, seed, speed)


def gpu_selectors() -> list[tuple[str, str]]:
    """(selector, label) of everything that can be opened: real boards, simulated ones, recordings, other devices.

    Of OpenCL's devices the first stands for all: to list them takes a process of its own.
    """
    from .opencl.devices import opencl_installed
    from .simulated.twin import load_twin, twin_names

    selectors = [(uuid, f"{index}: {name}") for index, uuid, name in real_boards()]
    selectors += [(uuid, f"{AMD}:{index}: {name}") for index, uuid, name in amd_boards()]
    selectors += [(board.selector, f"{board.address}: {board.name} (asleep)") for board in asleep()]
    selectors += [(f"{_SIMULATED}{name}", f"{load_twin(name).name} (simulated)") for name in twin_names()]
    selectors += [(f"{_RECORDED}{name}", f"{name} (recorded)") for name in _recordings()]
    selectors += [(OPENCL, "OpenCL's first device")] if opencl_installed() else []
    return [*selectors, (HOST, "this computer's processor (time only)")]


def list_gpus(*, seed: int = 0) -> list[Gpu]:
    """Every real board that does not sleep, open; the simulated ones where there is none. The caller closes them.

    A board that does not open (lost, or not ours to see) is left out as long as another one opens. Raises SensorError.
    """
    uuids = [uuid for _, uuid, _ in (*real_boards(), *amd_boards())]
    if not uuids and not asleep():
        from .simulated.gpu import SimulatedGpu
        from .simulated.twin import load_twin, twin_names

        return [SimulatedGpu(load_twin(name), seed=seed, index=index) for index, name in enumerate(twin_names())]
    gpus: list[Gpu] = []
    failure: SensorError | None = None
    for uuid in uuids:
        try:
            gpus.append(open_gpu(uuid))
        except SensorError as error:
            failure = error
    if not gpus and failure is not None:
        raise failure
    return gpus


def _open_simulated(name: str, seed: int, speed: float) -> Gpu:
    from .simulated.gpu import SimulatedGpu
    from .simulated.twin import load_twin

    return SimulatedGpu(load_twin(name.strip() or DEFAULT_TWIN), seed=seed, clock=make_clock(speed))


def _open_recorded(name: str, speed: float) -> Gpu:
    from .recorded.gpu import RecordedGpu, open_recorded

    return RecordedGpu(open_recorded(name, _recordings()), clock=make_clock(speed))


def _open_remote(text: str, allowed: bool, give_up: threading.Event | None) -> Gpu:
    from .remote.gpu import RemoteGpu

    address = parse_address(text)
    if not allowed:
        remedy = f"there, as in: {address.login} wattridge tune ... --gpu {address.board}"
        raise InputError(
            "a board of another machine can be watched and set; what runs on it is started there", text, remedy
        )
    return RemoteGpu(address, give_up=give_up)


def _open_opencl(name: str, voltage: bool) -> Gpu:
    """The board that the device is, where its sensors are known; else the device as such."""
    from .opencl.devices import find_device, is_board

    device = find_device(name)
    for _, uuid, _ in (*real_boards(), *amd_boards()) if device.uuid or device.pci else ():
        if is_board(device, uuid, pci_address(uuid)):
            return open_gpu(uuid, voltage=voltage)
    from .unmetered import opencl_device

    return opencl_device(device)


def _open_real(text: str, voltage: bool) -> Gpu:
    """An index or a UUID (or the start of one that names one board)."""
    from .nvml.gpu import NvmlGpu

    if not text.isascii() or not (text.isdigit() or text.upper().startswith(("GPU-", "MIG-")) or _BARE.fullmatch(text)):
        raise InputError(f"'{text}' names no GPU", "--gpu", f"an index, a UUID, or one of {', '.join(_alternatives())}")
    known = _listed(real_boards, "nvml", text)
    if known and text.upper().startswith("MIG-"):
        try:
            return NvmlGpu(text, voltage=None)
        except SensorError as error:
            raise InputError(f"there is no GPU {text}: {error.what}", "--gpu", "a UUID of `nvidia-smi -L`") from None
    if not known:
        what = f"there is no GPU {text}: no NVIDIA driver answers here"
        raise InputError(what, "--gpu", f"one of {', '.join(_alternatives())}")
    index = _only_board(text, text, [(str(index), uuid, name) for index, uuid, name in known], "GPUs")
    return NvmlGpu(index) if voltage else NvmlGpu(index, voltage=None)


def _open_amd(text: str) -> Gpu:
    """An index among AMD's boards, or the UUID of one (or the start of one that names one board)."""
    from .amd.gpu import AmdGpu

    known, named = (
        _listed(amd_boards, "amd", text or "0"),
        f"{AMD}:{text}" if not text.upper().startswith("AMD-") else text,
    )
    if not known:
        what = f"there is no GPU {named}: no AMD driver answers here"
        raise InputError(what, "--gpu", f"{_AMD_REMEDY}; or one of {', '.join(_alternatives())}")
    boards = [(f"{AMD}:{index}", uuid, name) for index, uuid, name in known]
    return AmdGpu(_only_board(text or "0", named, boards, "AMD GPUs"))


def _open_at(address: str, voltage: bool) -> Gpu:
    """The board at a PCI address, which wakes it."""
    wake(*(board for board in asleep() if board.address == address))
    for _, uuid, _ in (*real_boards(), *amd_boards()):
        if pci_address(uuid).lower().endswith(address):
            return open_gpu(uuid, voltage=voltage)
    raise InputError(f"no GPU answers at {address}", "--gpu", "see which there are: wattridge gpus")


def _listed(boards: Callable[[], list[Listed]], source: Source, text: str) -> list[Listed]:
    """The boards of a maker that do not sleep; where an index or UUID means none of them, all, which wakes them."""
    known = boards()
    if any(text == str(index) or uuid.lower().startswith(text.lower()) for index, uuid, _ in known):
        return known
    wake(*asleep(source))
    return boards()


def _only_board(text: str, named: str, boards: list[tuple[str, str, str]], kind: str) -> int:
    """The index of the one board of that index, or whose UUID begins so; `boards` are (as selected, UUID, name).

    Raises InputError if there is none, or where there are several.
    """
    begins = text.lower() if len(text) > 4 else "nothing"
    indices = [selector.rpartition(":")[2] for selector, _, _ in boards]
    fits = [i for i, board in zip(indices, boards, strict=True) if text == i or board[1].lower().startswith(begins)]
    if len(fits) != 1:
        there = ", ".join(f"{selector} ({name})" for selector, _, name in boards)
        what = f"there is no GPU {named}" if not fits else f"{text} begins the UUID of several GPUs"
        raise InputError(what, "--gpu", f"{kind} here: {there}; or {', '.join(_alternatives())}")
    return int(fits[0])


def amd_boards() -> list[Listed]:
    """(index, UUID, name) of AMD's boards; none where AMD SMI is not here, or no driver answers it.

    Boards that sleep are left out; where all do, the library is not loaded, which wakes some.
    """
    from .amd.gpu import boards

    try:
        return [] if _awake("amd") == [] else boards()
    except NoDriver:
        return []


def real_boards() -> list[Listed]:
    """(index, UUID, name) of NVIDIA's boards; none where no driver answers or shows any. Boards that sleep as above."""
    from .nvml.gpu import boards

    awake = _awake("nvml")
    try:
        return [] if awake == [] else boards(addresses=awake)
    except NoDriver:
        return []


def _awake(source: Source) -> list[str] | None:
    """The PCI addresses of a maker's boards beside those that sleep; None where none does."""
    sleeping = asleep(source)
    return [board.address for board in pci_boards(source) if board not in sleeping] if sleeping else None


def _alternatives() -> list[str]:
    from .simulated.twin import twin_names

    return [*(f"{_SIMULATED}{name}" for name in twin_names()), *(f"{_RECORDED}{name}" for name in _recordings())]


def _recordings() -> dict[str, Path]:
    """Recordings that come with the program, by name: the file's name up to its first dot."""
    folder = resources() / "recordings"
    return {path.name.split(".")[0]: path for path in sorted(folder.glob("*.csv.gz"))} if folder.is_dir() else {}


def pci_address(uuid: str) -> str:
    """DOMAIN:BUS:DEVICE.FUNCTION, hexadecimal, of either maker's board; empty if the driver does not tell it."""
    if uuid.startswith("AMD-"):
        from .amd.gpu import pci_address as of_amd

        return of_amd(uuid)
    from .nvml.gpu import pci_address as of_nvidia

    return of_nvidia(uuid)
