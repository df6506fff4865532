"""Settings by hand as commands to the engine: a real board's return unless they are confirmed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.session import events
from ...sensors.gpu import Gpu

CONFIRM_S: Final = 10.0


def apply_command(gpu: Gpu, settings: Mapping[str, Any]) -> events.Apply:
    """Make these settings on the window's board; a simulated one has nothing to protect, and nothing to confirm."""
    return events.Apply(**settings, confirm_s=CONFIRM_S if gpu.info.source == "nvml" else None)
