"""TOML as it is written: values are read again, each has its line, and sources are found from another folder."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.session.load import load_specification
from app.engine.specification.check import specification_of
from app.engine.specification.document import document_of
from app.engine.specification.toml_edit import key_text, line_of, rebased, text_of, toml_of

EXAMPLES = sorted((resources() / "examples").glob("*.toml"))
TEXT = """# what it is
restrictions = [
    "a <= b", # why
    # before the second
    "b != 3",
]

[constants]
n = 4096 # words

[parameters]
a = [1, 2,   4]   # as a power
# a range
b = "range(1, 9)"
'c-d' = [
    1,
    2,
]

[device_settings]
graphics_clock_mhz = { points = 7 }
"""


def test_the_line_of_a_place() -> None:
    lines = TEXT.splitlines()
    for place, begins in (
        (("restrictions", 1), '    "b != 3"'),
        (("parameters",), "[parameters]"),
        (("parameters", "c-d"), "'c-d'"),
        (("device_settings", "graphics_clock_mhz", "points"), "graphics_clock"),
        (("parameters", "missing"), "[parameters]"),
    ):
        line = line_of(TEXT, place)
        assert line is not None
        assert lines[line - 1].startswith(begins)
    assert line_of(TEXT, ("kernel", "name")) is None


OTHER_WAYS = """restrictions = "a < 3" # one
parameters = { a = [1, 2], b = [3] }

[kernel]
name = "k"

[[kernel.arguments]]
name = "x" # first
type = "int32"

[[kernel.arguments]]
name = "y"

[constants]
n = 1

[kernel.verify]
reference = "x"

[search]
options.size = 3
"""


@pytest.mark.parametrize(
    ("place", "begins"),
    [
        (("restrictions", 0), "restrictions"),
        (("parameters", "b"), "parameters"),
        (("kernel", "name"), "name"),
        (("kernel", "arguments", 0, "type"), "type"),
        (("kernel", "arguments", 1), 'name = "y"'),
        (("kernel", "verify", "reference"), "reference"),
        (("search", "options", "size"), "options.size"),
    ],
)
def test_the_line_of_a_place_whatever_way_toml_is_written(place: tuple[str | int, ...], begins: str) -> None:
    line = line_of(OTHER_WAYS, place)
    assert line is not None
    assert OTHER_WAYS.splitlines()[line - 1].startswith(begins)


def test_in_another_folder_the_sources_are_still_found(tmp_path: Path) -> None:
    text = """[kernel]\nsource = "../k/a.cu" # mine\ninclude = ["inc", "/abs"]\n"""
    after = rebased(text, tmp_path / "one", tmp_path / "deep" / "two")
    assert tomllib.loads(after)["kernel"]["source"] == "../../k/a.cu"
    assert tomllib.loads(after)["kernel"]["include"][0] == "../../one/inc"
    assert "# mine" in after
    assert rebased(text, tmp_path, tmp_path) == text


def test_the_sources_of_a_kernel_are_found_whatever_way_it_is_written(tmp_path: Path) -> None:
    for text in (
        'kernel = { name = "k", source = "a.cu" }\n',
        'kernel.source = "a.cu"\n',
        '[kernel.verify]\nrtol = 1\n[search]\nseed = 1\n[kernel]\nsource = ["a.cu"] # mine\n',
    ):
        after = tomllib.loads(rebased(text, tmp_path, tmp_path / "deep"))
        assert after["kernel"]["source"] in ("../a.cu", ["../a.cu"])


def test_text_that_is_no_toml_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="not TOML"):
        rebased("a = [", Path("one"), Path("other"))


plain = st.one_of(
    st.booleans(), st.integers(-(2**60), 2**60), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=8
)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_read_again_from_the_text_of_its_document(path: Path) -> None:
    spec = load_specification(path)
    assert specification_of(tomllib.loads(text_of(document_of(spec, path.parent))), path) == spec


@given(values, st.text())
def test_whatever_value_is_written_is_read_again(value: object, key: str) -> None:
    assert tomllib.loads(f"{key_text(key)} = {toml_of(value)}") == {key: value}
    assert tomllib.loads(text_of({"extra": {key: value}})) == {"extra": {key: value}}
