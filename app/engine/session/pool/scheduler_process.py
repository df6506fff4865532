"""The scheduler of a pool that this machine has to itself, as a process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...runner.pool.certificates import find_certificates
from ...runner.pool.scheduler import start_scheduler
from .child import run_child


async def serve(task: Mapping[str, Any], end: asyncio.Event, ready: Callable[[Mapping[str, Any]], None]) -> None:
    """Schedule until the parent is gone. Raises WattridgeError where the address cannot be had."""
    scheduler = await start_scheduler(task["address"], find_certificates(Path(task["certificates"])))
    ready({"address": scheduler.address})
    await end.wait()
    await scheduler.close()


if __name__ == "__main__":
    sys.exit(run_child(serve))
