"""Expressions of T1 in the words of our own: the problem size by its index, a parameter's list by its ends."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ...errors import InputError
from ..expressions.expression import syntax_tree
from ..expressions.grammar import shortened
from ..measurement import Value

PROBLEM_SIZE = "ProblemSize"


class T1Text:
    """Translates expressions of one specification. `lists`: the values of the parameters that have a list."""

    def __init__(self, problem_size: Sequence[str], lists: Mapping[str, Sequence[Value]]) -> None:
        self._problem_size = tuple(problem_size)
        self._lists = lists

    def translated(self, text: str, where: str) -> str:
        """`ProblemSize[0]` and `max(filter_width)` as what they stand for. Raises InputError."""
        tree = syntax_tree(text, where)
        substitution = _Substitution(self._problem_size, self._lists, text, where)
        try:
            changed = substitution.visit(tree)
            return ast.unparse(changed) if substitution.made else text.strip()
        except RecursionError:
            raise InputError(f"'{shortened(text)}' is nested too deeply", where, "write it shorter") from None


class _Substitution(ast.NodeTransformer):
    def __init__(
        self, problem_size: Sequence[str], lists: Mapping[str, Sequence[Value]], text: str, where: str
    ) -> None:
        self.made = False
        self._problem_size = problem_size
        self._lists = lists
        self._text = text
        self._where = where

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=int() as index)) if (
                name == PROBLEM_SIZE and not isinstance(index, bool) and 0 <= index < len(self._problem_size)
            ):
                return self._put(self._problem_size[index])
            case ast.Subscript(value=ast.Name(id=name)) if name == PROBLEM_SIZE:
                pass
            case _:
                return self.generic_visit(node)  # type: ignore[return-value]  # whoever reads it on refuses it
        what = f"'{shortened(ast.unparse(node))}' in '{shortened(self._text)}'"
        size = len(self._problem_size)
        raise InputError(what, self._where, f"{PROBLEM_SIZE} has {size} parts here, counted from 0")

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == PROBLEM_SIZE and len(self._problem_size) == 1:
            return self._put(self._problem_size[0])
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Name(id="max" | "min" as end), args=[ast.Name(id=name)], keywords=[]):
                numbers = [value for value in self._lists.get(name, ()) if isinstance(value, int | float)]
                if numbers:
                    self.made = True
                    return ast.Constant(max(numbers) if end == "max" else min(numbers))
        self.generic_visit(node)
        return node

    def _put(self, text: str) -> ast.expr:
        self.made = True
        return syntax_tree(text, self._where)


def inlined(text: str, where: str, known: Mapping[str, Value], renamed: Mapping[str, str] | None = None) -> str:
    """The expression with known names replaced by their values, and others renamed. Raises InputError."""
    tree = syntax_tree(text, where)
    insertion = _Insertion(known, renamed or {})
    try:
        changed = insertion.visit(tree)
        return ast.unparse(changed) if insertion.made else text.strip()
    except RecursionError:
        raise InputError(f"'{shortened(text)}' is nested too deeply", where, "write it shorter") from None


class _Insertion(ast.NodeTransformer):
    def __init__(self, known: Mapping[str, Value], renamed: Mapping[str, str]) -> None:
        self.made = False
        self._known = known
        self._renamed = renamed

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]  # the function's name is no name of ours
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._known:
            self.made = True
            return ast.Constant(self._known[node.id])
        if node.id in self._renamed:
            self.made = True
            return ast.Name(self._renamed[node.id], ast.Load())
        return node
