"""Options for the compilers of OpenCL and of the host's languages, checked when a file is read.

An option that names another output, another program to run or a file of options is none that a specification needs;
what is left, the compiler itself judges.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...errors import InputError

_WITH_A_WORD: Final = frozenset(("-D", "-U", "-I", "-L", "-l", "-isystem", "-include", "-x", "-gpu"))
_PASSED_ON: Final = frozenset(("-Xcompiler", "-Xlinker", "-Xptxas"))  # the next word is another program's option
_REFUSED: Final = re.compile(
    r"-(o.*|-output.*|c|S|E|M.*|-?specs?(=.*)?|B.*|wrapper.*|f(pass-)?plugin.*|fuse-ld=.*/.*|-ld-path.*|dumpdir.*"
    r"|ccbin.*|-compiler-bindir.*|save-temps.*|-?run.*|-options-file.*|Xclang|mllvm|load.*|-load.*)"
)
_MOST: Final = 200


def check_options(options: Sequence[str], where: str) -> None:
    """Raises InputError for the first option that cannot be given."""
    words = iter(options)
    if len(options) > _MOST:
        raise InputError(f"{len(options)} options", where, f"at most {_MOST}")
    for word in words:
        if not word.startswith("-"):
            remedy = "options begin with '-'; more files belong to 'source'"
            raise InputError(f"'{word[:60]}' is no compiler option", where, remedy)
        if _REFUSED.fullmatch(word):
            remedy = "leave it out: Wattridge names the files, and a specification starts no other program this way"
            raise InputError(f"the compiler option '{word[:60]}' cannot be given", where, remedy)
        if word in _PASSED_ON:
            check_options([next(words, "")], where)
        elif word in _WITH_A_WORD:
            next(words, None)
