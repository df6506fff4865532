"""Count the helpers that test files define for themselves: what is neither a test nor a fixture.

Functions, methods and classes of every `test_*.py` and `conftest.py` are counted, also those inside of other functions;
a class of tests is a test. What several files need belongs to `tests/fixtures`, which is not counted. Run it in the
checkout: `python tests/benchmarks/test_helpers.py` prints the total, the lines of all tests and the commonest names.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def is_helper(node: Definition) -> bool:
    """Whether `node` is neither a test nor a fixture of pytest's."""
    decorators = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    return not node.name.startswith(("test_", "Test", "pytest_")) and "fixture" not in decorators


def helpers(path: Path) -> Iterator[Definition]:
    """All helpers that the file at `path` defines."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, Definition) and is_helper(node):
            yield node


def main() -> None:
    files = [path for path in TESTS.rglob("*.py") if "benchmarks" not in path.parts]
    tests = [path for path in files if path.name == "conftest.py" or path.name.startswith("test_")]
    defined = [helper for path in tests for helper in helpers(path)]
    print(f"{len(defined)} helpers, {sum(len(path.read_text().splitlines()) for path in files)} lines of Python")
    for name, times in Counter(helper.name for helper in defined).most_common(30):
        print(f"{times:4d} {name}")


if __name__ == "__main__":
    main()
