"""Count the helpers that test files define for themselves: what is neither a test nor a fixture.

Functions and classes at the top of each `test_*.py` and `conftest.py` are counted; what stands inside of them (methods,
functions of a test) is counted apart. What several files need belongs to `tests/fixtures`, which is not counted. Run it
in the checkout: `python tests/benchmarks/test_helpers.py` prints both counts, that of fixtures, the lines of all tests
and the commonest names.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def kind_of(node: Definition) -> str:
    """What `node` is: a 'test', a 'fixture' or a 'helper'."""
    if node.name.startswith(("test_", "Test", "pytest_")):
        return "test"
    return "fixture" if any("fixture" in ast.unparse(decorator) for decorator in node.decorator_list) else "helper"


def definitions(nodes: Iterable[ast.AST]) -> Iterator[Definition]:
    """Those of `nodes` that are functions or classes."""
    return (node for node in nodes if isinstance(node, Definition))


def main() -> None:
    files = [path for path in TESTS.rglob("*.py") if "benchmarks" not in path.parts]
    modules = [ast.parse(path.read_text()) for path in files if path.name.startswith(("test_", "conftest"))]
    top = [node for module in modules for node in definitions(module.body)]
    inside = [node for module in modules for node in definitions(ast.walk(module))]
    kinds, deep = Counter(map(kind_of, top)), Counter(map(kind_of, inside))
    print(
        f"{kinds['helper']} helpers, {deep['helper'] - kinds['helper']} inside of others, {kinds['fixture']} fixtures"
    )
    print(f"{sum(len(path.read_text().splitlines()) for path in files)} lines of Python")
    for name, times in Counter(node.name for node in top if kind_of(node) == "helper").most_common(20):
        print(f"{times:4d} {name}")


if __name__ == "__main__":
    main()
