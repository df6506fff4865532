"""`CommandLine`: a command of the program as a line for a shell, and as a script in Python."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ... import __version__
from ...errors import InputError
from ...own_installation import can_be_imported, own_program

_PLAIN: Final = re.compile(r"[\w@+=:,./\\-]+", re.ASCII)  # no quotes are needed, in any shell of Windows
# Within double quotes cmd or PowerShell still gives these a meaning, and each another one.
_UNQUOTABLE: Final = re.compile(r'["%$`!\x00-\x1f\x7f]')


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The words of a command, without the program's name; `about` says what it gives, in words."""

    words: tuple[str, ...]
    about: str

    def shell(self, *, windows: bool = os.name == "nt") -> str:
        """The line, quoted for the shells of the platform.

        Raises InputError for a word that cmd and PowerShell do not both take as it is.
        """
        words = (own_program(), *self.words)
        return " ".join(map(_quoted_for_windows, words)) if windows else shlex.join(words)

    def python(self) -> str:
        """A script that does the same, and has the result as Python's own types.

        It imports this package where the user's Python has it, and else calls the program.
        """
        head = f'"""{_as_docstring(self.about)}\n\nWritten by Wattridge {__version__}, which it needs.\n"""\n\n'
        imported = can_be_imported()
        if self.words[0] == "monitor" and imported:
            return head + _measuring(self.words)
        listed = "".join(f"    {word!r},\n" for word in self.words)
        program = 'sys.executable, "-m", "wattridge"' if imported else repr(own_program())
        run = _RUN.format(program=program, words=listed)
        return head + run + _LOOK.get(self.words[0], _LOOK_AT_ALL)


_RUN: Final = """\
import json
import subprocess
import sys

words = [
{words}]
command = [{program}, *words, "--json"]
done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
if done.returncode:
    print(done.stdout, file=sys.stderr)  # what failed, where, and the remedy
    sys.exit(done.returncode)
result = json.loads(done.stdout)

"""

_LOOK_AT_ALL: Final = "print(json.dumps(result, indent=2))\n"
_LOOK_AT_SEARCH: Final = """\
front = [{**point["configuration"], **point["values"]} for point in result["front"]]  # pandas.DataFrame(front)
print(f"session {result['session']}: {result['evaluated']} of {result['valid']} configurations measured")
print("best:", result["best"])
for point in front:
    print(point)
"""
_LOOK: Final = {"tune": _LOOK_AT_SEARCH, "replay": _LOOK_AT_SEARCH}

_MEASURE: Final = """\
import time

from wattridge import measure

with measure(gpu=GPU) as m:
    time.sleep(SECONDS)  # or the code to be measured

print(f"{m.gpu} ({m.source}): {m.time_s:.1f} s, {m.energy_j:.1f} J, {m.mean_power_w:.1f} W, {m.unknown}")
trace = {"time_s": m.times_s, "power_w": m.power_w, "clock_mhz": m.clock_mhz}  # pandas.DataFrame(trace)
print(f"{len(m.times_s)} readings")
"""


def _measuring(words: Sequence[str]) -> str:
    given = dict(zip(words[1::2], words[2::2], strict=True))
    gpu = repr(given["--gpu"]) if "--gpu" in given else "None"
    return _MEASURE.replace("GPU)", f"{gpu})").replace("SECONDS", given.get("--duration", "10"))


def _as_docstring(text: str) -> str:
    """One line that ends no string."""
    return " ".join(text.replace("\\", "/").replace('"', "'").split())


def _quoted_for_windows(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    found = _UNQUOTABLE.search(word)
    if found is not None:
        raise InputError(
            f"{found[0]!r} in '{word}' means something else to each shell of Windows", "copy", "copy it as Python"
        )
    return f'"{word}{_closing_backslashes(word)}"'


def _closing_backslashes(word: str) -> str:
    """Those before a closing quote are doubled, or they would escape it."""
    return "\\" * (len(word) - len(word.rstrip("\\")))
