"""Clocks and power limit for `nvidia-smi`: a shell script that sets and resets them, and a systemd unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeGuard

from ...base.errors import InputError
from ...base.files import read_text
from ...base.paths import resources
from ...sensors.gpu import Gpu, NotSupported
from ..results.measurement import Value
from ..results.settings import (
    PROFILE,
    SETTINGS,
    UNTOUCHED,
    BoardSettings,
    Setting,
    has_locks,
    lower,
    supported_clocks,
    upper,
)

SMI: Final = "/usr/bin/nvidia-smi"
APPLICATION_CLOCKS: Final = "application_clocks_mhz"  # (memory, graphics), of boards that cannot lock theirs

# setting -> (how it is called, how it is set, how it is reset: of the power limit, to the default)
_OPTIONS: Final = {
    "power_limit_w": ("power limit {0} W", "-pl {2}", "-pl"),
    "memory_clock_mhz": ("memory clock {0} MHz", "-lmc {1},{2}", "-rmc"),
    "graphics_clock_mhz": ("graphics clock {0} MHz", "-lgc {1},{2}", "-rgc"),
    APPLICATION_CLOCKS: ("application clocks {1} (memory) and {2} MHz", "-ac {1},{2}", "-rac"),
}

_SCRIPT, _UNIT, _SERVICE = (
    read_text(resources() / "templates" / name) for name in ("clocks.sh", "clocks.service", "at_clocks.service")
)


@dataclass(frozen=True, slots=True)
class _Option:
    """One setting. `reset` lacks the default limit, which has to follow where `to_default` says so."""

    words: str
    set: str
    reset: str
    to_default: bool


class _Commands(NamedTuple):
    """For one board: what follows `nvidia-smi -i BOARD`, and the settings in words."""

    set: list[str]
    reset: list[str]
    words: str


def clock_script(settings: Mapping[str, Value | Setting], remarks: Sequence[str]) -> str:
    """A POSIX shell script for settings under this program's names (MHz, W); others only become a comment."""
    set_lines: list[str] = []
    reset_lines: list[str] = []
    comments = [*remarks]
    for name, value in settings.items():
        option = _option(name, value)
        if option is None:
            left = value == UNTOUCHED
            comments.append(f"{'Left as the board has it' if left else 'Not set by this script'}: {name} = {value}")
            continue
        set_lines.append(f"    smi {option.set}    # {option.words}")
        if option.to_default:
            reset_lines.append("    default_limit=$(smi --query-gpu=power.default_limit --format=csv,noheader,nounits)")
        reset_lines.append(f"    smi {option.reset}" + (' "$default_limit"' if option.to_default else ""))
    if not set_lines:
        comments.append("This configuration names no clock and no power limit: there is nothing to set.")
        set_lines = reset_lines = ['    echo "nothing to do: the configuration names no clock and no power limit"']
    written = "\n".join(f"# {_in_comment(text)}" for text in comments)
    return _SCRIPT.format(remarks=written, set_lines="\n".join(set_lines), reset_lines="\n".join(reset_lines))


def board_script(gpu: Gpu, settings: BoardSettings) -> str:
    """A shell script that sets that board. Raises NotSupported for one that nvidia-smi does not set."""
    return clock_script(settings_for_smi(gpu, settings), [f"Written by Wattridge for {gpu.info.label}."])


def service_unit(
    gpu: Gpu, settings: BoardSettings, start: Sequence[str], title: str, others: Sequence[Gpu] = ()
) -> str:
    """A systemd unit for a service whose command is `start`: the settings hold from its start to its end.

    The guard's rules hold here, too: what is set is taken back after the service has ended, failed or been killed
    (`ExecStopPost`), on the `others` that it serves with too. Raises NotSupported for a board that nvidia-smi does not
    set.
    """
    boards = [(board, _commands(board, settings)) for board in (gpu, *others)]
    if start[0][:1] in set("@-:+!|"):  # systemd would read more than a name in it: '+' gives root's rights
        raise InputError("a program whose name begins with a sign", start[0][:80], "write the unit by hand")
    return _SERVICE.format(
        board=_in_comment(", ".join(board.info.label for board, _ in boards)),
        words=boards[0][1].words,
        title=_in_comment(title),
        before="\n".join(line for board, commands in boards for line in _lines("ExecStartPre=+", board, commands.set)),
        start=" ".join(_quoted(word) for word in start),
        after="\n".join(line for board, commands in boards for line in _lines("ExecStopPost=+", board, commands.reset)),
    )


