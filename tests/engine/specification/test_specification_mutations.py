"""Specifications with anything in them: a space, or one clear line; nothing is executed or takes for ever."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.specification_mutations import mutated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.session.load import load_specification
from app.engine.session.planning import space_of
from app.engine.space import factors

EXAMPLES = sorted((resources() / "examples").glob("*.toml"))


def opened(path: Path) -> str:
    """The line that refuses a file, '' where its space is built."""
    try:
        space = space_of(load_specification(path))
    except InputError as refused:
        error = refused
    else:
        assert space.size > 0
        return ""
    line = str(error)
    assert "\n" not in line
    assert all((error.what, error.where, error.remedy))
    assert len(line) < 1500
    return line


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(seed=st.integers(0, 10**6), example=st.sampled_from(EXAMPLES))
def test_a_mutated_specification_gives_a_space_or_one_clear_line(
    seed: int, example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(factors, "MAX_COST", 10**9)  # a tenth, as this is one of many tests
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mutated.toml"
    path.write_bytes(mutated(example.read_bytes(), seed))
    opened(path)
    assert not (tmp_path / "PWNED").exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[parameters]\na = 'range(10**12)'", "at most 65536"),
        ("[parameters]\na = 'range(1, 60000)'\nb = 'range(a, 60000)'\nc = 'range(b, 60000)'", "at most 4000000"),
        ("[parameters]\n" + "\n".join(f"p{i} = [{', '.join('0123456789')}]" for i in range(9)), "more than"),
        ("[parameters]\n" + "\n".join(f"p{i} = [1, 2]" for i in range(65)), "at most 64"),
        ("restrictions = [" + "'a > 0'," * 1001 + "]\n[parameters]\na = 1", "1001 restrictions"),
        ("restrictions = ['" + " and ".join(["a + b > 0"] * 200) + "']\n[parameters]\na = [1, 2]\nb = [1, 2]", ""),
        ("[constants]\n" + "\n".join(f"c{i} = 1" for i in range(1001)) + "\n[parameters]\na = 1", "1001 entries"),
        ("[metrics]\n" + "\n".join(f"m{i} = 1" for i in range(1001)) + "\n[parameters]\na = 1", "1001 entries"),
        ("restrictions = ['" + "(" * 300 + "a" + ")" * 300 + "']\n[parameters]\na = 1", "restrictions[0]"),
        ("restrictions = ['" + "-" * 3000 + "a']\n[parameters]\na = 1", "nested"),
        ("restrictions = ['a ** a ** a ** a < 1']\n[parameters]\na = [1000, 2000]", "removes the last"),
        ("restrictions = ['''a\n> 2''']\n[parameters]\na = [1000, 2000]", "restrictions[0]"),
        ("restrictions = ['" + "a" * 3000 + "']\n[parameters]\na = [1, 2]", "unknown name"),
    ],
)
def test_what_would_take_for_ever_is_refused_at_once(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    path.write_text(text)
    line = opened(path)
    assert words in line
    assert bool(line) == bool(words)
