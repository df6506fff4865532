"""Parameters as a C header: valid identifiers, an include guard, and comments that cannot end early."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..results.measurement import Value

_KEYWORD = re.compile(
    "alignas|alignof|and|asm|auto|bool|break|case|catch|char|class|const|constexpr|continue|default|defined|delete|do"
    "|double|else|enum|explicit|export|extern|false|final|float|for|friend|goto|if|inline|int|long|mutable|namespace|new"
    "|not|nullptr|operator|or|override|private|protected|public|register|restrict|return|short|signed|sizeof|static"
    "|struct|switch|template|this|throw|true|try|typedef|typename|union|unsigned|using|virtual|void|volatile|while|xor"
)


def c_header(
    title: str, parameters: Mapping[str, Value], remarks: Sequence[str], declaration: Sequence[str] = ()
) -> str:
    """A header that defines each parameter; a name that C does not allow is changed, the original beside it.

    `declaration` are lines of C that stand before the macros.
    """
    guard = f"WATTRIDGE_{identifier(title).upper()}_H"
    lines = [
        "/*",
        *(f" * {comment_text(remark)}" for remark in remarks),
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        *declaration,
        *([""] if declaration else []),
    ]
    used = {guard}
    for name, value in parameters.items():
        written = identifier(name)
        while written in used:
            written += "_"
        used.add(written)
        original = "" if written == name else f" /* {comment_text(name)} */"
        lines.append(f"#define {written} {c_value(value)}{original}")
    return "\n".join([*lines, "", f"#endif /* {guard} */", ""])


def identifier(name: str) -> str:
    """The name as a C identifier that is no keyword: 'block size' -> 'block_size', '2d' -> '_2d', 'int' -> 'int_'."""
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name) or "_"
    if plain[0].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if _KEYWORD.fullmatch(plain) else plain


def c_value(value: Value) -> str:
    """A value as C reads it: 1 and 0 for truth values, words as they are, other text as a string literal."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, int | float):
        return f"({value!r})" if value < 0 else repr(value)
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        return value
    escaped = "".join(c if c.isascii() and c.isprintable() and c not in '"\\?' else _escape(c) for c in value)
    return f'"{escaped}"'


def _escape(character: str) -> str:
    """Octal escapes end by themselves after three digits, hexadecimal ones do not."""
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", errors="replace"))


def comment_text(text: str) -> str:
    """Text that stays one line and inside its comment."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line.replace("*/", "* /").replace("/*", "/ *").rstrip("\\")