def _quoted(word: str) -> str:
    """A word of a command line as systemd reads it back: no variable, no specifier, no quote of its own."""
    if any(not letter.isprintable() for letter in word):
        raise InputError("a control character in the command", repr(word)[:80], "write the unit by hand")
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return plain if word and not set(word) & set(" \t\"'\\;") else f'"{plain}"'


def clock_unit(gpu: Gpu, settings: BoardSettings) -> str:
    """A systemd unit for that board: sets when the machine starts, resets when the unit is stopped.

    Raises NotSupported for a board that nvidia-smi does not set.
    """
    commands = _commands(gpu, settings)
    lines = [*_lines("ExecStart=", gpu, commands.set), *_lines("ExecStop=", gpu, commands.reset)]
    return _UNIT.format(board=_in_comment(gpu.info.label), words=commands.words, lines="\n".join(lines))


def _lines(key: str, gpu: Gpu, commands: Sequence[str]) -> list[str]:
    """The lines of a unit that run these on a board."""
    return [f"{key}{SMI} -i {gpu.info.uuid} {words}" for words in commands]


def settings_for_smi(gpu: Gpu, settings: BoardSettings) -> dict[str, Setting]:
    """Settings in order of application; clocks that this board cannot lock become its application clocks.

    Those are set as a pair: the highest clock is used for the one that is not named. Raises NotSupported.
    """
    if PROFILE in settings:
        remedy = "leave it out of this file, and set it with: wattridge apply --workload-power-profile NAME --keep"
        raise NotSupported("a workload power profile is not written to scripts and units", gpu.info.label, remedy)
    if gpu.info.source == "amd":
        remedy = "set it with --keep, which lasts until the machine starts again"
        what = "scripts and units are written for nvidia-smi, which sets NVIDIA's boards"
        raise NotSupported(what, gpu.info.label, remedy)
    ordered = {name: settings[name] for name in SETTINGS if name in settings}
    unlocked = [name for name in ordered if name.endswith("_mhz") and not has_locks(gpu, name)]
    if unlocked:
        memory, graphics = (
            upper(ordered[name]) if name in ordered else float(max(supported_clocks(gpu, name)))
            for name in ("memory_clock_mhz", "graphics_clock_mhz")
        )
        ordered = {name: value for name, value in ordered.items() if name not in unlocked}
        ordered[APPLICATION_CLOCKS] = (memory, graphics)
    return ordered


def _commands(gpu: Gpu, settings: BoardSettings) -> _Commands:
    """What nvidia-smi sets on a board, and what takes that back, the last one first. Raises NotSupported."""
    options = [option for name, value in settings_for_smi(gpu, settings).items() if (option := _option(name, value))]
    default_w = gpu.info.power_limit.default_w
    reset = [
        f"{option.reset} {default_w:g}" if option.to_default else option.reset
        for option in reversed(options)
        if default_w is not None or not option.to_default
    ]
    return _Commands([option.set for option in options], reset, ", ".join(option.words for option in options))


def _option(name: str, value: Value | Setting) -> _Option | None:
    """A setting under this program's name (MHz, W); None for anything else."""
    if name not in _OPTIONS or not _is_setting(value):
        return None
    words, set_, reset = _OPTIONS[name]
    limit = name == "power_limit_w"
    ends = [f"{end:g}" if limit else f"{round(end)}" for end in (lower(value), upper(value))]
    shown = "–".join(dict.fromkeys(ends))
    return _Option(words.format(shown, *ends), set_.format(shown, *ends), reset, limit)


def _in_comment(text: str) -> str:
    """Text that cannot leave its comment."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _is_setting(value: Value | Setting) -> TypeGuard[Setting]:
    ends = value if isinstance(value, tuple) else (value,)
    return all(isinstance(end, int | float) and not isinstance(end, bool) and end > 0 for end in ends)
