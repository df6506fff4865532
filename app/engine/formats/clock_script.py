"""Clocks and power cap as a POSIX shell script of nvidia-smi commands that sets them, and one that puts them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

from app.engine.control.settings import Setting, lower, upper
from app.engine.measurement import Value

# setting -> (what people call it, how it is set, how it is put back)
_COMMANDS = {
    "graphics_clock_mhz": ("graphics clock {0} MHz", "-lgc {1},{2}", "-rgc"),
    "memory_clock_mhz": ("memory clock {0} MHz", "-lmc {1},{2}", "-rmc"),
    "power_limit_w": ("power limit {0} W", "-pl {2}", '-pl "$default_limit"'),
}

_FRAME = """\
#!/bin/sh
{remarks}
#
# usage: {usage} set|reset [GPU]     GPU is an index or a UUID, 0 by default. Needs root.
set -eu
gpu=${{2:-0}}

smi() {{ nvidia-smi -i "$gpu" "$@"; }}

case "${{1:-}}" in
set)
{set_lines}
    ;;
reset)
{reset_lines}
    ;;
*)
    echo "usage: $0 set|reset [GPU]" >&2
    exit 2
    ;;
esac
"""


def clock_script(settings: Mapping[str, Value | Setting], remarks: Sequence[str]) -> str:
    """The script for settings under this program's names (MHz, W); others are told in a comment only."""
    set_lines: list[str] = []
    reset_lines: list[str] = []
    told = [*remarks]
    for name, value in settings.items():
        if name not in _COMMANDS or not _is_setting(value):
            told.append(f"Not set by this script: {name} = {value}")
            continue
        words, put, back = _COMMANDS[name]
        ends = [f"{end:g}" if name == "power_limit_w" else f"{round(end)}" for end in (lower(value), upper(value))]
        shown = "–".join(dict.fromkeys(ends))
        set_lines.append(f"    smi {put.format(shown, *ends)}    # {words.format(shown)}")
        if name == "power_limit_w":
            reset_lines.append("    default_limit=$(smi --query-gpu=power.default_limit --format=csv,noheader,nounits)")
        reset_lines.append(f"    smi {back}")
    if not set_lines:
        told.append("This configuration names no clock and no power limit: there is nothing to set.")
        set_lines = reset_lines = ['    echo "nothing to do: the configuration names no clock and no power limit"']
    comments = "\n".join(f"# {_one_line(text)}" for text in told)
    return _FRAME.format(
        remarks=comments, usage="sh THIS_FILE", set_lines="\n".join(set_lines), reset_lines="\n".join(reset_lines)
    )


def _is_setting(value: Value | Setting) -> TypeGuard[Setting]:
    ends = value if isinstance(value, tuple) else (value,)
    return all(isinstance(end, int | float) and not isinstance(end, bool) and end > 0 for end in ends)


def _one_line(text: str) -> str:
    """Text that cannot leave its comment."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
