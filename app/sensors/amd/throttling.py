"""Why an AMD board's clock is what it is, as clock event reasons.

Bits of the throttle status that is the same for every board, as Linux' `amdgpu_smu.h` numbers them: 0 to 7 power, 16 to
23 current, 32 to 43 temperatures, 44 to 47 what hardware demands, 56 and 57 the rest.
"""

from __future__ import annotations

from typing import Final

from ..event_reasons import EventReason


def _bits(first: int, last: int) -> int:
    return (1 << last + 1) - (1 << first)


_REASONS: Final = (
    (_bits(0, 7), EventReason.POWER_CAP),
    (_bits(16, 23), EventReason.HARDWARE_SLOWDOWN),
    (_bits(32, 43), EventReason.SOFTWARE_THERMAL),
    (_bits(44, 47), EventReason.HARDWARE_THERMAL),
    (_bits(48, 63), EventReason.HARDWARE_SLOWDOWN),
)


def event_reasons(throttle_bits: int, *, idle: bool) -> EventReason:
    """The reasons for a throttle status. AMD boards report no idleness: it is taken from their activity."""
    reasons = EventReason.IDLE if idle else EventReason.NONE
    for bits, reason in _REASONS:
        if throttle_bits & bits:
            reasons |= reason
    return reasons
