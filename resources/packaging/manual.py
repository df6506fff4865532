"""The manual pages, one for the program and one per command, in the language of man(7)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from command_line import Command, Option

_STATUS = (("0", "done"), ("1", "it failed"), ("2", "the input or the usage is wrong"))
_ENVIRONMENT = (
    ("WATTRIDGE_DATA", "the folder for sessions and exports, instead of the user's data folder"),
    ("WATTRIDGE_READ_ONLY", "1 forbids every setting of real boards"),
    ("WATTRIDGE_TRACEBACK", "1 shows where a fault of the program happened"),
    ("QT_QPA_PLATFORM", "how windows are shown: xcb, wayland, offscreen"),
)
_FILES = (
    ("/etc/wattridge/policy.conf", "what may be set on the boards of this machine, and by whom"),
    ("~/.local/share/wattridge", "sessions, exports and logs of the user"),
)
_HELPER = """\
.SH NAME
wattridge\\-control \\- sets the clocks and the power limit of a GPU for Wattridge
.SH SYNOPSIS
.B /usr/lib/wattridge/wattridge\\-control
.I UUID
.br
.B /usr/lib/wattridge/wattridge\\-control \\-\\-restore
.SH DESCRIPTION
The only part of Wattridge that runs with the rights of root. It is started through
.BR pkexec (1)
or
.BR sudo (8)
when control is switched on, sets one board as lines of JSON on its standard input ask for, within the ranges that the
driver and the policy allow, and puts back what was there before when its input ends or falls silent, or when it is
told to end.
.PP
With
.B \\-\\-restore
it puts back every board that a crash left set, as wattridge\\-restore.service does; at the start of the machine, which
has ended every setting, it clears the records.
.SH FILES
.TP
.I /etc/wattridge/policy.conf
what may be set, and by whom
.TP
.I /var/lib/wattridge
what each board was set to before, while it is set
.SH SEE ALSO
.BR wattridge (1),
.BR wattridge\\-helper (1)
"""


def pages(commands: Mapping[str, Command], version: str, date: str) -> dict[str, str]:
    """By file name (`wattridge-tune.1`) the page; `date` is YYYY-MM-DD."""
    made = {}
    for name, command in commands.items():
        title = f"wattridge-{name}" if name else "wattridge"
        made[f"{title}.1"] = _page(title, command, commands, version, date)
    made["wattridge-control.8"] = _head("wattridge-control", 8, version, date) + _HELPER
    return made


def _page(title: str, command: Command, commands: Mapping[str, Command], version: str, date: str) -> str:
    summary = command.about.partition(". ")[0].rstrip(".") if command.name == "" else command.about
    parts = [_head(title, 1, version, date), ".SH NAME\n", f"{_text(title)} \\- {_text(summary)}\n"]
    parts += [".SH SYNOPSIS\n", f".B {_text(command.usage)}\n", ".SH DESCRIPTION\n", f"{_text(command.about)}\n"]
    placed = [option for option in command.options if not option.flags]
    flagged = [option for option in command.options if option.flags]
    for heading, options in (("ARGUMENTS", placed), ("OPTIONS", flagged)):
        if options:
            parts += [f".SH {heading}\n", *map(_option, options)]
    if command.name == "":
        parts.append(".SH COMMANDS\n")
        named = [each for name, each in commands.items() if name]
        parts += [f".TP\n.BR {_text(f'wattridge-{each.name}')} (1)\n{_text(each.about)}\n" for each in named]
    parts += [".SH EXIT STATUS\n", *(f".TP\n.B {code}\n{_text(what)}\n" for code, what in _STATUS)]
    if command.name == "":
        parts += [".SH ENVIRONMENT\n", *(f".TP\n.B {_text(name)}\n{_text(what)}\n" for name, what in _ENVIRONMENT)]
        parts += [".SH FILES\n", *(f".TP\n.I {_text(name)}\n{_text(what)}\n" for name, what in _FILES)]
    others = ["wattridge-control (8)"] if command.name in ("", "helper", "apply", "restore") else []
    others += ["wattridge (1)"] if command.name else ["nvidia-smi (1)"]
    parts += [".SH SEE ALSO\n", ",\n".join(f".BR {_text(each)}" for each in others).replace(",\n", " ,\n"), "\n"]
    return "".join(parts)


def _head(title: str, section: int, version: str, date: str) -> str:
    return f'.TH "{title.upper()}" {section} {date} "Wattridge {version}" "Wattridge"\n.nh\n.ad l\n'


def _option(option: Option) -> str:
    if option.flags:
        words = ", ".join(f"\\fB{_text(flag)}\\fR" for flag in option.flags)
        words += f" \\fI{_text(option.value)}\\fR" if option.value else ""
    else:
        words = f"\\fI{_text(option.value)}\\fR"
    return f".TP\n{words}\n{_text(option.help) or chr(92) + '&'}\n"


def _text(text: str) -> str:
    """Plain text for troff: nothing in it is a request or an escape."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("^", "\\(ha").replace("~", "\\(ti")
    return re.sub(r"^([.'])", r"\\&\1", escaped)
