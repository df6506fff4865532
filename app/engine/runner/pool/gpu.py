"""`PooledGpu`: the boards of one model in a pool as one board, as a session is planned for it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ....errors import InputError, WattridgeError
from ....sensors.channel import Channel, PowerSample, Reading
from ....sensors.clock import Clock, HostClock
from ....sensors.device_limits import DeviceLimits
from ....sensors.errors import NotSupported
from ....sensors.gpu import GpuInfo
from ...board_settings import WORDS
from ...specification.model import Specification
from ...specification.programs import programs_of
from .boards import PoolBoard
from .pool import Pool
from .status import BoardReports

ORIGIN: Final = "boards"  # in a session's origin: the boards that measured it, as JSON by their keys
SELECTOR: Final = "pool"  # in place of a board's UUID


class PooledGpu:
    """Implements `Gpu` as far as planning needs it: what is read and run is read and run beside the boards."""

    def __init__(self, pool: Pool, boards: Sequence[PoolBoard], options: Sequence[str] = ()) -> None:
        """`boards` are of one model, one at least; `options` those with which a command uses them."""
        self.pool = pool
        self.reports = BoardReports(options)
        self.boards = tuple(boards)
        self.model = boards[0].model
        self.info: GpuInfo = replace(boards[0].info, index=0, uuid=SELECTOR, host="")
        self.channels: tuple[Channel, ...] = boards[0].hello.channels
        self.clock: Clock = HostClock()
        self.limits: DeviceLimits = min((each.limits for each in boards), key=lambda each: each.multiprocessors)

    def require_runnable(self, spec: Specification) -> None:
        """Raises InputError where a pool cannot run it: what the workers would start is no kernel of its sources."""
        where = str(spec.path)
        if spec.refused:
            raise InputError(spec.refused, where, "its space can be looked at, and recordings of it replayed")
        if spec.kernel is None:
            raise InputError("a pool measures kernels, not programs", where, "run it on one board: --gpu INDEX")
        if spec.meters:
            raise InputError("meters stand beside one board", where, "leave [metering] out, or run it on one board")
        if programs := programs_of(spec):
            raise InputError(f"a pool starts no programs: {programs[0]}", where, "run it on one board: --gpu INDEX")

    def why_not(self, setting: str) -> str:
        """Why a setting cannot be made on all of the boards; empty where it can."""
        found = ((each, why) for each in self.boards if (why := each.why_not(setting)))
        return next((f"{each.label}: {why}" for each, why in found), "")

    def require_settings(self, names: Sequence[str]) -> None:
        """Raises WattridgeError where a session that needs these settings cannot make them."""
        for name in names:
            if why := self.why_not(name):
                raise WattridgeError(f"the {WORDS[name]} cannot be set: {why}", self.model, "see `wattridge worker`")

    # --- the Gpu seam -------------------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """Raises NotSupported: each board is read beside it."""
        raise NotSupported("the boards of a pool are read where they are", self.model)

    def power_samples(self, since_ns: int) -> Sequence[PowerSample]:
        """Raises NotSupported: see `read`."""
        raise NotSupported("the boards of a pool are read where they are", self.model)

    def energy_j(self) -> float:
        """Raises NotSupported: see `read`."""
        raise NotSupported("the boards of a pool are read where they are", self.model)

    def graphics_clocks_mhz(self) -> Sequence[int]:
        """Those that all of the boards support, ascending."""
        return _common([each.hello.graphics_clocks_mhz for each in self.boards])

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Those that all of the boards support, ascending."""
        return _common([each.hello.memory_clocks_mhz for each in self.boards])

    def close(self) -> None:
        """The pool stays: who opened it closes it."""


def _common(clocks: Sequence[Sequence[int]]) -> Sequence[int]:
    return sorted(set.intersection(*map(set, clocks)))


def boards_document(boards: Mapping[str, Mapping[str, str]]) -> str:
    """What a session's origin says of its boards."""
    return json.dumps(boards, sort_keys=True)


def boards_of_origin(origin: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The boards that measured a session, by their keys: `label` and how each one's figures are stated.

    Empty where one board did, and where what is stored is damaged.
    """
    try:
        stored = json.loads(origin.get(ORIGIN, "{}"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {
        key: {name: text for name, text in facts.items() if isinstance(text, str)}
        for key, facts in stored.items()
        if isinstance(facts, dict)
    }
