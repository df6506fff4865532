"""The package as scripts, interactive sessions and type checkers see it."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import app
from app import InputError, WattridgeError, measure, tune

CALLS = {"analyse", "boards", "export", "fit", "open_session", "roofline"}  # what commands do
FUNCTIONS = CALLS | {"mark", "measure", "profile", "tune", "tunable", "tune_kernel", "run_kernel"}
ERRORS = {"InputError", "PermissionRefused", "WattridgeError"}
ROOT = Path(__file__).resolve().parents[2]


def test_names_are_listed_completed_and_imported() -> None:
    assert set(app.__all__) == FUNCTIONS | ERRORS
    public = {name for name in dir(app) if not name.startswith("_")}
    assert public == FUNCTIONS | ERRORS | {"helion", "meters", "observers", "strategies", "triton"}
    namespace: dict[str, object] = {}
    exec("from app import *", namespace)  # noqa: S102
    assert namespace.keys() >= FUNCTIONS | ERRORS
    assert all(callable(getattr(app, name)) for name in app.__all__)
    text = pydoc.plain(pydoc.render_doc(app))
    assert all(f"    {name}(" in text for name in FUNCTIONS)


def test_the_command_line_loads_none_of_them() -> None:
    code = "import sys, app.cli; print([n for n in sys.modules if n.startswith('app.scripting')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


@pytest.mark.timeout(300)
def test_a_type_checker_knows_them_and_no_others(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    script = tmp_path / "script.py"
    script.write_text("import app\n\napp.measure(gpu=0)\nraise app.InputError('what')\n")
    options = ["--strict", "--follow-imports=skip", f"--cache-dir={tmp_path}", "--config-file=", "--no-error-summary"]
    package = str(ROOT / "app" / "__init__.py")
    assert api.run([*options, package, str(script)])[0] == ""
    script.write_text("import app\n\napp.nosuch\n")
    assert 'has no attribute "nosuch"' in api.run([*options, package, str(script)])[0]


def called(n: int) -> int:
    """A function to be tuned."""
    return n


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: tune(called, {"m": [1, 2]}), "called with m"),
        (lambda: tune(called, {"n": [1], "m": [2]}), "unexpected keyword argument 'm'"),
        (lambda: tune(called, {"n": [1]}, arguments=(3,)), "multiple values for argument 'n'"),
        (lambda: tune(called, {"n": None}), "parameters['n']: it is of type NoneType"),
        (lambda: tune(called, {3: [1]}), "the name 3 is of type int"),
        (lambda: tune(called, {"n": [1]}, max_evaluations="10"), "max_evaluations is '10' (give a whole number"),
        (lambda: tune(called, {"n": [1]}, max_evaluations=2.5), "max_evaluations is 2.5"),
        (lambda: tune(called, {"n": [1]}, max_seconds="1"), "max_seconds is '1' (give a positive number"),
        (lambda: tune(called, {"n": [1]}, patience=0), "patience is 0"),
        (lambda: tune(called, {"n": [1]}, seed="x"), "seed is 'x'"),
        (lambda: tune(called, {"n": [1]}, within="3 %"), "within: it is '3 %'"),
        (lambda: tune(called, {"n": [1]}, target=None), "target: it is None"),
        (lambda: tune(called, {"n": [1]}, gpu=[0]), "gpu: [0] of type list is no GPU"),
        (lambda: measure(gpu=1.5).__enter__(), "gpu: 1.5 of type float is no GPU (give an index"),
    ],
)
def test_what_cannot_be_used_is_one_public_error(call: Callable[[], object], part: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, WattridgeError)


def test_one_value_stands_for_a_list_of_one_and_numbers_may_be_numpys() -> None:
    result = tune(called, {"n": 5}, max_evaluations=np.int64(1), seed=np.int32(3), quiet=True)  # type: ignore[arg-type]
    assert result.best == {"n": 5}
