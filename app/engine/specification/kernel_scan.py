"""What the source of a CUDA kernel says of itself: its kernels, their arguments, and names that look tunable.

This reads text, it does not compile: what it cannot know it guesses, and every guess says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from ..results.measurement import Value

MOST: Final = 1 << 17  # characters of a source that are looked at
_MOST_KERNELS: Final = 32
_MOST_NAMES: Final = 64  # that are suggested
_NEAR: Final = 40  # characters beside a name that are looked at
_LONGEST: Final = 500  # characters of a declaration that are looked at
_NOISE: Final = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_DIRECTIVE: Final = re.compile(r"^[ \t]*#[ \t]*(\w+)[ \t]*(.*)$", re.MULTILINE)
_DEFINE: Final = re.compile(r"([A-Za-z_]\w*)(\([^)]*\))?[ \t]*(.*)")
_NAME: Final = re.compile(r"\b[A-Za-z_]\w*")
_KERNEL: Final = re.compile(r"__global__\b")
_TYPEDEF: Final = re.compile(r"\btypedef\s+([\w ]{1,80}?)\s+(\w+)\s*;|\busing\s+(\w+)\s*=\s*([\w ]{1,80}?)\s*;")
_DECLARATION: Final = re.compile(  # a type, and the first name of that type
    r"(?:^|[;{}(),<]|\b(?:const|static|constexpr|extern|volatile|unsigned|signed|inline)\b)\s*"
    r"([A-Za-z_]\w*(?:\s*<[^<>;]*>)?(?:\s+(?:int|long|char|short|const))*)[\s*&]+"
    r"(?:__\w+__\s*|__restrict\s+|const\s+)*([A-Za-z_]\w*)(?=\s*([=;,\[\](){:]))"
)
_QUALIFIERS: Final = re.compile(
    r"__align__\s*\((?:[^()]|\([^()]*\))*\)|__(?:shared|device|constant|host|forceinline|noinline|managed|restrict)__"
)
_ATTRIBUTE: Final = re.compile(r"__launch_bounds__\s*\(|__cluster_dims__\s*\(|__attribute__\s*\(|alignas\s*\(")
_WORDS: Final = frozenset(  # of the language, and of CUDA
    re.findall(
        r"\w+",
        """
        alignas alignof auto bool break case char class const constexpr continue default defined delete do double
        else enum explicit extern false final float for friend goto half if ifdef ifndef inline int long mutable
        namespace new noexcept nullptr operator private protected public register reinterpret_cast static_cast
        const_cast return short signed sizeof static static_assert struct switch template this true typedef
        typename union unroll unsigned using virtual void volatile while pragma once elif endif define undef
        include error warning assert std cuda threadIdx blockIdx blockDim gridDim warpSize size_t ptrdiff_t uint
        uchar ushort ulong clock_t cudaError_t INFINITY NAN INT_MAX INT_MIN UINT_MAX FLT_MAX FLT_MIN FLT_EPSILON
        DBL_MAX DBL_MIN CHAR_BIT NULL M_PI asm nvcuda wmma printf dim3 __CUDA_ARCH__ __CUDACC__ __NVCC__
        __cplusplus __half __half2 __nv_bfloat16 nv_bfloat16
        """,
    )
)
_VECTOR: Final = re.compile(r"(char|uchar|short|ushort|int|uint|long|ulong|longlong|float|double|half)([1-4])")
_TYPES: Final[Mapping[str, str]] = {
    "float": "float32", "double": "float64", "half": "float16", "__half": "float16", "bool": "bool",
    "__nv_bfloat16": "bfloat16", "nv_bfloat16": "bfloat16",
    "char": "int8", "signed char": "int8", "unsigned char": "uint8", "uchar": "uint8", "int8_t": "int8",
    "uint8_t": "uint8", "short": "int16", "unsigned short": "uint16", "ushort": "uint16", "int16_t": "int16",
    "uint16_t": "uint16", "int": "int32", "unsigned": "uint32", "unsigned int": "uint32", "uint": "uint32",
    "int32_t": "int32", "uint32_t": "uint32", "long": "int64", "unsigned long": "uint64", "long long": "int64",
    "unsigned long long": "uint64", "size_t": "uint64", "int64_t": "int64", "uint64_t": "uint64",
    "ptrdiff_t": "int64", "cuFloatComplex": "complex64", "cuDoubleComplex": "complex128",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a kernel. `type` is a NumPy type name, '' where the C++ type is not known."""

    name: str
    declared: str  # as the source has it
    type: str
    pointer: bool
    constant: bool  # what it points to is const
    width: int = 1  # numbers in one element: 4 of a float4


