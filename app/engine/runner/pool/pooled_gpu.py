"""`PooledGpu`: the boards of a pool that are of one model, as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....base.errors import InputError, WattridgeError
from ....sensors.channel import Channel, PowerSample, Reading
from ....sensors.clock import Clock, HostClock
from ....sensors.gpu import GpuInfo, NotSupported
from ....sensors.limits import DeviceLimits
from ...results.settings import WORDS
from ...space.device_settings import SettingValues
from ...space.search_space import SearchSpace
from ...specification.model import Specification, programs_of
from ...specification.plan import SessionPlan
from ..base import Runner
from ..boards import Report, TunedBoards, as_they_are, no_report
from .messages import bundle_of
from .pool import SELECTOR, Pool, PoolBoard
from .runner import PoolRunner


class PooledGpu(TunedBoards):
    """Implements `Gpu` as far as planning needs it: what is read and run is read and run beside the boards."""

    options: tuple[str, ...]

    def __init__(self, pool: Pool, boards: Sequence[PoolBoard], options: Sequence[str] = ()) -> None:
        """`boards` are of one model, one at least; `options` those with which a command uses them."""
        self.pool = pool
        self.options = tuple(options)
        self.gpu = self
        self.boards = tuple(boards)
        self.model = boards[0].model
        self.info: GpuInfo = replace(boards[0].info, index=0, uuid=SELECTOR, host="")
        self.channels: tuple[Channel, ...] = boards[0].hello.channels
        self.clock: Clock = HostClock()
        self.limits: DeviceLimits = min((board.limits for board in boards), key=lambda limits: limits.multiprocessors)

    # --- what a session is planned and run on -------------------------------------------------------------------------

    def require_runnable(self, spec: Specification) -> tuple[DeviceLimits, tuple[str, ...]]:
        """Raises InputError if a pool cannot run it: what the workers would start is no kernel of its sources."""
        where = str(spec.path)
        if spec.refused:
            raise InputError(spec.refused, where, "its space can be looked at, and recordings of it replayed")
        if spec.kernel is None:
            raise InputError("a pool measures kernels, not programs", where, "run it on one board: --gpu INDEX")
        if spec.meters:
            raise InputError("meters stand beside one board", where, "leave [metering] out, or run it on one board")
        if programs := programs_of(spec):
            raise InputError(f"a pool starts no programs: {programs[0]}", where, "run it on one board: --gpu INDEX")
        return self.limits, ()

    def allowed_settings(self, wanted: Mapping[str, SettingValues]) -> tuple[dict[str, SettingValues], tuple[str, ...]]:
        """The settings that all of the boards make, and notes on the others."""
        if "ridge" in wanted.values():
            remedy = "give graphics_clock_mhz as a list or as { points = n }"
            raise InputError("a pool sweeps no clocks before a session", "graphics_clock_mhz = 'ridge'", remedy)
        fixed = {name: reason for name in wanted if (reason := self.why_not(name))}
        return {name: values for name, values in wanted.items() if name not in fixed}, as_they_are(fixed)

    def require_settings(self, names: Sequence[str]) -> None:
        """Raises WattridgeError if a session that needs these settings cannot make them."""
        for name in names:
            if why := self.why_not(name):
                raise WattridgeError(f"the {WORDS[name]} cannot be set: {why}", self.model, "see `wattridge worker`")

    def require_space(self, spec: Specification, space: SearchSpace) -> None:
        """Raises as `bundle_of`."""
        bundle_of(spec)

    def runner(self, plan: SessionPlan, report: Report = no_report) -> Runner:
        """One runner over those beside the boards."""
        assert plan.specification is not None, "a pool measures specifications"
        return PoolRunner(
            self.pool,
            self.model,
            self.info.source,
            plan.space,
            bundle_of(plan.specification),
            repeats=plan.specification.repeats,
            condition=plan.condition.option if plan.condition is not None else "",
            report=report,
        )

    def why_not(self, setting: str) -> str:
        """Why a setting cannot be made on all of the boards; empty if it can."""
        refusals = ((board, why) for board in self.boards if (why := board.why_not(setting)))
        return next((f"{board.label}: {why}" for board, why in refusals), "")

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
        return _common([board.hello.graphics_clocks_mhz for board in self.boards])

    def memory_clocks_mhz(self) -> Sequence[int]:
        """Those that all of the boards support, ascending."""
        return _common([board.hello.memory_clocks_mhz for board in self.boards])

    def close(self) -> None:
        """The pool stays: who opened it closes it."""


def _common(clocks: Sequence[Sequence[int]]) -> Sequence[int]:
    return sorted(set.intersection(*map(set, clocks)))
