"""`BoardLearning`: how a board's power follows its condition, learnt while it works from what is measured again."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from ...sensors.gpu import GpuInfo
from .characterisation.store import stored_characterisation
from .condition import Condition, SeenConditions
from .confidence import NORMAL_95
from .thermal import BoardHeat, Look, ThermalModel, keep_heat, known_heat
from .window import Window

GROWTH: Final = 1.05  # of what can be learnt from, until it is learnt again: statements come after every window


class BoardLearning:
    """Of one board, in one session or sweep: what is known of it before, and what its windows show by now."""

    def __init__(self, info: GpuInfo, chosen: Condition | None = None) -> None:
        """`chosen` is the condition that the user asks for."""
        self._info = info
        known = known_heat(info)
        characterised = stored_characterisation(info)
        if characterised is not None and characterised.aftereffect is not None:
            known = replace(known, model=known.model.without_aftereffect())
        self._known = known
        self._chosen = chosen
        self._looks: dict[str, list[Look]] = {}
        self._seen = SeenConditions()
        self._learnt = known.model
        self._learnt_from = 0  # looks
        self._repeated = 0  # looks at kernels that were looked at more than once: what can be learnt from

    def note(self, kernel: str, window: Window) -> None:
        """A window in which that kernel ran. Under a limit it shows nothing of what the kernel draws."""
        self._seen.add(window.condition)
        if not window.limited and window.power_w > 0:
            ends = window.power_interval_w
            sd = math.nan if ends is None else (ends[1] - ends[0]) / 2 / NORMAL_95 / window.power_w
            look = Look(kernel, window.power_w, 0.0 if math.isnan(sd) else sd, window.condition, window.time_s)
            looks = self._looks.setdefault(kernel, [])
            looks.append(look)
            self._repeated += 2 if len(looks) == 2 else len(looks) > 2

    @property
    def condition(self) -> Condition:
        """To state figures for. A board's first session fixes it at its end: until then it moves."""
        return self._chosen or self._known.condition or self._seen.usual

    @property
    def model(self) -> ThermalModel:
        """As far as is known by now: the last twentieth of the windows may not count yet, until `learn_all`."""
        if self._repeated >= GROWTH * self._learnt_from:
            self.learn_all()
        return self._learnt

    def learn_all(self) -> None:
        """Learn from every window so far."""
        if self._repeated == self._learnt_from:
            return
        repeated = [look for looks in self._looks.values() if len(looks) > 1 for look in looks]
        self._learnt, self._learnt_from = self._known.model.learn(repeated), self._repeated

    def stated_w(self, window: Window) -> float:
        """The window's power at the condition; at a limit, which sets the power, as it was drawn."""
        if window.limited or not window.power_w > 0:
            return window.power_w
        return self.model.stated(window.power_w, window.condition, self.condition)[0]

    def keep(self, *, fix_condition: bool) -> None:
        """Keep what was learnt for the board's next session, which begins with it.

        `fix_condition`: where the board has no condition of its own yet, it is that of what was measured now.
        """
        self.learn_all()
        if self._seen:
            condition = self._known.condition or (self._seen.usual if fix_condition else None)
            keep_heat(self._info, BoardHeat(self._learnt, condition))