@dataclass(frozen=True, slots=True)
class Kernel:
    """A `__global__` function. `names` has several where a macro gives its name."""

    names: tuple[str, ...]
    arguments: tuple[Argument, ...]
    template: tuple[tuple[str, str], ...] = ()  # (kind, name) of each template parameter
    dimensions: int = 1  # of its blocks, as its body uses them


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A name that may be a parameter, or a constant where `values` has one only, and why it is thought so."""

    name: str
    values: tuple[Value, ...]
    why: str
    tunable: bool


@dataclass(frozen=True, slots=True)
class Scan:
    kernels: tuple[Kernel, ...]
    suggestions: tuple[Suggestion, ...]
    symbols: tuple[tuple[str, str, str], ...]  # __constant__ arrays: name, NumPy type, extent
    fixed: tuple[str, ...]  # '#define's of a number that cannot be set from outside
    names: frozenset[str]  # every name in the source


def scan_kernels(source: str) -> Scan:
    """What is found in a source; nothing at all in a text that is none."""
    text = _NOISE.sub(_blank, source[:MOST].replace("\\\n", "  "))
    macros, guarded = _macros(text)
    code = _DIRECTIVE.sub(lambda match: " " * len(match[0]), text)
    for old, new, alias, meant in _TYPEDEF.findall(code):
        macros.setdefault(new or alias, ("", (old or meant,)))
    kernels = tuple(_kernels(code, macros))
    known = {name for kernel in kernels for _, name in kernel.template}
    known |= {name for kernel in kernels for name in kernel.names}
    suggestions = {element.name: element for element in _of_guarded(guarded)}
    for item in _of_unknown(text, code, macros, known):
        suggestions.setdefault(item.name, item)
    dimensions = max((kernel.dimensions for kernel in kernels), default=1)
    names = _with_blocks(suggestions, dimensions)
    fixed = tuple(
        f"{name} = {bodies[0]}"
        for name, (given, bodies) in macros.items()
        if name not in guarded and not given and _is_number(bodies[0])
    )
    symbols = tuple(
        (name, _type_of(declared.split(), macros)[0], extent.strip())
        for declared, name, extent in re.findall(r"__constant__\s+([\w ]{1,80}?)\s+(\w+)\s*\[([^\]]+)\]\s*;", code)
    )
    return Scan(kernels, names[:_MOST_NAMES], symbols, fixed, frozenset(_NAME.findall(text)))


# --- macros -----------------------------------------------------------------------------------------------------------

_Macros = dict[str, tuple[str, tuple[str, ...]]]  # name -> its parameters, '' for none, and its bodies, one at least


def _blank(match: re.Match[str]) -> str:
    """Spaces in place of a comment or text, lines kept."""
    return re.sub(r"[^\n]", " ", match[0])


def _macros(text: str) -> tuple[_Macros, dict[str, str]]:
    """Every macro, and the values of those that are defined only where they are not defined from outside."""
    macros: _Macros = {}
    guarded: dict[str, str] = {}
    depth: list[bool] = []  # of each open #if: whether it is an #ifndef of something that it then defines
    for kind, rest in _DIRECTIVE.findall(text):
        if kind in ("if", "ifdef", "ifndef"):
            depth.append(kind == "ifndef")
        elif kind in ("else", "elif") and depth:
            depth[-1] = False
        elif kind == "endif" and depth:
            depth.pop()
        elif kind == "define" and (match := _DEFINE.match(rest)):
            name, given, body = match[1], match[2] or "", match[3].strip()
            macros[name] = (given, (*macros.get(name, ("", ()))[1], body))
            if any(depth) and not given and body:  # an include guard has no body
                guarded.setdefault(name, body)
    return macros, guarded


def _body(name: str, macros: _Macros) -> str:
    """What a macro stands for where it is defined first; '' if it is none."""
    return macros[name][1][0] if name in macros else ""


def _is_number(text: str) -> bool:
    return _value_of(text) is not None and not isinstance(_value_of(text), str)


def _value_of(text: str) -> Value | None:
    """A number as C++ writes it, or a bare word; None for anything else."""
    bare = text.strip("() \t")
    if re.fullmatch(r"-?(0[xX][\da-fA-F]+|\d+)[uUlL]*", bare):
        return int(bare.rstrip("uUlL"), 0) if not re.match(r"-?0\d", bare) else int(bare.rstrip("uUlL"))
    if re.fullmatch(r"-?(\d+\.\d*|\.\d+|\d+)([eE][+-]?\d{1,3})?[fF]?", bare):
        number = float(bare.rstrip("fF"))
        return number if math.isfinite(number) else None
    return bare if _NAME.fullmatch(bare) else None


# --- kernels ----------------------------------------------------------------------------------------------------------


def _kernels(code: str, macros: _Macros) -> Iterable[Kernel]:
    for match in islice(_KERNEL.finditer(code), _MOST_KERNELS):
        head, at = _head(code, match.end())
        if at < 0:
            continue
        close = _closing(code, at)
        after = close + 1 + len(code[close + 1 :]) - len(code[close + 1 :].lstrip()) if close >= 0 else -1
        names: tuple[str, ...]
        if close >= 0 and code[after : after + 1] == "(":  # a macro with arguments gives the name
            names, at = _named_by(head, macros), after
            close = _closing(code, at)
        else:
            bodies = macros[head][1] if head in macros else (head,)
            names = tuple(dict.fromkeys(body for body in bodies if _NAME.fullmatch(body)))
        if close < 0 or not names:
            continue
        open_brace = code.find("{", close)
        end = _closing(code, open_brace) if open_brace >= 0 else -1
        body = code[open_brace : end if end >= 0 else len(code)] if open_brace >= 0 else ""
        if open_brace < 0 or ";" in code[close:open_brace]:
            continue  # a declaration alone
        expanded = _expanded_names(body, macros)
        dimensions = 3 if _uses_axis(expanded, body, "z") else 2 if _uses_axis(expanded, body, "y") else 1
        arguments = tuple(_arguments(code[at + 1 : close], macros))
        yield Kernel(
            names, arguments, tuple(_template(code[max(0, match.start() - _LONGEST) : match.start()])), dimensions
        )


def _uses_axis(names: frozenset[str], body: str, axis: str) -> bool:
    return f"block_size_{axis}" in names or re.search(rf"\b(threadIdx|blockDim)\s*\.\s*{axis}\b", body) is not None


def _head(code: str, position: int) -> tuple[str, int]:
    """The name before the parenthesis of the arguments, and the place of that parenthesis; -1 if there is none."""
    rest = code[position : position + 2 * _LONGEST]
    while attribute := _ATTRIBUTE.search(rest):
        close = _closing(rest, attribute.end() - 1)
        if close < 0:
            return "", -1
        rest = rest[: attribute.start()] + " " * (close + 1 - attribute.start()) + rest[close + 1 :]
    match = re.search(r"([A-Za-z_]\w*)\s*\(", rest)
    if match is None or re.search(r"[;{}]", rest[: match.start()]):
        return "", -1
    return match[1], position + match.end() - 1


def _closing(text: str, position: int) -> int:
    """Where the bracket at a place is closed, -1 where it is not."""
    pairs = {"(": ")", "{": "}", "<": ">"}
    if position < 0 or text[position : position + 1] not in pairs:
        return -1
    opening, closing, depth = text[position], pairs[text[position]], 0
    for place in range(position, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place
    return -1


def _named_by(macro: str, macros: _Macros) -> tuple[str, ...]:
    """The names that a macro such as NAME(type) can give: those of the macros that begin as something it pastes."""
    seen, waiting, names = {macro}, [macro], dict[str, None]()
    while waiting:
        for part in _NAME.findall(_body(waiting.pop(), macros)):
            for name, (given, (body, *_)) in macros.items():
                begins = name == part or (part.endswith("_") and name.startswith(part))
                if begins and name not in seen:
                    seen.add(name)
                    waiting.append(name)
                    if not given and _NAME.fullmatch(body):
                        names[body] = None
    return tuple(names) or ((macro,) if macro not in macros else ())


def _template(before: str) -> Iterable[tuple[str, str]]:
    """The parameters of the template that ends a text."""
    templates = list(re.finditer(r"\btemplate\s*<", before))
    if not templates:
        return
    open_at = templates[-1].end() - 1
    close = _closing(before, open_at)
    between = before[close + 1 :]
    if close < 0 or re.search(r"[;{}]", between):
        return
    for part in _split(before[open_at + 1 : close]):
        words = _NAME.findall(part.split("=")[0])
        if len(words) >= 2:
            yield " ".join(words[:-1]), words[-1]


def _split(text: str) -> list[str]:
    """The parts between the commas that are in no brackets."""
    parts, depth, last = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and depth <= 0:
            parts.append(text[last:place])
            last = place + 1
    return [part for part in (*parts, text[last:]) if part.strip()]


def _arguments(text: str, macros: _Macros) -> Iterable[Argument]:
    for index, part in enumerate(_split(text)):
        declared = re.sub(r"__\w+__|__restrict\b|\brestrict\b|\[[^\]]*\]", " ", part.split("=")[0])
        words = _NAME.findall(declared)
        if words in ([], ["void"]):
            continue
        has_name = len(words) > 1 and words[-1] not in _TYPES and words[-1] != "const"
        name, kind = (words[-1], words[:-1]) if has_name else (f"argument_{index}", words)
        pointer = "*" in declared or "[" in part
        constant = "const" in declared.split("*")[0].split()
        type_name, width = _type_of([word for word in kind if word not in ("const", "volatile", "struct")], macros)
        yield Argument(name, " ".join(part.split()), type_name, pointer, constant, width)


def _type_of(words: list[str], macros: _Macros) -> tuple[str, int]:
    """The NumPy type of a C++ type, '' if it is not known, and how many numbers one element has."""
    name = " ".join(word for word in words if word not in ("const", "static"))
    for _ in range(4):  # macros may stand for macros
        if name in _TYPES:
            return _TYPES[name], 1
        if vector := _VECTOR.fullmatch(name):
            return _TYPES.get(vector[1].replace("longlong", "long long"), ""), int(vector[2])
        name = _body(name, macros)
    return "", 1


# --- what may be tuned ------------------------------------------------------------------------------------------------

_SIZES: Final = re.compile(
    r"[nmkNMK]|(\w*_)?(width|height|depth|size|length|count|rows|columns|cols|dim|steps|iterations|rounds|elements)"
    r"|(WIDTH|HEIGHT|DEPTH|SIZE|LENGTH|N[XYZ]|n[xyz])|(num|max|n)_\w+",
)
_TUNED: Final = re.compile(
    r"\w*(block|tile|unroll|vector|per_thread|use_|enable_|stages|chunk|pad|warps|threads|coarsen)\w*", re.IGNORECASE
)
_DEFAULT: Final = (1, 2, 4, 8)
_LARGEST: Final = 1024  # a default beyond it is the size of a problem


def _of_guarded(guarded: Mapping[str, str]) -> Iterable[Suggestion]:
    """Macros that the source sets only where the compiler's command line does not."""
    for name, body in guarded.items():
        value = _value_of(body)
        if value is None:
            continue
        why = f"the source sets {name} to {body} where it is not set from outside"
        tuned = bool(_TUNED.fullmatch(name)) or not _SIZES.fullmatch(name)
        if isinstance(value, int) and tuned and 0 <= value <= _LARGEST and (value or not _SIZES.fullmatch(name)):
            yield Suggestion(name, values_like(name, value), why, True)
        else:
            yield Suggestion(name, (value,), why, False)


