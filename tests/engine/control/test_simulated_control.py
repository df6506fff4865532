"""Settings of a simulated board by hand: the same steps as on a real one, so that they can be tried."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from app.engine.control.device_log import Change
from app.engine.control.guard import DeviceGuard
from app.engine.session.engine_thread import ControlService
from app.engine.session.events import Allow, Apply, Confirm, ControlChanged, Forbid, SettingApplied
from app.sensors.gpu import Gpu
from app.sensors.select import open_gpu

NEVER, A100 = threading.Event(), "simulated:a100"


class Service:
    """The service of a simulated board, and what it reports."""

    def __init__(self, gpu: Gpu) -> None:
        self.heard: list[Any] = []
        self.changes: list[Change] = []
        self.guard = DeviceGuard(gpu, on_change=self.changes.append)
        self.service = ControlService(self.guard, self.heard.append)

    def ask(self, command: Any) -> Any:
        self.service.handle(command, NEVER)
        return self.heard[-1]


@pytest.fixture
def gpu() -> Iterator[Gpu]:
    opened = open_gpu("simulated:a100")
    yield opened
    opened.close()


def limit_of(gpu: Gpu) -> float | None:
    return gpu.info.power_limit.current_w


def test_a_simulated_board_is_armed_by_the_user_and_its_settings_wait_to_be_confirmed(gpu: Gpu) -> None:
    one, before = Service(gpu), limit_of(gpu)
    assert one.guard.allowed, "a session may set it as ever"
    assert not one.guard.armed
    assert one.ask(Allow(A100)) == ControlChanged(A100, True, None)
    applied = one.ask(Apply(A100, {"power_limit_w": 200.0}, confirm_s=60.0))
    assert isinstance(applied, SettingApplied)
    assert 0 < applied.confirm_s <= 60.0
    assert limit_of(gpu) == 200.0
    one.ask(Confirm(A100, keep=False))
    assert limit_of(gpu) == before
    one.ask(Forbid(A100))
    assert one.heard[-2] == ControlChanged(A100, False, None)


def test_what_was_kept_on_a_simulated_board_is_put_back_with_everything(gpu: Gpu) -> None:
    one, before = Service(gpu), limit_of(gpu)
    one.ask(Allow(A100))
    one.ask(Apply(A100, {"power_limit_w": 200.0}, confirm_s=60.0))
    one.ask(Confirm(A100))
    one.ask(Forbid(A100))
    assert limit_of(gpu) == 200.0
    one.ask(Apply(A100, reset=True))
    assert limit_of(gpu) == before
    assert [(change.asked, change.observed) for change in one.changes][-2:] == [
        ("as before", ""),
        ("as before", one.changes[-1].observed),
    ]
    assert f"{before:g} W" in one.changes[-1].observed
