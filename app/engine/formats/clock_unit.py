"""Clocks and power cap as a systemd unit: set when the machine starts, put back when the unit is stopped."""

from __future__ import annotations

from collections.abc import Mapping

from ...sensors.gpu import Gpu
from ..board_settings import Setting
from .nvidia_smi import in_comment, settings_for_smi, smi_option

SMI = "/usr/bin/nvidia-smi"

_FRAME = """\
# Written by Wattridge for {board}: {words}.
#   install -m 644 THIS_FILE /etc/systemd/system/ && systemctl enable --now THIS_FILE      as root
# Stopping the unit puts back the defaults: clocks of the board's own choice, and the default power limit.
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


def clock_unit(gpu: Gpu, settings: Mapping[str, Setting]) -> str:
    """The unit for that board."""
    info = gpu.info
    made = settings_for_smi(gpu, settings)
    options = [option for name, value in made.items() if (option := smi_option(name, value))]
    lines = [f"ExecStart={SMI} -i {info.uuid} {option.put}" for option in options]
    for option in reversed(options):
        if not option.to_default:
            lines.append(f"ExecStop={SMI} -i {info.uuid} {option.back}")
        elif info.power_limit.default_w is not None:
            lines.append(f"ExecStop={SMI} -i {info.uuid} {option.back} {info.power_limit.default_w:g}")
    words = ", ".join(option.words for option in options)
    return _FRAME.format(board=in_comment(info.label), words=words, lines="\n".join(lines))