def _standing_alone(part: str) -> Iterable[str]:
    """Names in a part of the source that are no member, no call, and no piece of a pasted name."""
    for match in _NAME.finditer(part):
        before = part[max(0, match.start() - _NEAR) : match.start()].rstrip()[-2:]
        after = part[match.end() : match.end() + _NEAR].lstrip()[:2]
        member = before.endswith(".") or before in ("->", "::") or after == "::"
        if not (member or "##" in (before, after) or after.startswith("(")):
            yield match[0]


def _of_unknown(text: str, code: str, macros: _Macros, known: set[str]) -> Iterable[Suggestion]:
    """Names that the source uses and never declares: they are to be defined from outside."""
    bodies = " ; ".join(f"( {body} )" for _, several in macros.values() for body in several)
    defined = {name for given, _ in macros.values() for name in _NAME.findall(given)}
    declared = _declared(code, macros) | known | defined | set(macros)
    conditions = " ".join(rest for kind, rest in _DIRECTIVE.findall(text) if kind in ("if", "elif"))
    pragmas = " ".join(rest for kind, rest in _DIRECTIVE.findall(text) if kind == "pragma" and "unroll" in rest)
    switches = set(_NAME.findall(conditions))
    wanted = dict.fromkeys(name for part in (code, bodies, conditions, pragmas) for name in _standing_alone(part))
    local_headers = '#include "' in code
    for name in islice(wanted, 20 * _MOST_NAMES):
        ours = name in declared or name in _WORDS or _VECTOR.fullmatch(name) or name in _TYPES
        short = len(name) < 2 or name.endswith("_")  # of a loop or a formula; the beginning of a pasted name
        if (
            ours
            or short
            or name.startswith("__")
            or name.endswith("_t")
            or (local_headers and not _TUNED.fullmatch(name))
        ):
            continue
        if name in switches and not re.search(rf"\b{name}\b", code):
            yield Suggestion(name, (0, 1), f"the source asks `#if {name}` and never defines it", True)
        else:
            yield Suggestion(name, values_like(name), f"the source uses {name} and never declares it", True)


