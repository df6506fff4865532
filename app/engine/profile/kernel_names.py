"""Names of kernels, short enough to read: namespaces, parameters and what only steers the compiler left out.

`void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>
>(int, ...)` becomes `vectorized_elementwise_kernel<CUDAFunctor_add<BFloat16>>`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LONGEST: Final = 20_000  # characters that are looked at
_DEEPEST: Final = 6  # template arguments within each other that are looked at
_OPEN: Final = {"<": ">", "(": ")", "{": "}", "[": "]"}
_CLOSE: Final = frozenset(_OPEN.values())
_RETURNS: Final = re.compile(r"^(?:(?:void|static|auto|inline)\s+)+")
_LAMBDA: Final = re.compile(r"\{lambda\(([^(){}]*)\)#\d+\}")
_MANGLED: Final = re.compile(r"_ZN?K?((?:\d+[A-Za-z_])?.*)")
_STEERS: Final = re.compile(  # numbers, casts of numbers, and how a kernel walks through its tensors
    r"(?:\([^()]*\))?-?\d+[a-z]*|true|false|char\s*\*|unsigned int|"
    r"(?:std::)?(?:array|integral_constant|index_sequence)\b.*|"
    r"(?:\w+::)*(?:Trivial)?(?:Offset|Input)Calculator\b.*|(?:\w+::)*(?:Load|Store)With(?:out)?Cast\b.*|"
    r"(?:\w+::)*(?:OffsetCalculator|TensorListMetadata|FusedOptimizerTensorListMetadata)\b.*"
)
_ABI: Final = re.compile(r"\[abi:\w+\]| \[clone [^\]]*\]")


@lru_cache(maxsize=100_000)
def readable_name(full: str) -> str:
    """Return a kernel's name as a table shows it; one that is no C++ name comes back as it is."""
    text = _ABI.sub("", full[:_LONGEST].strip()).replace("(anonymous namespace)::", "")
    if (mangled := _MANGLED.fullmatch(text)) is not None:
        return _identifiers(mangled[1]) or text
    return _short(_RETURNS.sub("", text), 0) or full


def _short(text: str, depth: int) -> str:
    """A name with those of its template arguments that say something."""
    head, arguments = _parts(text)
    name = re.split(r"::", head.strip())[-1].strip() or head.strip()
    kinds = [kind for kind in _LAMBDA.findall(text[len(head) :]) if kind]
    if arguments is None and kinds and not head.endswith("}"):  # a lambda within a function: the types it works on
        arguments = kinds[-1].split(",")
    shown: list[str] = []
    if depth < _DEEPEST:
        for argument in arguments or ():
            short = "" if _STEERS.fullmatch(argument.strip()) else _short(argument.strip(), depth + 1)
            if short and short not in shown:
                shown.append(short)
    return f"{name}<{', '.join(shown)}>" if shown else name


def _parts(text: str) -> tuple[str, list[str] | None]:
    """What stands before the first bracket, and the template arguments in it, None where it is another bracket."""
    begin = next((place for place, sign in enumerate(text) if sign in _OPEN), len(text))
    head = text[:begin]
    if text[begin : begin + 1] != "<":
        return head, None
    arguments, depth, since = [], 0, begin + 1
    for place in range(begin, len(text)):
        sign = text[place]
        if sign in _OPEN:
            depth += 1
        elif sign in _CLOSE and text[place - 1] != "-":  # no arrow
            depth -= 1
        if (sign == "," and depth == 1) or depth == 0:
            arguments.append(text[since:place])
            since = place + 1
        if depth == 0:
            break
    after = text[since:]
    if after.startswith("::"):  # a member of a template: Kernel<...>::Params
        return _parts(after[2:])
    return head, arguments


def _identifiers(mangled: str) -> str:
    """The last part of a mangled name: `_ZN4flash10fwd_kernelI...` is fwd_kernel."""
    place, name = 0, ""
    while (length := re.compile(r"\d{1,4}").match(mangled, place)) is not None:
        place = length.end() + int(length[0])
        name = mangled[length.end() : place]
    return name
