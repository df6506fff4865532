"""Specifications that were good once: mutations of their lines, numbers, operators and words, each named by a seed."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from mutations import mutated as mutated_bytes

_NUMBERS = (
    *("0", "-1", "1", "2", "3", "7", "1000", "65536", "65537", "1000000", "10**9", "2**31", "2**62", "2**63", "10**18"),
    *("1e308", "1e-320", "nan", "inf", "-inf", "0.1", "999999999999999999999999", "1_000", "0x10", "true", "'x'", "[]"),
)
_OPERATORS = (
    *("+", "-", "*", "**", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or", "in", "not in", "is", "@"),
    *("&", "|", "<<", ":=", "if", ".", ",", "="),
)
_EXPRESSIONS = (
    "__import__('os').system('touch PWNED')",
    "open('PWNED', 'w')",
    "().__class__.__base__.__subclasses__()",
    "[x for x in range(10**9)]",
    "range(10**12)",
    "range(0, 10**9, 1)",
    "range(1, 65536)",
    "range(65537)",
    "range(dim, 65000, 1)",
    "range(-10**6, 10**6, 37)",
    "range(n)",
    "9**9**9**9",
    "2**62 * 2**62 == 4",
    "'a' * 10**9 == 'b'",
    "1 / 0",
    "1 % 0 == 0",
    "not not not not n",
    "n in [1, 2, 3, n]",
    "max(max(max(1)))",
    "n if n else n",
    "sqrt(-n) < log(0)",
    "round(n, 400)",
    "n ** -n ** n",
    "(" * 250 + "1" + ")" * 250,
    "-" * 3000 + "1",
    " and ".join(["n > 0"] * 500),
    " or ".join(["n > 0"] * 500),
    " + ".join(["n"] * 1500),
    "n < " * 900 + "n",
    "a" * 3999,
    "n\n> 1",
    "\\u0000",
)
_LINES = (
    "[parameters]",
    "[constants]",
    'huge = "range(0, 65000)"',
    'chain_a = "range(1, 60000)"\nchain_b = "range(chain_a, 60000)"\nchain_c = "range(chain_b, 60000)"',
    'ring_a = "ring_b"\nring_b = "ring_a"',
    "\n".join(f"wide_{i} = [{', '.join(map(str, range(200)))}]" for i in range(8)),
    "\n".join(f"many_{i} = [1, 2]" for i in range(70)),
    "\n".join(f"bits_{i} = [0, 1]" for i in range(23)),
    "\n".join(f'like_{i} = "range(n, n + 60000)"' for i in range(5)),
    f"long = [{', '.join(map(str, range(70_000)))}]",
    f"deep = {'[' * 400}{']' * 400}",
    f'text = "{"x" * 100_000}"',
    "\n".join(f'metric_{i} = "n + {i}"' for i in range(3000)),
    "\n".join(f"constant_{i} = {i}" for i in range(3000)),
)


def mutated(content: bytes, seed: int) -> bytes:
    """The content with one to six mutations, decided by the seed alone."""
    rng = random.Random(seed)
    if rng.random() < 0.08:
        return mutated_bytes(content, seed)
    text = content.decode()
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        text = rng.choice(_TEXTUAL)(text, rng)
    return text.encode("utf-8", "surrogatepass")


def _one_replaced(pattern: str, text: str, words: tuple[str, ...], rng: random.Random) -> str:
    places = list(re.finditer(pattern, text))
    if not places:
        return text
    place = rng.choice(places)
    return text[: place.start()] + rng.choice(words) + text[place.end() :]


def _number(text: str, rng: random.Random) -> str:
    return _one_replaced(r"\b\d[\d.e]*\b", text, _NUMBERS, rng)


def _operator(text: str, rng: random.Random) -> str:
    return _one_replaced(r"[-+*/%<>=!]=?|\b(?:and|or|in|not)\b", text, _OPERATORS, rng)


def _name(text: str, rng: random.Random) -> str:
    names = tuple(re.findall(r"\b[a-z_]\w*\b", text)) or ("x",)
    return _one_replaced(r"\b[a-z_]\w*\b", text, names, rng)


def _expression(text: str, rng: random.Random) -> str:
    """A text in quotes made another, or a condition more."""
    wanted = rng.choice(_EXPRESSIONS).replace("dim", rng.choice(re.findall(r"\b[a-z_]\w*\b", text) or ["x"]))
    quoted = '"' + wanted.replace('"', "'") + '"'
    if rng.random() < 0.3 and "restrictions = [" in text:
        return text.replace("restrictions = [", f"restrictions = [{quoted}, ", 1)
    return _one_replaced(r'"[^"\n]*"', text, (quoted,), rng)


def _line(text: str, rng: random.Random) -> str:
    lines = text.split("\n")
    at = rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        case 2:
            lines[at], lines[-1 - at] = lines[-1 - at], lines[at]
        case _:
            lines.insert(at, rng.choice(_LINES))
    return "\n".join(lines)


def _parameters(text: str, rng: random.Random) -> str:
    """More parameters, where they count."""
    return text.replace("[parameters]\n", f"[parameters]\n{rng.choice(_LINES)}\n", 1)


def _list(text: str, rng: random.Random) -> str:
    """A list of values made longer, or a range."""
    long = ", ".join(map(str, range(rng.choice((30, 500, 5000)))))
    return _one_replaced(r"\[[-\d., ]+\]", text, (f"[{long}]", '"range(0, 5000)"', '"range(1, 60000, 3)"'), rng)


_TEXTUAL: tuple[Callable[[str, random.Random], str], ...] = (
    *(_number, _number, _number, _operator, _name, _expression, _line, _parameters, _list, _list),
)
