"""What the processes of a pool share: a task on standard input, one line back, and an end with their parent."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from ....blas_threads import use_one_core
from ....errors import InputError, WattridgeError
from ...children.supervised import GIVES_UP

_LONGEST_TASK: Final = 1 << 16
_END_S: Final = 8.0  # for an orderly end

Serve = Callable[[Mapping[str, Any], asyncio.Event, Callable[[Mapping[str, Any]], None]], Awaitable[None]]


def run_child(serve: Serve) -> int:
    """Serve the task that the parent gives until that closes our standard input; the exit status."""
    use_one_core()
    task: dict[str, Any] = json.loads(sys.stdin.buffer.readline(_LONGEST_TASK))
    sink = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else that prints reaches the parent

    def say(message: Mapping[str, Any]) -> None:
        with suppress(OSError):
            sink.write(json.dumps(message).encode() + b"\n")
            sink.flush()

    async def live() -> None:
        end = asyncio.Event()
        loop = asyncio.get_running_loop()
        threading.Thread(target=_until_closed, args=(loop, end), name="parent", daemon=True).start()
        await serve(task, end, lambda ready: say({"ready": dict(ready)}))

    try:
        asyncio.run(live())
    except WattridgeError as error:
        say({"failed": str(error)})
        return GIVES_UP if isinstance(error, InputError) else 1
    except OSError as error:
        say({"failed": error.strerror or str(error)})
        return 1
    return 0


def _until_closed(loop: asyncio.AbstractEventLoop, end: asyncio.Event) -> None:
    """When the parent closes our input, or is gone, end in order; and at once where that takes too long."""
    with suppress(OSError, ValueError):
        while os.read(0, 1 << 12):
            pass
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(end.set)
    threading.Event().wait(_END_S)
    os._exit(1)
