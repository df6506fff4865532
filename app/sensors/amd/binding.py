"""AMD SMI (`libamd_smi.so`) by ctypes: what is asked of it, in the layouts that its versions share.

The helper with rights uses this module too, installed beside it: the standard library only, Python 3.9 or later, and
nothing here sets anything. Layouts and units are those of `amdsmi.h`, the same from ROCm 6.0 to 7.0 as far as they are
used: structures have only grown at their end, so each is given more room than any version writes.
"""

from __future__ import annotations

import ctypes
from typing import Any

# amdsmi_status_t
INVALID, NOT_SUPPORTED, NOT_IMPLEMENTED, NO_PERMISSION, RETRY = 1, 2, 3, 10, 9
IO, FILE_ERROR, OUT_OF_BOUNDS, BUSY, NOT_FOUND, NOT_INITIALISED, NO_SLOT, NO_DRIVER = 12, 14, 17, 30, 31, 32, 33, 34
TIMEOUT, NO_DATA = 8, 40

INIT_GPUS = 1 << 1  # AMDSMI_INIT_AMD_GPUS
GRAPHICS_CLOCK, MEMORY_CLOCK = 0, 4  # amdsmi_clk_type_t: SYS, MEM
AUTO, MANUAL, DETERMINISM = 0, 3, 8  # amdsmi_dev_perf_level_t
COUNT_UJ = 15.259  # one step of the energy counter, for the counter within the metrics
_ROOM = 16384  # bytes; the largest structure has 6 kB
_LEAST_UW = 100_000  # no power cap is as low in microwatts, nor as high in watts


class AmdSmiError(Exception):
    """A call did not succeed; `code` is its amdsmi_status_t."""

    def __init__(self, code: int, function: str) -> None:
        super().__init__(f"AMD SMI error {code} ({function})")
        self.code = code
        self.function = function


class Metrics(ctypes.Structure):
    """The beginning of amdsmi_gpu_metrics_t: °C, %, W, MHz, mV; all ones where a board does not report a field."""

    _fields_ = (
        ("header", ctypes.c_uint32),
        *((name, ctypes.c_uint16) for name in ("edge_c", "junction_c", "memory_c", "vr_gfx_c", "vr_soc_c", "vr_mem_c")),
        *((name, ctypes.c_uint16) for name in ("gfx_percent", "memory_percent", "media_percent", "average_w")),
        ("energy_counts", ctypes.c_uint64),
        ("time_ns", ctypes.c_uint64),
        ("average_clocks_mhz", ctypes.c_uint16 * 7),
        *((name, ctypes.c_uint16) for name in ("graphics_mhz", "soc_mhz", "memory_mhz", "video_mhz")),
        ("other_clocks_mhz", ctypes.c_uint16 * 3),
        ("throttle", ctypes.c_uint32),  # bits by the board's own kind
        *((name, ctypes.c_uint16) for name in ("fan_rpm", "link_width", "link_speed")),
        ("activity_counts", ctypes.c_uint32 * 2),
        ("hbm_c", ctypes.c_uint16 * 4),
        ("firmware_time", ctypes.c_uint64),
        *((name, ctypes.c_uint16) for name in ("soc_mv", "graphics_mv", "memory_mv")),
        ("throttle_bits", ctypes.c_uint64),  # the same for every kind of board
        ("current_w", ctypes.c_uint16),
    )


