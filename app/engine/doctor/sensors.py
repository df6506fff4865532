"""The check of the boards' sensors: each one is opened as a session would, and read once."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

from ...errors import WattridgeError
from ...sensors.amd.gpu import AmdGpu
from ...sensors.gpu import Gpu
from ...sensors.nvml.gpu import NvmlGpu
from ...sensors.select import amd_boards, real_boards
from .finding import Finding, ok, wrong

_REMEDY = "a newer driver may report it; `wattridge meters` lists power meters that measure beside the board"


def sensors() -> Finding:
    """What each board reports, and that its power is among it."""
    openers: list[tuple[str, Callable[[], Gpu]]] = [
        *((name, partial(NvmlGpu, index)) for index, _, name in real_boards()),
        *((name, partial(AmdGpu, index)) for index, _, name in amd_boards()),
    ]
    if not openers:
        return ok("no board answers whose sensors could be read")
    boards = [_look(name, opener) for name, opener in openers]
    said = "; ".join(f"{board['name']}: {board['says']}" for board in boards)
    if any(board["amiss"] for board in boards):
        return wrong(said, _REMEDY, boards=boards)
    return ok(said, boards=boards)


def _look(name: str, opener: Callable[[], Gpu]) -> dict[str, Any]:
    """What one board reports, as JSON has it; `amiss` where it does not open or has no power."""
    try:
        with closing(opener()) as gpu:
            reading = dict(zip((each.name for each in gpu.channels), gpu.read().values, strict=True))
            absent = {each.name: each.unavailable for each in gpu.channels if not each.available}
            present = [each for each in reading if each not in absent]
            powers = [each for each in present if each.startswith("power_") and each.endswith("_w")]
            power = any(math.isfinite(reading[each]) for each in powers if each != "power_limit_w")
    except WattridgeError as error:
        return {"name": name, "says": f"does not open: {error.what}", "amiss": True, "channels": [], "absent": {}}
    says = f"{len(present)} quantities" + (f", not {', '.join(absent)}" if absent else "")
    says = says if power else f"no power ({absent.get('power_instant_w') or 'the sensor gives no value'}); {says}"
    return {"name": name, "says": says, "amiss": not power, "channels": present, "absent": absent}
