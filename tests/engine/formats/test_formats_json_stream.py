"""JSON read piece by piece: the same as read whole, wherever the pieces end, and every mistake has its place."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.engine.formats.json_stream import JsonStream

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.dictionaries(st.text(max_size=6), VALUES, max_size=5) | st.lists(VALUES, max_size=5)
DOCUMENTS = st.dictionaries(st.sampled_from(["cache", "a", "b b", "é", 'quo"te', ""]), VALUES | ENTRIES, max_size=5)


def read(text: str, sizes: list[int]) -> tuple[dict[str, Any], JsonStream]:
    """The document as the stream reads it, fed in pieces of these sizes, the rest at once."""
    stream, found, entries = JsonStream("f", ("cache",)), {}, {}
    at = 0
    for size in [*sizes, len(text)]:
        stream.feed(text[at : at + size])
        at += size
        for member in stream.members():
            if member.inside:
                entries.setdefault(member.inside, []).append((member.name, member.value))
            else:
                found[member.name] = member.value
    for member in stream.members(last=True):
        if member.inside:
            entries.setdefault(member.inside, []).append((member.name, member.value))
        else:
            found[member.name] = member.value
    stream.end()
    return found | {name: dict(members) if members[0][0] else members for name, members in entries.items()}, stream


@settings(deadline=None)
@given(
    document=DOCUMENTS,
    sizes=st.lists(st.integers(1, 40), max_size=30),
    indent=st.sampled_from([None, 0, 2]),
    plain=st.booleans(),
)
def test_every_document_is_read_whole_wherever_the_pieces_end(
    document: dict[str, Any], sizes: list[int], indent: int | None, plain: bool
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=plain)
    found, stream = read(f" {text}\n", sizes)
    inside = document.get("cache")
    if isinstance(inside, list):  # its items have no names
        assert [value for _, value in found.pop("cache", [])] == inside
    elif inside == {}:
        assert "cache" not in found
    elif isinstance(inside, dict) and "" in inside:  # `read` takes '' for a list's item
        found.pop("cache")
    else:
        assert found.pop("cache", None) == inside
    assert found == {name: value for name, value in document.items() if name != "cache"}
    assert stream.closed
    assert stream.line == text.count("\n") + 2
    assert not stream.half


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1,\n"b" 2}', "line 2, column 5: not valid JSON: a colon"),
        ('{"a": 1\n"b": 2}', "line 2, column 1: not valid JSON: a comma"),
        ('{"a": [1, 2}', "line 1, column 12"),
        ('{"a": tru}', "line 1, column 7"),
        ('{"a": 1}}', "line 1, column 9: not valid JSON: there is text after"),
        ('{"a": "\n"}', "line 1, column 8: not valid JSON: invalid control character"),
        ('{"a": 1,}', "line 1, column 9"),
        ('{"cache": {"x": {"y": 1}}, "b": ', "breaks off"),
        ('{"cache": {"x": {"y" 1}, "z": {}', "line 1, column 22"),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_mistake_has_a_place(text: str, said: str, size: int) -> None:
    with pytest.raises(InputError, match=said):
        read(text, [size] * (len(text) // size))


@pytest.mark.parametrize(
    "text",
    [
        '{"cache": [1, 2',
        '{"cache": {"x": {"y": 1}',
        '{"cache": {"x": {"y": 1},\n',
        '{"cache": {"x": {"y": 1}, "z": {"y',
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_entries_may_be_left_open(text: str, size: int) -> None:
    _, stream = read(text, [size] * (len(text) // size))
    assert stream.inside


def test_a_line_is_counted_over_all_pieces() -> None:
    text = '{"cache": {\n' + ",\n".join(f'"{n}": {{"a": {n}}}' for n in range(500)) + ',\n"x": {"a" 1}}}'
    with pytest.raises(InputError, match="line 502, column 11"):
        read(text, [97] * 200)


def test_entries_that_were_read_are_not_held() -> None:
    stream = JsonStream("f", ("cache",))
    stream.feed('{"cache": {')
    tracemalloc.start()
    for n in range(2000):  # 1 MB
        stream.feed(f'"{n}": {{"text": "{"x" * 500}"}},')
        assert len(list(stream.members())) == 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000
