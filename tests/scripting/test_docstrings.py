"""The examples in the docstrings of the public names run, print what they say, and every public function has one."""

from __future__ import annotations

import doctest
import inspect
import sys

import pytest

import app

PUBLIC = sorted(name for name in app.__all__ if inspect.isfunction(getattr(app, name)))


@pytest.mark.parametrize("name", PUBLIC)
def test_the_example_of_a_public_function_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wattridge", app)  # as the package is called once installed
    function = getattr(app, name)
    (found,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert found.examples, f"{name} has no example"
    tried = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(found)
    skipped = sum(example.options.get(doctest.SKIP, False) for example in found.examples)
    assert tried.failed == 0
    assert len(found.examples) - skipped > 1


def test_there_are_functions_to_be_tried() -> None:
    assert {"analyse", "boards", "export", "fit", "measure", "open_session", "roofline", "tune"} <= set(PUBLIC)
