"""Clocks and power cap as a POSIX shell script of nvidia-smi commands that sets them, and one that puts them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..board_settings import Setting
from ..measurement import Value
from .nvidia_smi import in_comment, smi_option

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
        option = smi_option(name, value)
        if option is None:
            told.append(f"Not set by this script: {name} = {value}")
            continue
        set_lines.append(f"    smi {option.put}    # {option.words}")
        if option.to_default:
            reset_lines.append("    default_limit=$(smi --query-gpu=power.default_limit --format=csv,noheader,nounits)")
        reset_lines.append(f"    smi {option.back}" + (' "$default_limit"' if option.to_default else ""))
    if not set_lines:
        told.append("This configuration names no clock and no power limit: there is nothing to set.")
        set_lines = reset_lines = ['    echo "nothing to do: the configuration names no clock and no power limit"']
    comments = "\n".join(f"# {in_comment(text)}" for text in told)
    return _FRAME.format(
        remarks=comments, usage="sh THIS_FILE", set_lines="\n".join(set_lines), reset_lines="\n".join(reset_lines)
    )
