"""The table of channels with their values."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.sensors.channel import Channel
from app.views.watch.readout import NOW, ReadoutModel


def test_a_device_without_sensors_has_nothing_that_changes(qtbot: QtBot) -> None:
    model = ReadoutModel([Channel("power_instant_w", "W", "Power, instant", "this device has no sensors")])
    with qtbot.assertNotEmitted(model.dataChanged):
        model.set_values(NOW, {"power_instant_w": 1.0})
        model.set_statistics({})


def test_values_change_the_rows_of_what_is_available(qtbot: QtBot) -> None:
    model = ReadoutModel([Channel("power_instant_w", "W", "Power, instant")])
    with qtbot.waitSignal(model.dataChanged) as changed:
        model.set_values(NOW, {"power_instant_w": 1.0})
    first, last = changed.args[:2]
    assert first.isValid()
    assert last.isValid()