def _declared(code: str, macros: _Macros) -> set[str]:
    """Names that follow a type, a comma in a declaration, or a keyword that declares."""
    code = _QUALIFIERS.sub(" ", code)
    own_types = set(
        re.findall(
            r"\b(?:struct|class|union|enum|typename|using|namespace)\b[^;{(]{0,200}?\b([A-Za-z_]\w*)\s*(?=[;{:=<,>])",
            code,
        )
    )
    own_types |= set(re.findall(r"\btypedef\b[^;]{0,200}?([A-Za-z_]\w*)\s*;", code))
    declared = set(own_types)
    for match in _DECLARATION.finditer(code):
        kind = match[1].split("<")[0].split()[0]
        if kind in ("return", "else", "case", "goto", "new", "delete", "sizeof", "typedef", "using", "struct"):
            continue
        between = code[match.end(1) : match.start(2)]  # what makes a pointer of a type, or a product of two names
        known = (
            bool(_type_of([kind], macros)[0])
            or kind in own_types
            or kind in _WORDS
            or _VECTOR.fullmatch(kind) is not None
        )
        if not known and ("*" in between or "&" in between):
            continue  # a product, most likely
        declared.add(match[2])
        for part in _split(code[match.end(2) : _statement_end(code, match.end(2))])[1:]:
            if (more := re.match(r"\s*[*&]*\s*([A-Za-z_]\w*)\s*(?=[=\[;,(]|$)", part)) is not None:
                declared.add(more[1])
    return declared


