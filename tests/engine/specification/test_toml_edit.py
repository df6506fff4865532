"""Editing a TOML text: only what is changed changes; comments, order and formatting of the rest stay."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.session.load import load_specification
from app.engine.specification.check import specification_of
from app.engine.specification.document import document_of
from app.engine.specification.toml_edit import (
    line_of,
    moved,
    rebased,
    renamed,
    text_of,
    toml_of,
    with_value,
    without,
)
from app.errors import InputError
from app.paths import resources

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


def changed_lines(before: str, after: str) -> list[str]:
    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[:2] in ("+ ", "- ")]


def test_a_changed_value_keeps_its_comment_and_every_other_line() -> None:
    after = with_value(TEXT, ("constants", "n"), 8192)
    assert changed_lines(TEXT, after) == ["- n = 4096 # words", "+ n = 8192 # words"]
    after = with_value(TEXT, ("parameters", "a"), [1, 2])
    assert changed_lines(TEXT, after) == ["- a = [1, 2,   4]   # as a power", "+ a = [1, 2]   # as a power"]


def test_items_of_a_list_are_changed_added_and_removed_one_by_one() -> None:
    after = with_value(TEXT, ("restrictions", 1), "b != 5")
    assert changed_lines(TEXT, after) == ['-     "b != 3",', '+     "b != 5",']
    after = with_value(TEXT, ("restrictions", 2), "a != 7")
    assert changed_lines(TEXT, after) == ['+     "a != 7",']
    assert tomllib.loads(without(TEXT, ("restrictions", 0)))["restrictions"] == ["b != 3"]


def test_missing_tables_are_made_where_toml_allows_them() -> None:
    assert tomllib.loads(with_value("", ("parameters", "x"), [1])) == {"parameters": {"x": [1]}}
    made = with_value("[parameters]\nx = [1]", ("restrictions", 0), "x > 0")
    assert tomllib.loads(made) == {"restrictions": ["x > 0"], "parameters": {"x": [1]}}
    made = with_value("[kernel]\nname = 'k'\n", ("kernel", "verify", "rtol"), 0.1)
    assert tomllib.loads(made) == {"kernel": {"name": "k", "verify": {"rtol": 0.1}}}


def test_an_entry_moves_with_its_comments() -> None:
    after = moved(TEXT, ("parameters", "b"), ("parameters", "a"))
    assert list(tomllib.loads(after)["parameters"]) == ["b", "a", "c-d"]
    assert after.index("# a range") < after.index("b = ") < after.index("a = [1, 2,   4]   # as a power")
    after = moved(TEXT, ("parameters", "b"), ("parameters", "c-d"))
    assert list(tomllib.loads(after)["parameters"]) == ["a", "c-d", "b"]
    assert tomllib.loads(moved(TEXT, ("restrictions", 0), ("restrictions", 1)))["restrictions"] == ["b != 3", "a <= b"]


def test_a_renamed_entry_stays_in_its_place() -> None:
    after = renamed(TEXT, ("parameters", "a"), "x y")
    assert changed_lines(TEXT, after) == ["- a = [1, 2,   4]   # as a power", '+ "x y" = [1, 2,   4]   # as a power']
    with pytest.raises(InputError, match="there already"):
        renamed(TEXT, ("parameters", "a"), "b")


def test_what_is_removed_was_there() -> None:
    assert without(TEXT, ("parameters", "zz")) == TEXT
    assert tomllib.loads(without(TEXT, ("device_settings", "graphics_clock_mhz", "points")))["device_settings"] == {}


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
    ("place", "value"),
    [
        (("restrictions", 0), "a < 4"),
        (("restrictions", 1), "b < 4"),
        (("parameters", "a"), [5]),
        (("parameters", "c"), [6]),
        (("kernel", "name"), "other"),
        (("kernel", "repeats"), 2),
        (("kernel", "arguments", 0, "type"), "float32"),
        (("kernel", "arguments", 1, "type"), "float32"),
        (("kernel", "arguments", 2), {"name": "z"}),
        (("kernel", "verify", "reference"), "y"),
        (("kernel", "verify", "rtol"), 0.1),
        (("kernel", "grid_divisors", "x"), ["a"]),
        (("search", "options", "size"), 4),
        (("search", "options", "other"), 5),
        (("search", "seed"), 6),
    ],
)
def test_whatever_way_toml_is_written_nothing_but_the_value_changes(
    place: tuple[str | int, ...], value: object
) -> None:
    expected = tomllib.loads(OTHER_WAYS)
    if place[0] == "restrictions":
        expected["restrictions"] = [expected["restrictions"]]
    inner = expected
    for key in place[:-1]:
        inner = inner.setdefault(key, {}) if isinstance(key, str) else inner[key]
    if isinstance(place[-1], int) and place[-1] == len(inner):
        inner.append(value)
    else:
        inner[place[-1]] = value
    after = with_value(OTHER_WAYS, place, value)
    assert tomllib.loads(after) == expected
    assert line_of(after, place) is not None
    assert "# first" in after
    assert "# one" in after or place[0] == "restrictions"


def test_the_only_restriction_and_entries_of_other_ways_are_removed_and_moved() -> None:
    document = tomllib.loads(OTHER_WAYS)
    assert "restrictions" not in tomllib.loads(without(OTHER_WAYS, ("restrictions", 0)))
    assert tomllib.loads(without(OTHER_WAYS, ("restrictions", 1))) == document
    assert list(tomllib.loads(without(OTHER_WAYS, ("parameters", "a")))["parameters"]) == ["b"]
    assert len(tomllib.loads(without(OTHER_WAYS, ("kernel", "arguments", 0)))["kernel"]["arguments"]) == 1
    swapped = tomllib.loads(moved(OTHER_WAYS, ("kernel", "arguments", 0), ("kernel", "arguments", 1)))
    assert [each["name"] for each in swapped["kernel"]["arguments"]] == ["y", "x"]
    turned = tomllib.loads(moved(OTHER_WAYS, ("parameters", "a"), ("parameters", "b")))
    assert list(turned["parameters"]) == ["b", "a"]
    other = tomllib.loads(renamed(OTHER_WAYS, ("parameters", "a"), "q"))
    assert list(other["parameters"]) == ["q", "b"]


def test_in_another_folder_the_sources_are_still_found(tmp_path: Path) -> None:
    text = """[kernel]\nsource = "../k/a.cu" # mine\ninclude = ["inc", "/abs"]\n"""
    after = rebased(text, tmp_path / "one", tmp_path / "deep" / "two")
    assert tomllib.loads(after)["kernel"]["source"] == "../../k/a.cu"
    assert tomllib.loads(after)["kernel"]["include"][0] == "../../one/inc"
    assert "# mine" in after
    assert rebased(text, tmp_path, tmp_path) == text


def test_text_that_is_no_toml_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="not TOML"):
        with_value("a = [", ("b",), 1)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_value_of_every_example_can_be_set_to_itself(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    document = tomllib.loads(text)
    assert document
    for section, entries in document.items():
        items = entries.items() if isinstance(entries, dict) else enumerate(entries)
        for key, value in items:
            after = with_value(text, (section, key), value)
            assert tomllib.loads(after) == document
            assert [line for line in text.splitlines() if line.startswith("#")] == [
                line for line in after.splitlines() if line.startswith("#")
            ]


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
    after = with_value(TEXT, ("extra", key), value)
    assert tomllib.loads(after)["extra"][key] == value
    assert after.startswith(TEXT)
    assert tomllib.loads(f"v = {toml_of(value)}")["v"] == value
