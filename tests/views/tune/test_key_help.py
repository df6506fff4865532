"""Help and completion of keys come from the guide's page, which has exactly the keys that the reader takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.base.errors import InputError
from app.engine.specification.check import specification_of
from app.views.tune.toml_pane import completions_at, help_at, known_keys

KERNEL = {"name": "k", "source": "k.cu"}
WRONG: dict[str, Any] = {"no such key": 1}
TABLES: dict[str, dict[str, Any]] = {  # a document that has a wrong key in each table
    "": WRONG,
    "kernel": {"kernel": WRONG},
    "kernel.arguments": {"kernel": {**KERNEL, "arguments": [WRONG]}},
    "kernel.grid_divisors": {"kernel": {**KERNEL, "grid_divisors": WRONG}},
    "kernel.instructions": {"kernel": {**KERNEL, "instructions": WRONG}},
    "kernel.verify": {"kernel": {**KERNEL, "verify": WRONG}},
    "operator": {"operator": WRONG},
    "command": {"command": WRONG},
    "service": {"service": WRONG},
    "service.client": {"service": {"client": WRONG}},
    "device_settings": {"device_settings": WRONG},
    "objective": {"objective": WRONG},
    "search": {"search": WRONG},
    "metering": {"metering": WRONG},
}


@pytest.mark.parametrize("table", TABLES)
def test_the_guide_has_every_key_that_the_reader_takes_and_no_other(table: str) -> None:
    with pytest.raises(InputError, match="unknown key") as refused:
        specification_of({"parameters": {"a": [1]}, **TABLES[table]}, Path("x.toml"))
    read = set(refused.value.remedy.removeprefix("known: ").split(", "))
    above = f"{table}." if table else ""
    described = {name.removeprefix(above) for name in known_keys() if name.startswith(above)}
    assert {name for name in described if "." not in name} == read


def test_every_key_belongs_to_a_table_that_is_checked() -> None:
    assert {name.rpartition(".")[0] for name in known_keys()} <= set(TABLES)


TEXT = """restrictions = [
    "a < 3", # why
]
[kernel]
name = "search" # objective
arguments = [
    { name = "x", type = "float32" },
]
verify = { reference = "x" }
[parameters]
a = [1, 2]
[search]
start = [{ a = 1 }]
"""


@pytest.mark.parametrize(
    ("at", "key"),
    [
        ("restrictions", "restrictions"),
        ("a < 3", "restrictions"),
        ("[kernel", "kernel"),
        ('"search', "kernel.name"),
        ("type", "kernel.arguments.type"),
        ("float32", "kernel.arguments"),
        ("reference", "kernel.verify.reference"),
        ("[1, 2", "parameters"),
        ("start", "search.start"),
    ],
)
def test_help_is_for_the_key_or_else_the_table_at_a_position(at: str, key: str) -> None:
    found, words = help_at(TEXT, TEXT.index(at) + len(at))
    assert found == key
    assert words == known_keys()[key][0]


@pytest.mark.parametrize(
    ("text", "word", "some"),
    [
        ("re", "re", ["restrictions = "]),
        ("[[ker", "ker", ["kernel]]"]),
        ("[kernel]\nso", "so", ["source = "]),
        ("[service.cl", "service.cl", ["service.client]"]),
        ("[kernel]\nverify = { r", "r", ["reference = ", "rtol = "]),
        ('[kernel]\narguments = [\n    { name = "x", sh', "sh", ["shape = "]),
        ("[kernel]\nname = k", "k", []),
        ("[kernel]\n# so", "", []),
        ('[kernel]\nname = "so', "", []),
        ("[parameters]\nso", "so", []),
        ("[[[[\n}}}} = ", "", []),
    ],
)
def test_what_a_word_can_become(text: str, word: str, some: list[str]) -> None:
    assert completions_at(text, len(text)) == (word, some)
