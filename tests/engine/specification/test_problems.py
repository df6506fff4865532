"""All that is wrong with a document at once: each problem at its own place, in the reader's own words."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.base.errors import InputError
from app.base.paths import resources
from app.engine.specification.check import specification_of
from app.engine.specification.problems import MAX_PROBLEMS, problems_of
from app.engine.specification.toml_edit import line_of

PATH = Path("/some where/a: b.toml")
EXAMPLE = (resources() / "examples" / "sgemm.toml").read_text(encoding="utf-8")


def document() -> dict[str, Any]:
    return tomllib.loads(EXAMPLE)


def test_a_good_document_has_none() -> None:
    assert problems_of(document(), PATH) == ()


def test_each_problem_is_found_at_its_place() -> None:
    wrong = document()
    wrong["restrictions"][2] = "dim_q > 1"
    wrong["restrictions"][5] = "blk_k %% 3"
    wrong["parameters"]["simd"] = "nothing_like_it"
    wrong["kernel"]["arguments"][1]["type"] = "floaty"
    wrong["metrics"]["GFLOPS/W"] = "q * 2"
    wrong["search"]["seed"] = "x"
    del wrong["kernel"]["name"]
    before = copy.deepcopy(wrong)
    found = {problem.place: problem for problem in problems_of(wrong, PATH)}
    assert set(found) >= {
        ("restrictions", 2),
        ("restrictions", 5),
        ("parameters", "simd"),
        ("kernel", "name"),
        ("metrics", "GFLOPS/W"),
        ("search", "seed"),
    }
    assert found["restrictions", 2].what.startswith("unknown name 'dim_q'")
    assert "did you mean" in found["restrictions", 2].remedy
    assert wrong == before, "the document itself stays as it is"


def test_what_follows_from_a_problem_is_not_one_of_its_own() -> None:
    wrong = document()
    wrong["parameters"]["dim_m"] = []
    assert [problem.place for problem in problems_of(wrong, PATH)] == [("parameters", "dim_m")]


def test_an_argument_in_a_list_has_its_index() -> None:
    wrong = document()
    wrong["kernel"]["arguments"][1]["type"] = "floaty"
    assert [problem.place for problem in problems_of(wrong, PATH)] == [("kernel", "arguments", 1, "type")]


def test_a_wrong_key_is_named_at_its_own_line_and_hides_nothing_else_of_its_table() -> None:
    text = EXAMPLE.replace("[kernel]\n", "[kernel]\n# a comment\nsuorce = 1\n", 1)
    wrong = tomllib.loads("nothing = 1\n" + text)
    wrong["kernel"]["arguments"][1]["type"] = "floaty"
    found = [problem.place for problem in problems_of(wrong, PATH)]
    assert set(found) == {("nothing",), ("kernel", "suorce"), ("kernel", "arguments", 1, "type")}
    line = line_of(text, ("kernel", "suorce"))
    assert line is not None
    assert text.splitlines()[line - 1] == "suorce = 1"


def test_an_empty_document_has_one() -> None:
    (problem,) = problems_of({}, PATH)
    assert problem.place == ("parameters",)
    assert "no parameters" in problem.what


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4), st.just("dim_m"), st.floats()),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "x", "points", ""]), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*tomllib.loads(EXAMPLE), "command", "other"]), anything, max_size=4))
def test_whatever_is_wrong_the_first_problem_is_the_readers_and_there_is_an_end(changes: dict[str, Any]) -> None:
    wrong = {**document(), **changes}
    problems = problems_of(wrong, PATH)
    assert len(problems) <= MAX_PROBLEMS
    if not problems:
        specification_of(wrong, PATH)
        return
    with pytest.raises(InputError) as refused:
        specification_of(wrong, PATH)
    assert problems[0].what == refused.value.what


@pytest.mark.parametrize("index", [0, 7])
def test_many_wrong_restrictions_are_all_named(index: int) -> None:
    wrong = document()
    wrong["restrictions"][index:] = ["1 +"] * len(wrong["restrictions"][index:])
    expected = [("restrictions", position) for position in range(index, len(wrong["restrictions"]))]
    assert [problem.place for problem in problems_of(wrong, PATH)] == expected
