"""Clocks and power cap as a systemd unit: set when the machine starts, put back when the unit is stopped."""

from __future__ import annotations

from collections.abc import Mapping

from app.engine.control.settings import SETTINGS, Setting, in_words, lower, upper

SMI = "/usr/bin/nvidia-smi"

_FRAME = """\
# Written by Wattridge for {board}: {words}.
#   install -m 644 THIS_FILE /etc/systemd/system/ && systemctl enable --now THIS_FILE      as root
# Stopping the unit puts back {back}.
[Unit]
Description=GPU clocks and power limit, chosen with Wattridge
After=nvidia-persistenced.service systemd-modules-load.service

[Service]
Type=oneshot
RemainAfterExit=yes
{lines}

[Install]
WantedBy=multi-user.target
"""


def clock_unit(settings: Mapping[str, Setting], uuid: str, board: str, default_limit_w: float | None) -> str:
    """The unit for one board; `default_limit_w` is what its power limit goes back to."""
    made = {name: settings[name] for name in SETTINGS if name in settings}
    start, stop = [], []
    for name, value in made.items():
        if name == "power_limit_w":
            start.append(f"-pl {upper(value):g}")
            if default_limit_w is not None:
                stop.append(f"-pl {default_limit_w:g}")
        else:
            kind = "gc" if name == "graphics_clock_mhz" else "mc"
            start.append(f"-l{kind} {round(lower(value))},{round(upper(value))}")
            stop.append(f"-r{kind}")
    lines = [f"ExecStart={SMI} -i {uuid} {words}" for words in start]
    lines += [f"ExecStop={SMI} -i {uuid} {words}" for words in reversed(stop)]
    back = "unlocked clocks and the default power limit"
    return _FRAME.format(board=_plain(board), words=in_words(made), back=back, lines="\n".join(lines))


def _plain(text: str) -> str:
    """Text that cannot leave its comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
