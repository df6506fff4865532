"""Sizes of the program: lines of code and files by package, the longest modules, the most complex functions.

    python .ci/measures.py          prints them; exits with 1 where a limit is passed or a docstring lacks a section

A line of code is one that is not blank, a comment or part of a docstring. Complexity is counted by radon, with
comprehensions and boolean operators.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

from radon.complexity import cc_visit
from sections import lacking

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 700  # of a module, comments and docstrings included
MOST_COMPLEX = 25
_NO_CODE = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """The lines of code of a module's text."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def main() -> int:
    """Print the measures; the exit status."""
    files, code, over = Counter[str](), Counter[str](), list[str]()
    functions: list[tuple[int, str]] = []
    trees: dict[str, ast.Module] = {}
    for path in sorted((ROOT / "app").rglob("*.py")):
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        trees[name] = ast.parse(text)
        parts = name.split("/")[:-1]
        package = "/".join(parts[: 3 if parts[1:2] in (["engine"], ["views"]) else 2])
        files[package] += 1
        code[package] += code_lines(text)
        if (length := text.count("\n")) > MOST_LINES:
            over.append(f"{name} has {length} lines, more than {MOST_LINES}")
        for block in cc_visit(text):
            for member in (block, *getattr(block, "methods", ())):
                if member.letter != "C":
                    functions.append((member.complexity, f"{name} {member.fullname}"))
    for package in sorted(files):
        print(f"{package:24} {files[package]:4} files {code[package]:6} lines of code")
    print(f"{'app':24} {sum(files.values()):4} files {sum(code.values()):6} lines of code")
    functions = sorted(set(functions), reverse=True)
    print("most complex:", *(f"{complexity} {name}" for complexity, name in functions[:5]), sep="\n  ")
    over += [f"{name} has complexity {n}, more than {MOST_COMPLEX}" for n, name in functions if n > MOST_COMPLEX]
    over += lacking(trees)
    print(*over, sep="\n")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
