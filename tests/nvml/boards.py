"""Boards that are not there, and the libraries that show them: built here, laid into a folder, watched from outside.

What the libraries (NVML, AMD SMI) and every process see is one file; this module maps it too, so that a test sees each
setting as the driver holds it, locks included, and every call of a setter that reached it.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import mmap
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIBRARY, AMD_LIBRARY = "libnvidia-ml.so.1", "libamd_smi.so"
SOURCES = {
    name: Path(__file__).with_name(source)
    for name, source in ((LIBRARY, "stand_in.c"), (AMD_LIBRARY, "stand_in_amd.c"))
}
NVIDIA, AMD = 0, 1
BOARDS, FAULTS, CALLS, KEPT, FUNCTION = 8, 16, 16384, 1024, 64
NOT_SUPPORTED, NO_PERMISSION, TIMEOUT, LOST = 3, 4, 10, 15
AS_ROOT = os.name == "posix" and os.geteuid() == 0


def _numbers(*names: str) -> list[tuple[str, Any]]:
    return [(name, ctypes.c_int64) for name in names]


class Board(ctypes.Structure):
    """As `struct board` of stand_in.h; mW, MHz, ns."""

    _fields_ = (
        ("name", ctypes.c_char * 64),
        ("uuid", ctypes.c_char * 64),
        *_numbers("major", "minor", "cores", "mig", "graphics_min", "graphics_max", "graphics_step"),
        ("memory", ctypes.c_int64 * 4),
        *_numbers("memories", "limit_min", "limit_max", "limit_default", "clamp"),
        *_numbers("has_locks", "has_memory_locks", "has_application_clocks", "has_limit", "has_buffer"),
        *_numbers("holds_when_idle", "obeys", "idle_mhz", "idle_mw", "load_mw", "settle_us", "vendor"),
        *_numbers("profiles", "conflicts", "requested", "limit"),
        ("application", ctypes.c_int64 * 2),
        ("lock", ctypes.c_int64 * 2),
        ("memory_lock", ctypes.c_int64 * 2),
        *_numbers(
            "persistence",
            "level",
            "lost",
            "busy_until_ns",
            "from_mhz",
            "to_mhz",
            "moved_ns",
            "last_ns",
            "energy_uj",
            "told",
        ),
        ("at_ns", ctypes.c_int64 * KEPT),
        ("power_mw", ctypes.c_int64 * KEPT),
    )


class _Fault(ctypes.Structure):
    _fields_ = (("function", ctypes.c_char * FUNCTION), *_numbers("board", "code", "delay_us", "left"))


class _Call(ctypes.Structure):
    _fields_ = (("function", ctypes.c_char * FUNCTION), *_numbers("ns", "pid", "board", "a", "b", "returned"))


class _State(ctypes.Structure):
    _fields_ = (
        *_numbers("count", "calls"),
        ("boards", Board * BOARDS),
        ("faults", _Fault * FAULTS),
        ("log", _Call * CALLS),
    )


@dataclass(frozen=True)
class Call:
    """A setter that reached the driver, and what it said."""

    function: str
    board: int
    a: int
    b: int
    returned: int
    ns: int
    pid: int


def _kind(
    name: str, clocks_mhz: range, memory_mhz: tuple[int, ...], limits_w: tuple[int, int, int], **more: Any
) -> dict:
    """A kind of board; `limits_w` least, most (and default), present. The state before is never the default."""
    low, high, now = limits_w
    told = {
        "name": name.encode(),
        "graphics_min": clocks_mhz[0],
        "graphics_max": clocks_mhz[-1],
        "graphics_step": clocks_mhz.step,
        "idle_mhz": clocks_mhz[0],
        "memory": memory_mhz,
        "application": (memory_mhz[-1], clocks_mhz[-5]),
        "limit_min": low * 1000,
        "limit_max": high * 1000,
        "limit_default": high * 1000,
        "limit": now * 1000,
        "settle_us": 20_000,
        "persistence": 1,
    }
    able = ("has_locks", "has_memory_locks", "has_application_clocks", "has_limit", "holds_when_idle", "obeys")
    return {**told, **dict.fromkeys(able, 1), **more}


KINDS: dict[str, dict[str, Any]] = {
    "h200": _kind(
        "NVIDIA H200", range(345, 1981, 15), (2201, 3201), (200, 700, 650),
        major=9, cores=16896, idle_mw=83_000, load_mw=600_000, has_buffer=1,
    ),
    "a100": _kind(
        "NVIDIA A100-PCIE-40GB", range(210, 1411, 15), (1215,), (150, 250, 225),
        major=8, cores=6912, idle_mw=40_000, load_mw=230_000,
    ),
    "a4000": _kind(
        "NVIDIA RTX A4000", range(210, 1561, 15), (405, 5001, 7001), (100, 140, 130),
        major=8, minor=6, cores=6144, idle_mw=15_000, load_mw=140_000, has_application_clocks=0, holds_when_idle=0,
    ),
    "old": _kind(
        "Tesla K20Xm", range(324, 745, 42), (324, 2600), (150, 235, 225),
        major=3, minor=5, cores=2688, idle_mw=20_000, load_mw=200_000, has_locks=0, has_memory_locks=0, persistence=0,
    ),
    "laptop": _kind(
        "NVIDIA RTX 2060 Laptop", range(300, 1801, 15), (405, 7001), (80, 80, 80),
        major=7, minor=5, cores=1920, idle_mw=8_000, load_mw=90_000,
        has_limit=0, has_memory_locks=0, has_application_clocks=0, holds_when_idle=0,
    ),
    "mi210": _kind(
        "AMD Instinct MI210", range(500, 1701), (400, 1600), (100, 300, 280),
        vendor=AMD, cores=104, idle_mhz=800, idle_mw=41_000, load_mw=250_000, persistence=0,
        has_memory_locks=0, has_application_clocks=0, holds_when_idle=0,
    ),
    "b200": _kind(
        "NVIDIA B200", range(120, 1966, 15), (3996,), (200, 1000, 950),
        major=10, cores=18944, idle_mw=140_000, load_mw=850_000, has_buffer=1, has_application_clocks=0,
        profiles=0b1101111, conflicts=0b11, requested=1 << 5,
    ),
    "rtx5090": _kind(
        "NVIDIA GeForce RTX 5090", range(180, 3091, 15), (405, 7001, 14001), (400, 600, 575),
        major=12, cores=21760, idle_mw=30_000, load_mw=500_000, has_buffer=1, has_application_clocks=0,
    ),
    "mig": _kind(
        "NVIDIA A100-SXM4-80GB", range(210, 1411, 15), (1593,), (100, 400, 350),
        major=8, cores=6912, idle_mw=60_000, load_mw=300_000, mig=1,
    ),
}  # fmt: skip


class StandIn:
    """A folder with the library and its boards. `boards[i]` is live memory: writing changes what everybody sees."""

    def __init__(self, folder: Path, kinds: Sequence[str], *, missing: Sequence[str] = ()) -> None:
        self.folder = folder
        self.library = folder / LIBRARY
        for name in (LIBRARY, *([AMD_LIBRARY] if any(KINDS[kind].get("vendor") == AMD for kind in kinds) else [])):
            shutil.copy(build(name, missing), folder / name)
        path = folder / "boards.bin"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        os.fchmod(self._file, 0o666)
        os.truncate(self._file, ctypes.sizeof(_State))
        self._map = mmap.mmap(self._file, ctypes.sizeof(_State))
        self._state = _State.from_buffer(self._map)
        self._state.count = len(kinds)
        self.boards = [self._state.boards[index] for index in range(len(kinds))]
        self.uuids = []
        for board, kind in zip(self.boards, kinds, strict=True):
            own = str(uuid.uuid4())  # which AMD's library reports as it is
            amd = KINDS[kind].get("vendor") == AMD
            told = {**KINDS[kind], "uuid": own.encode() if amd else f"GPU-{own}".encode()}
            memory = told.pop("memory")
            for name, value in told.items():
                setattr(board, name, value if not isinstance(value, tuple) else (ctypes.c_int64 * 2)(*value))
            board.memories = len(memory)
            board.memory[: len(memory)] = memory
            board.from_mhz = board.to_mhz = board.idle_mhz
            self.uuids.append(f"AMD-{own}" if amd else f"GPU-{own}")

    def close(self) -> None:
        self.boards.clear()
        del self._state
        with contextlib.suppress(BufferError):  # a test that failed may hold a board
            self._map.close()
        os.close(self._file)

    @contextlib.contextmanager
    def _held(self) -> Iterator[None]:
        with open(self.folder / "boards.bin", "rb") as own:  # a lock of its own, not the map's
            fcntl.flock(own, fcntl.LOCK_EX)
            yield

    def settings(self, at: int = 0) -> dict[str, Any]:
        """All that can be set, as the driver holds it."""
        with self._held():
            board = self.boards[at]
            if board.vendor == AMD:
                return {"limit": board.limit, "lock": tuple(board.lock), "level": board.level}
            return {
                "limit": board.limit,
                "application": tuple(board.application),
                "lock": tuple(board.lock),
                "memory_lock": tuple(board.memory_lock),
                "persistence": board.persistence,
                **({"requested": board.requested} if board.profiles else {}),
            }

    def fault(self, function: str, code: int = 0, *, board: int = -1, delay_s: float = 0.0, times: int = -1) -> None:
        """From now on a call of that function answers with `code`, `delay_s` late; so many times, or for ever."""
        with self._held():
            free = next(fault for fault in self._state.faults if not fault.left)
            free.function, free.board, free.code = function.encode(), board, code
            free.delay_us, free.left = int(delay_s * 1e6), times

    def is_faulty(self, function: str) -> bool:
        """Whether a fault of that function waits for a call."""
        with self._held():
            return any(fault.left and fault.function == function.encode() for fault in self._state.faults)

    def no_faults(self) -> None:
        with self._held():
            for fault in self._state.faults:
                fault.left = 0

    def work(self, seconds: float, at: int = 0) -> None:
        """The board has work for so long from now on."""
        self.boards[at].busy_until_ns = time.monotonic_ns() + int(seconds * 1e9)

    def calls(self) -> list[Call]:
        """Every call of a setter, oldest first."""
        with self._held():
            made = self._state.calls
            assert made <= CALLS, "more calls than are kept"
            return [
                Call(call.function.decode(), call.board, call.a, call.b, call.returned, call.ns, call.pid)
                for call in self._state.log[:made]
            ]

    def environment(self) -> dict[str, str]:
        """For a process that is to see these boards."""
        path = os.environ.get("PATH", os.defpath)
        return {"LD_LIBRARY_PATH": str(self.folder), "PATH": path, "WATTRIDGE_UNSAFE_HELPER_FROM_CHECKOUT": "1"}


def attached(folder: Path) -> tuple[Any, mmap.mmap]:
    """The boards of a folder, for another process than the one that made them."""
    with (folder / "boards.bin").open("r+b") as file:
        mapped = mmap.mmap(file.fileno(), ctypes.sizeof(_State))
    return _State.from_buffer(mapped), mapped


_built: dict[tuple[str, tuple[str, ...]], Path] = {}


def compiler() -> str | None:
    """The C compiler; None where the machine has none."""
    return shutil.which("gcc") or shutil.which("cc")


def build(name: str = LIBRARY, missing: Sequence[str] = ()) -> Path:
    """A library without some of its functions, made once per run."""
    key = (name, tuple(missing))
    if key not in _built:
        folder = Path(tempfile.mkdtemp(prefix="stand-in-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        script = folder / "hidden"
        hidden = " ".join(f"{name};" for name in missing)
        script.write_text(f"{{ local: {hidden} }};\n" if missing else "{ global: *; };\n")
        words = [compiler() or "cc", "-std=gnu11", "-O1", "-shared", "-fPIC", f"-Wl,--version-script={script}"]
        subprocess.run([*words, "-o", str(folder / name), str(SOURCES[name]), "-ldl", "-lpthread"], check=True)
        _built[key] = folder / name
    return _built[key]
