"""Errors of a GPU, as types. Each carries the one line that the user sees."""

from __future__ import annotations

from ..errors import WattridgeError


class SensorError(WattridgeError):
    """A call to the GPU failed."""


class NotSupported(SensorError):
    """This board or driver does not have what was asked for."""


class NoPermission(SensorError):
    """The driver refuses this to the present user."""


class GpuLost(SensorError):
    """The GPU fell off the bus or its driver went away. An event, not an exit."""


class NoDriver(SensorError):
    """No driver of a maker's boards answers on this machine."""
