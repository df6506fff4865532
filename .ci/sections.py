"""The NumPy sections of docstrings in the packages that other programs call: Parameters, Returns or Yields, Raises.

Ruff's rules hold the form of a section that is there, and that it names every parameter (D417); no rule demands the
section itself. Exempt are functions without parameters, and methods without a docstring that override a documented one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

PACKAGES = (
    "app/scripting/",
    *(f"app/engine/{package}/" for package in ("analysis", "attribution", "metering", "models", "strategies")),
)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_ENTRY = re.compile(r"\w+(, \w+)* : \S|\*")  # "name : type"; "*args" and "**keywords" have none


def lacking(trees: Mapping[str, ast.Module]) -> list[str]:
    """List what the public functions and methods of the packages lack, by the tree of each module of the program."""
    classes = {node.name: node for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef)}
    return [
        f"{name}:{function.lineno} {function.name} {lack}"
        for name, tree in trees.items()
        if name.startswith(PACKAGES)
        for owner in (tree, *(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_"))
        for function in owner.body
        if isinstance(function, _FUNCTIONS) and _needs_sections(function)
        if ast.get_docstring(function) or not _inherits(function.name, owner, classes)
        for lack in _lacks(function)
    ]


def _needs_sections(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in function.decorator_list}
    return function.name[0] != "_" and not decorators & {"property", "cached_property", "overload", "setter"}


def _inherits(name: str, owner: ast.AST, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Whether a base of a class, by its name, has a documented method of that name."""
    bases = [
        classes.get(ast.unparse(base).partition("[")[0].rpartition(".")[2]) for base in getattr(owner, "bases", ())
    ]
    documented = {
        f.name for base in bases if base for f in base.body if isinstance(f, _FUNCTIONS) and ast.get_docstring(f)
    }
    return name in documented or any(_inherits(name, base, classes) for base in bases if base and base is not owner)


def _lacks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    arguments = function.args
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    if not {*named} - {"self", "cls"}:
        return
    doc = ast.get_docstring(function) or ""
    parts = re.split(r"^(\w+)\n-{3,}\n", doc, flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if "Parameters" not in sections:
        yield "has no section Parameters"
    for line in sections.get("Parameters", "").splitlines():
        if line[:1].strip() and not _ENTRY.match(line):
            yield f"has a parameter without a type: {line}"
    nothing = function.returns is None or ast.unparse(function.returns) in ("None", "NoReturn")
    if not nothing and not {"Returns", "Yields"} & {*sections}:
        yield "has no section Returns or Yields"
    if any(isinstance(node, ast.Raise) and node.exc for node in ast.walk(function)) and "Raises" not in sections:
        yield "has no section Raises"
