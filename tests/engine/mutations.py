"""Files that were good once: mutations of their bytes, of their JSON and of their cells, each named by a seed."""

from __future__ import annotations

import copy
import gzip
import json
import random
from collections.abc import Callable
from typing import Any

_PROGRAMS = (
    "__import__('os').system('touch PWNED')",
    "[__import__('os') for _ in [0]]",
    "().__class__.__base__.__subclasses__()",
    "lambda: open('PWNED', 'w')",
    "exec('import os')",
    "range(10**12)",
    "[i for i in range(10**9)]",
    "[i for i in range(65536) for j in range(65536)]",
    "9**9**9**9",
    "2**62 * 2**62",
    "(" * 300 + ")" * 300,
    "-" * 3000 + "1",
    "a" * 5000,
    "[" + "1," * 70000 + "1]",
    "ProblemSize[99]",
    "max(max(max(1)))",
    "x if x else y",
    "1/0",
    "'a' < 1",
    "../../../../etc/passwd",
    "/dev/zero",
    "\x00",
)
_SCALARS: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1e308,
        -1e-320,
        2**63,
        -(2**63),
        10**30,
        10**400,
        1e20,
        0.1,
        "",
        " ",
        "\n",
        "ü",
        "日本",
    ),
    *(
        float("nan"),
        float("inf"),
        float("-inf"),
        "InvalidConfig",
        "RuntimeFailedConfig",
        {"__error__": 5},
        [],
        {},
        [[]],
    ),
)


_MOST_COPIED = 2 << 20  # characters


def mutated(content: bytes, seed: int, *, bombs: bool = True) -> bytes:
    """The content with one to six mutations, decided by the seed alone; gzipped now and then, `bombs` to gigabytes."""
    rng = random.Random(seed)
    packed = content[:2] == b"\x1f\x8b"
    plain = gzip.decompress(content) if packed else content
    if rng.random() < 0.55:
        plain = _of_structure(plain, rng)
    if rng.random() < 0.6:
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            plain = rng.choice(_BYTES)(plain, rng)
    if rng.random() < 0.15:
        plain = _damaged_archive(plain, rng, 1500 if bombs else 3)
    return plain


# --- bytes ------------------------------------------------------------------------------------------------------------


def _flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 3, 20))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _removed(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + data[at + rng.choice((1, 5, 100, 5000)) :]


def _inserted(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_INSERTS) + data[at:]


_INSERTS = (
    *(
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\n",
        b"\r",
        b"-",
        b"1e999",
    ),
    *(b"NaN", b"Infinity", b"-Infinity", b"\\ud800", b"\xc3", b"/*", b"#", b"'", b'""', b"null", b"9" * 5000),
    *(b"[" * 3000, b'{"a":' * 3000, b'"' + b"x" * 300_000 + b'"', b" " * 100_000, b"\n" * 10_000, b"," * 1000),
)


def _repeated(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    piece = data[at : at + rng.choice((1, 30, 400))]
    return data[:at] + piece * rng.choice((2, 50, 2000)) + data[at:]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _swapped(data: bytes, rng: random.Random) -> bytes:
    a, b = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    c = (a + b) // 2
    return data[:a] + data[c:b] + data[a:c] + data[b:]


_BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (_flipped, _removed, _inserted, _repeated, _cut, _swapped)


def _damaged_archive(data: bytes, rng: random.Random, most: int) -> bytes:
    packed = gzip.compress(data, 1)
    match rng.randrange(5):
        case 0:
            return packed[: rng.randrange(len(packed))]
        case 1:
            return _flipped(packed, rng)
        case 2:  # a bomb: as many members as make gigabytes of one letter
            return packed + gzip.compress(rng.choice((b" ", b"0", b"{", b'"', b"1,")) * 2**19, 9) * rng.choice(
                (10, 1500)
            )
        case 3:
            return packed + rng.randbytes(50)
        case _:
            return packed


# --- structure --------------------------------------------------------------------------------------------------------


def _of_structure(plain: bytes, rng: random.Random) -> bytes:
    try:
        document = json.loads(plain)
    except ValueError:
        return _of_cells(plain, rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        document = _changed(document, rng)
    text = json.dumps(document, indent=rng.choice((None, 1)))
    if rng.random() < 0.1:
        text = _with_a_key_twice(text, rng)
    return text.encode()


def _changed(document: Any, rng: random.Random) -> Any:
    """One node of the document, at any depth, made something else."""
    document = copy.deepcopy(document)
    node, depth = document, rng.randrange(6)
    holder: Any = None
    key: Any = None
    while isinstance(node, dict | list) and node and (depth > 0 or holder is None):
        holder, depth = node, depth - 1
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        node = node[key]
    if holder is None:
        return _value(rng)
    match rng.randrange(7):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(("", "time", "wattridge", "cache", "a" * 3000, str(key).upper()))] = holder.pop(key)
        case 2 if isinstance(holder, list):
            holder *= _copies(holder, rng.choice((2, 300)))
        case 3 if isinstance(holder, dict):
            holder |= {f"{key}{n}": node for n in range(_copies(node, rng.choice((1, 50, 1500))))}
        case _:
            holder[key] = _value(rng)
    return document


def _copies(node: Any, wanted: int) -> int:
    """So many, or as many as make a file of a few megabytes: copies of copies of copies fill any memory."""
    return max(1, min(wanted, _MOST_COPIED // len(json.dumps(node))))


def _value(rng: random.Random) -> Any:
    match rng.randrange(6):
        case 0:
            return rng.choice(_PROGRAMS)
        case 1:
            nested: Any = 1
            for _ in range(rng.choice((3, 60, 400))):
                nested = [nested] if rng.random() < 0.5 else {"a": nested}
            return nested
        case 2:
            return rng.choice(("x" * 100_000, list(range(5000)), {str(n): n for n in range(2000)}))
        case _:
            return rng.choice(_SCALARS)


def _with_a_key_twice(text: str, rng: random.Random) -> str:
    places = [at for at, character in enumerate(text) if character == "{"]
    at = rng.choice(places) if places else 0
    return text[: at + 1] + '"cache": {}, "Name": "x", "tune_params_keys": ["a"], ' + text[at + 1 :]


def _of_cells(plain: bytes, rng: random.Random) -> bytes:
    """The same for a table of cells."""
    rows = [line.split(b",") for line in plain.split(b"\n")]
    for _ in range(rng.choice((1, 3, 10))):
        row = rng.choice([row for row in rows if row] or [[b""]])
        at = rng.randrange(len(row))
        match rng.randrange(5):
            case 0:
                del row[at]
            case 1:
                row.insert(at, row[at])
            case 2:
                rows.append(list(row))
            case _:
                value = _value(rng)
                row[at] = (value if isinstance(value, str) else str(value)).encode("utf-8", "replace")
    return b"\n".join(b",".join(row) for row in rows)
