"""Getting hold of several boards: those of this machine's own pool, or of a scheduler's; for commands and the window.

Nothing here is connected to, or started, but by a call. Dask is imported with the first.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ....errors import InputError, WattridgeError
from ....own_installation import how_to_add
from ...runner.pool.boards import PoolBoard, models_of
from ...runner.pool.pool import Pool

THIS_COMPUTER: Final = "this computer"
WAIT_S: Final = 20.0  # for the boards of a pool


class OpenedPool:
    """A pool that is there until it is closed, with the processes that were started for it."""

    def __init__(
        self,
        pool: Pool,
        where: str,
        options: Sequence[str] = (),
        end: Callable[[], None] = lambda: None,
        connect: Callable[[], Pool] | None = None,
    ) -> None:
        """`where` names it in words, `options` are those of a command that uses it; `end` ends what was started.

        `connect` gives one more connection to it.
        """
        self.pool, self.where, self.options = pool, where, tuple(options)
        self.connect = connect
        self._end = end
        self._others: list[Pool] = []

    def by_model(self, model: str | None = None) -> list[tuple[Pool, Sequence[PoolBoard]]]:
        """The boards of that model, or of each one, with a connection that is theirs: each has one session at a time.

        Raises WattridgeError and InputError as `chosen_model`, and where a further connection cannot be made.
        """
        models = models_of(self.pool.boards())
        if model is not None or len(models) <= 1 or self.connect is None:
            return [(self.pool, chosen_model(self.pool, model))]
        self._others += [self.connect() for _ in range(len(models) - 1)]
        for other in self._others:
            _wait_for(other, len(self.pool.boards()), threading.Event())
        return list(zip((self.pool, *self._others), models.values(), strict=True))

    def close(self) -> None:
        """Leave it, and end what was started for it. Safe to call twice."""
        for pool in (*self._others, self.pool):
            pool.close()
        self._end()


def require_dask() -> None:
    """Raises WattridgeError where Dask is not installed."""
    if find_spec("distributed") is None:
        raise WattridgeError("several boards need Dask", "pool", how_to_add("pool"))


def open_scheduler_pool(
    scheduler: str, certificates: Path | None, *, boards: int = 1, stop: threading.Event | None = None
) -> OpenedPool:
    """The pool of a scheduler, once so many boards are there, or soon after; its certificates lie in that folder.

    Raises InputError for an address or certificates that are none, and WattridgeError where nobody answers.
    """
    require_dask()
    from ...runner.pool.address import parse_pool_address
    from ...runner.pool.certificates import find_certificates
    from ...runner.pool.dask_pool import DaskPool

    address = parse_pool_address(scheduler)
    pool = DaskPool(address, find_certificates(certificates), stop=stop)
    try:
        _wait_for(pool, boards, stop or threading.Event())
    except BaseException:
        pool.close()
        raise
    folder = () if certificates is None else ("--certificates", str(certificates))
    return OpenedPool(
        pool,
        address,
        ("--pool", address, *folder),
        connect=lambda: DaskPool(address, find_certificates(certificates)),
    )


def open_local_pool(
    selectors: Sequence[str],
    *,
    seed: int = 0,
    speed: float = 1.0,
    allow_control: bool = False,
    on_line: Callable[[str], None] = lambda _: None,
    stop: threading.Event | None = None,
) -> OpenedPool:
    """A pool of these boards of this machine, which runs until it is closed.

    `seed` and `speed` are of simulated boards; `on_line` hears, on any thread, what becomes of the pool's processes.
    Raises InputError and WattridgeError where one of the boards does not open.
    """
    require_dask()
    from .local import LocalPool

    local = LocalPool(selectors, seed=seed, speed=speed, allow_control=allow_control, on_line=on_line, stop=stop)
    try:
        folder = local.certificates.folder
        opened = open_scheduler_pool(local.address, folder, boards=len(selectors), stop=stop)
    except BaseException:
        local.close()
        raise
    return OpenedPool(opened.pool, THIS_COMPUTER, ("--gpu", ",".join(selectors)), local.close, opened.connect)


def chosen_model(pool: Pool, model: str | None) -> Sequence[PoolBoard]:
    """The boards of the model that is asked for, or of the only one. Raises WattridgeError and InputError."""
    models = models_of(pool.boards())
    if not models:
        raise WattridgeError("the pool has no boards", "pool", "on a machine with boards: wattridge worker SCHEDULER")
    if model is None and len(models) > 1:
        what = f"the pool has boards of several models: {', '.join(models)}"
        raise InputError(what, "pool", "name one with --model: energy is compared on boards of one model")
    if model is not None and model not in models:
        raise InputError(f"the pool has no board of the model '{model}'", "--model", f"one of {', '.join(models)}")
    return models[model or next(iter(models))]


def listed_boards(text: str) -> list[str]:
    """The selectors of a comma-separated list. Raises InputError where one is empty, or a real board is named twice."""
    selectors = [each.strip() for each in text.split(",")]
    real = [each.lower() for each in selectors if not each.lower().startswith("simulated:")]
    if not all(selectors) or len(set(real)) < len(real):
        raise InputError(f"'{text}' is no list of boards", "--gpu", "as in 0,1,2,3")
    return selectors


def _wait_for(pool: Pool, boards: int, stop: threading.Event) -> None:
    until = time.monotonic() + WAIT_S
    while len(pool.boards()) < boards and time.monotonic() < until and not stop.wait(0.1):
        pass
