"""`RemoteControl`: sets a board of another machine through its own Wattridge, which puts it back when we are gone."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...errors import PermissionRefused, WattridgeError
from ...sensors.errors import GpuLost
from ...sensors.remote.gpu import RemoteGpu
from ...sensors.remote.messages import parse_error, sensor_error
from ..board_settings import SETTINGS, Setting, lower, upper
from .client import HelperGone

_ANSWER_S: Final = 60.0  # the helper there may need 20 s, and start another one


class RemoteControl:
    """Implements `Control`. What it set holds as long as its connection."""

    def __init__(self, gpu: RemoteGpu) -> None:
        self._gpu = gpu
        self._connection: object = None  # the one on which control was asked for
        self._prior: dict[str, float | None] = {}

    def open(self, cancel: threading.Event | None = None) -> tuple[str, ...]:
        ours = self._connection is self._gpu.connection and self._gpu.connection.alive
        if ours or self._prior:  # of settings on a broken connection the next request says what became of them
            return ()
        answer = self._answer("open")
        self._connection = self._gpu.connection
        notes = answer.get("notes")
        return tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else ()

    def set(self, settings: Mapping[str, Setting]) -> None:
        wanted = {name: [lower(v), upper(v)] if isinstance(v, tuple) else float(v) for name, v in settings.items()}
        self._prior.update(dict.fromkeys(settings, None))  # to be put back, whatever the answer
        self._ask("set", settings=wanted)

    def reset(self, names: Sequence[str]) -> None:
        self._ask("reset", settings=list(names))
        for name in names:
            self._prior.pop(name, None)

    def restore_prior(self, *, defaults: bool = False) -> None:
        self.open()
        self._ask("restore_prior", defaults=defaults)
        self._prior.clear()

    def confirm(self) -> None:
        self._ask("confirm")
        self._prior.clear()

    def prior(self) -> dict[str, float | None]:
        return dict(self._prior)

    def read_back(self) -> dict[str, float | None]:
        now = self._ask("state").get("now")
        found = now if isinstance(now, dict) else {}
        return {name: _figure(found.get(name)) for name in SETTINGS}

    def close(self) -> None:
        ours, self._connection = self._connection, None
        if ours is self._gpu.connection and self._gpu.connection.alive:
            self._answer("give_back")
        self._prior.clear()

    # --- inside -----------------------------------------------------------------------------------------------------

    def _ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        """Raises HelperGone where the connection is not the one on which control was asked for."""
        if self._connection is not self._gpu.connection:
            raise self._gone()
        answer = self._answer(verb, **fields)
        prior = answer.get("prior")
        if isinstance(prior, dict):
            self._prior = {name: _figure(prior[name]) for name in SETTINGS if name in prior}
        return answer

    def _answer(self, verb: str, **fields: Any) -> dict[str, Any]:
        try:
            message = self._gpu.answer(verb, _ANSWER_S, **fields)
        except GpuLost:
            raise self._gone() from None
        if "error" in message:
            kind, what, remedy = parse_error(message["error"])
            if kind == "refused":
                raise PermissionRefused(what, self._gpu.info.label, remedy)
            raise sensor_error(kind, what, self._gpu.info.label, remedy)
        answer = message.get("answer")
        return answer if isinstance(answer, dict) else {}

    def _gone(self) -> WattridgeError:
        self._prior.clear()
        what = "the connection broke; what was set there is put back there within seconds"
        return HelperGone(
            what, self._gpu.info.label, f"to be sure: wattridge restore --gpu {self._gpu.address.selector}"
        )


def _figure(value: Any) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)
