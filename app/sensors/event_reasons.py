"""Clock event reasons ('throttle reasons'): why the clock is what it is. Bits as in NVML's nvmlClocksEventReasons."""

from __future__ import annotations

from enum import IntFlag


class EventReason(IntFlag):
    """Bits as the driver reports them; `NAMES` has the words shown."""

    NONE = 0
    IDLE = 0x1
    APPLICATION_CLOCKS = 0x2
    POWER_CAP = 0x4
    HARDWARE_SLOWDOWN = 0x8
    SYNC_BOOST = 0x10
    SOFTWARE_THERMAL = 0x20
    HARDWARE_THERMAL = 0x40
    POWER_BRAKE = 0x80
    DISPLAY_CLOCKS = 0x100


NAMES: dict[EventReason, str] = {
    EventReason.IDLE: "idle",
    EventReason.APPLICATION_CLOCKS: "clocks set",
    EventReason.POWER_CAP: "power cap",
    EventReason.HARDWARE_SLOWDOWN: "hardware slowdown",
    EventReason.SYNC_BOOST: "sync boost",
    EventReason.SOFTWARE_THERMAL: "thermal",
    EventReason.HARDWARE_THERMAL: "thermal (hardware)",
    EventReason.POWER_BRAKE: "power brake",
    EventReason.DISPLAY_CLOCKS: "display clocks",
}

# While one of these is set, the clock is not the one that was asked for.
LIMITING = (
    EventReason.POWER_CAP
    | EventReason.HARDWARE_SLOWDOWN
    | EventReason.SOFTWARE_THERMAL
    | EventReason.HARDWARE_THERMAL
    | EventReason.POWER_BRAKE
)


def names(bits: int) -> tuple[str, ...]:
    """The words for the set bits, in bit order; a bit we do not know is shown as its number."""
    named = tuple(name for reason, name in NAMES.items() if bits & reason)
    unknown = bits & ~sum(NAMES)
    return (*named, f"reason 0x{unknown:x}") if unknown else named
