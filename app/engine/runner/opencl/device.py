"""A device by its number among OpenCL's. Imported in processes of their own only: pyopencl loads vendors' libraries."""

from __future__ import annotations

from typing import Any

import pyopencl as cl


def device_of(number: str) -> Any:
    """The device PLATFORM.DEVICE. Raises LookupError where it is gone, and cl.Error."""
    platform, _, device = number.partition(".")
    return cl.get_platforms()[int(platform)].get_devices()[int(device)]