def _statement_end(code: str, position: int) -> int:
    """The end of a declaration's list of names: a semicolon, or a bracket that closes what is around it."""
    depth = 0
    for place in range(position, min(len(code), position + _LONGEST)):
        letter = code[place]
        if letter in ";" and depth <= 0:
            return place
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return place
    return position


def _expanded_names(text: str, macros: _Macros) -> frozenset[str]:
    """The names in a text, and in the bodies of the macros among them."""
    seen: set[str] = set()
    waiting = _NAME.findall(text)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += _NAME.findall(_body(name, macros))
    return frozenset(seen)


def values_like(name: str, default: int | None = None) -> tuple[Value, ...]:
    """Values to begin with for a parameter of that name; the source's default is among them."""
    lower = name.lower()
    values: tuple[int, ...] = _DEFAULT
    if "block_size" in lower or "block_dim" in lower or lower in ("block", "threads", "num_threads", "dim_m", "dim_n"):
        values = (
            (1, 2, 4) if lower.endswith("z") else (1, 2, 4, 8, 16) if lower.endswith(("y", "n")) else (32, 64, 128, 256)
        )
    elif lower.startswith(("use_", "enable_", "with_", "is_", "has_", "keep_")):
        values = (0, 1)
    elif "vector" in lower:
        values = (1, 2, 4)
    elif "unroll" in lower:
        values = (1, 2, 4, 8)
    elif "tile_dim" in lower or "tile_width" in lower:
        values = (16, 32, 64)
    elif default is not None and default > 1:
        values = tuple(sorted({max(1, default // 2), default, default * 2}))
    elif default is not None:
        values = (0, 1)
    return tuple(sorted({*values, default})) if default is not None else values


def _with_blocks(suggestions: Mapping[str, Suggestion], dimensions: int) -> tuple[Suggestion, ...]:
    """The suggestions, the shape of a block first; where nothing looks like it, one is suggested."""
    axes = [f"block_size_{axis}" for axis in "xyz"[:dimensions]]
    named = any(
        "block" in name.lower() or "threads" in name.lower() or name == "dim_m"
        for name, s in suggestions.items()
        if s.tunable
    )
    blocks = (
        ()
        if named
        else tuple(
            Suggestion(axis, values_like(axis), "threads of a block: the source leaves their number open", True)
            for axis in axes
        )
    )
    every = (*blocks, *suggestions.values())
    return tuple(sorted(every, key=lambda each: ("block" not in each.name.lower(), not each.tunable)))