class PowerCap(ctypes.Structure):
    """amdsmi_power_cap_info_t."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("now", "default", "dpm", "least", "most"))


class Clock(ctypes.Structure):
    """The beginning of amdsmi_clk_info_t, MHz."""

    _fields_ = (("now", ctypes.c_uint32), ("least", ctypes.c_uint32), ("most", ctypes.c_uint32))


class Range(ctypes.Structure):
    """amdsmi_range_t, Hz."""

    _fields_ = (("lower", ctypes.c_uint64), ("upper", ctypes.c_uint64), ("reserved", ctypes.c_uint64 * 2))


class Overdrive(ctypes.Structure):
    """The beginning of amdsmi_od_volt_freq_data_t."""

    _fields_ = tuple((name, Range) for name in ("graphics", "memory", "graphics_limits", "memory_limits"))


class Frequencies(ctypes.Structure):
    """amdsmi_frequencies_t, Hz."""

    _fields_ = (
        ("deep_sleep", ctypes.c_bool),
        ("supported", ctypes.c_uint32),
        ("current", ctypes.c_uint32),
        ("hz", ctypes.c_uint64 * 33),
    )


class Memory(ctypes.Structure):
    """The beginning of amdsmi_vram_usage_t, MiB."""

    _fields_ = (("total", ctypes.c_uint32), ("used", ctypes.c_uint32))


class AmdSmi:
    """The library once it is loaded and initialised. Every call may raise AmdSmiError."""

    def __init__(self, path: str) -> None:
        """Raises OSError if it does not load, AmdSmiError where it finds no driver."""
        self._library = ctypes.CDLL(path)
        self.call("amdsmi_init", ctypes.c_uint64(INIT_GPUS))

    def call(self, function: str, *arguments: Any) -> None:
        """Call a function by name; one that this version lacks is one that is not implemented."""
        try:
            entry = getattr(self._library, function)
        except AttributeError:
            raise AmdSmiError(NOT_IMPLEMENTED, function) from None
        code = entry(*arguments)
        if code != 0:
            raise AmdSmiError(code, function)

    def close(self) -> None:
        self.call("amdsmi_shut_down")

    def boards(self) -> list[ctypes.c_void_p]:
        """A handle for every GPU, in the library's order."""
        results = []
        for socket in self._handles("amdsmi_get_socket_handles"):
            results.extend(self._handles("amdsmi_get_processor_handles", socket))
        return results

    def uuid(self, board: ctypes.c_void_p) -> str:
        """As `amd-smi list` shows it. Boards without a serial number share one."""
        length, text = ctypes.c_uint32(64), ctypes.create_string_buffer(64)
        self.call("amdsmi_get_gpu_device_uuid", board, ctypes.byref(length), text)
        return text.value.decode("ascii", "replace").lower()

    def name(self, board: ctypes.c_void_p) -> str:
        """The market name, which is where every version has it: first."""
        return self._first_text("amdsmi_get_gpu_asic_info", board)

    def driver(self, board: ctypes.c_void_p) -> str:
        """The driver's version."""
        return self._first_text("amdsmi_get_gpu_driver_info", board)

    def pci(self, board: ctypes.c_void_p) -> str:
        """DOMAIN:BUS:DEVICE.FUNCTION, hexadecimal."""
        bdf = ctypes.c_uint64()
        self.call("amdsmi_get_gpu_device_bdf", board, ctypes.byref(bdf))
        place = bdf.value
        return f"{place >> 16:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"

    def metrics(self, board: ctypes.c_void_p) -> Metrics:
        """Nearly everything at once."""
        result: Metrics = self._asked(Metrics, "amdsmi_get_gpu_metrics_info", board)
        return result

    def energy_uj(self, board: ctypes.c_void_p) -> tuple[float, int]:
        """The energy counter in µJ, counts times their resolution, and when it was read, ns of a clock of its own."""
        counts, resolution, time_ns = ctypes.c_uint64(), ctypes.c_float(), ctypes.c_uint64()
        self.call(
            "amdsmi_get_energy_count",
            board, ctypes.byref(counts), ctypes.byref(resolution), ctypes.byref(time_ns),
        )  # fmt: skip
        if counts.value == 2**64 - 1:
            raise AmdSmiError(NOT_SUPPORTED, "amdsmi_get_energy_count")
        return counts.value * (resolution.value or COUNT_UJ), time_ns.value

    def power_cap_uw(self, board: ctypes.c_void_p) -> tuple[int, int, int, int]:
        """The power cap in µW: now, by default, the least, the most."""
        cap = self._asked(PowerCap, "amdsmi_get_power_cap_info", board, ctypes.c_uint32(0))
        # the header says microwatts; some versions give some of these in watts
        now, default, least, most = (
            value if value >= _LEAST_UW else value * 1_000_000 for value in (cap.now, cap.default, cap.least, cap.most)
        )
        return now, default, least, most

    def clock(self, board: ctypes.c_void_p, kind: int) -> Clock:
        """The present, least and highest clock of a kind."""
        clock: Clock = self._asked(Clock, "amdsmi_get_clock_info", board, ctypes.c_uint32(kind))
        return clock

    def clocks_mhz(self, board: ctypes.c_void_p, kind: int) -> list[int]:
        """The clocks of a kind that the driver lists, ascending. Of graphics clocks one may be the present one."""
        listed = self._asked(Frequencies, "amdsmi_get_clk_freq", board, ctypes.c_uint32(kind))
        clocks = listed.hz[: min(listed.supported, len(listed.hz))]
        return sorted({hz // 1_000_000 for hz in clocks if 0 < hz < 2**63})

    def graphics_ranges_mhz(self, board: ctypes.c_void_p) -> tuple[int, int, int, int]:
        """The range of graphics clocks that is set: least, most; and the range within which it may be set."""
        overdrive = self._asked(Overdrive, "amdsmi_get_gpu_od_volt_info", board)
        ranges = overdrive.graphics, overdrive.graphics_limits
        ends = [end // 1_000_000 for item in ranges for end in (item.lower, item.upper)]
        if not 0 < ends[0] <= ends[1] < 100_000 or not 0 < ends[2] <= ends[3] < 100_000:
            raise AmdSmiError(NOT_SUPPORTED, "amdsmi_get_gpu_od_volt_info")
        return ends[0], ends[1], ends[2], ends[3]

    def level(self, board: ctypes.c_void_p) -> int:
        """The performance level: AUTO, MANUAL or another."""
        level = ctypes.c_uint32()
        self.call("amdsmi_get_gpu_perf_level", board, ctypes.byref(level))
        return level.value

    def memory_mib(self, board: ctypes.c_void_p) -> tuple[int, int]:
        """The board's memory: all of it, and what is used."""
        memory = self._asked(Memory, "amdsmi_get_gpu_vram_usage", board)
        return memory.total, memory.used

    # --- inside -------------------------------------------------------------------------------------------------------

    def _handles(self, function: str, *of: Any) -> list[ctypes.c_void_p]:
        count = ctypes.c_uint32()
        self.call(function, *of, ctypes.byref(count), None)
        handles = (ctypes.c_void_p * count.value)()
        self.call(function, *of, ctypes.byref(count), handles)
        return [ctypes.c_void_p(handle) for handle in handles[: count.value]]

    def _asked(self, kind: type[Any], function: str, *arguments: Any) -> Any:
        room = ctypes.create_string_buffer(_ROOM)
        self.call(function, *arguments, room)
        return kind.from_buffer(room)

    def _first_text(self, function: str, board: ctypes.c_void_p) -> str:
        room = ctypes.create_string_buffer(_ROOM)
        self.call(function, board, room)
        return room.raw[:256].split(b"\0")[0].decode("utf-8", "replace").strip()


def known(value: int, bits: int = 16) -> bool:
    """Whether a field of the metrics holds a value: all ones stand for none."""
    return value != (1 << bits) - 1
