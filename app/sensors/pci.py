"""GPUs on the PCI bus with their runtime power state, which is read before a driver's library wakes one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .gpu import Source

SYSFS: Final = Path("/sys")
PCI: Final = "pci:"  # begins the selector of a board by its address
_VENDORS: Final[dict[Source, str]] = {"nvml": "0x10de", "amd": "0x1002"}
_woken: set[str] = set()  # addresses of boards that the user has asked for
_CLASSES: Final = ("0x0300", "0x0302", "0x1200")  # VGA controllers, 3D controllers, processing accelerators


@dataclass(frozen=True, slots=True)
class PciBoard:
    """A GPU as the kernel lists it. Asleep, its maker's library has not been asked: neither name nor UUID is known."""

    address: str  # DOMAIN:BUS:DEVICE.FUNCTION, hexadecimal
    source: Source
    asleep: bool

    @property
    def selector(self) -> str:
        """What `--gpu` takes for it; to open it wakes it."""
        return f"{PCI}{self.address}"

    @property
    def name(self) -> str:
        """What is known of it without its maker's library."""
        return "AMD GPU" if self.source == "amd" else "NVIDIA GPU"


def pci_boards(source: Source, sysfs: Path | None = None) -> list[PciBoard]:
    """The boards that a maker's library would list, by address; none where there is no such file system."""
    return [
        PciBoard(device.name, source, _read(device / "power/runtime_status").startswith("suspend"))
        for device in sorted((sysfs or SYSFS).glob("bus/pci/devices/*"))
        if _read(device / "vendor") == _VENDORS[source] and _read(device / "class").startswith(_CLASSES)
    ]


def asleep(*sources: Source) -> list[PciBoard]:
    """The boards that sleep and are to be left so, of these makers or of both."""
    return [b for source in sources or _VENDORS for b in pci_boards(source) if b.asleep and b.address not in _woken]


def wake(*boards: PciBoard) -> None:
    """From now on these boards are asked and opened as any other, which wakes them."""
    _woken.update(board.address for board in boards)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
