"""Records: one dataclass is a JSON document, is read back from it, and has a JSON Schema."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict

import numpy as np
import numpy.typing as npt
import pytest
from jsonschema import Draft202012Validator

from app.base.records import Count, as_json, figure, from_json, json_schema
from app.engine.results.description import figures_of


@dataclass(frozen=True)
class Spread:
    value: float
    interval: tuple[float, float] | None = None


@dataclass(frozen=True)
class Run:
    IN_JSON: ClassVar = {"share_percent": "percent"}

    gpu: str = field(metadata=figure(key="board"))
    share: float = field(metadata=figure("Share", "%", meaning="of the peak", scale=100.0))
    count: Count
    why_not: str = field(default="", metadata=figure(nullable=True))
    drawn: tuple[int, ...] = field(default=(), metadata=figure(key=None))
    idle_w: float | None = field(default=None, metadata=figure("Idle power", "W", absent=True))
    energy_j: Spread = field(default=Spread(1.5, (1.0, 2.0)), metadata=figure("Energy", "J", flat=True))
    form: Literal["sharp", "smooth"] = "sharp"

    @property
    def percent(self) -> float:
        return 100 * self.share


@dataclass(frozen=True)
class Kept:
    name: str
    power_w: npt.NDArray[np.float64]
    least: Mapping[str, float]
    spread: Spread | None = None


class Document(TypedDict):
    runs: list[Run]
    files: NotRequired[list[Path]]
    level: Annotated[int, ("minimum", 1)]
    further: Any


RUN = Run("A100", math.nan, 3, drawn=(1, 2))


def test_the_document_of_a_record_has_the_keys_that_its_fields_state() -> None:
    document = as_json(RUN)
    assert document == {
        "board": "A100", "share": None, "count": 3, "why_not": None, "form": "sharp", "share_percent": None,
        "energy_j": 1.5, "energy_j_interval": [1.0, 2.0],
    }  # fmt: skip
    assert as_json(Run("", 0.5, 0, idle_w=20.0))["idle_w"] == 20.0


def test_a_schema_promises_what_a_document_has() -> None:
    schema = json_schema(Document)
    validator = Draft202012Validator(schema)
    document = as_json({"runs": [RUN], "level": 1, "further": {}})
    validator.validate(document)
    assert schema["$defs"]["Run"]["properties"]["share"]["description"] == "Share, of the peak"
    for key in ("board", "share", "count", "why_not", "energy_j", "energy_j_interval", "share_percent"):
        run = {name: value for name, value in document["runs"][0].items() if name != key}
        assert not validator.is_valid({**document, "runs": [run]}), key
        assert not validator.is_valid({**document, "runs": [{**run, key: [{}]}]}), key
    validator.validate({**document, "files": ["a.json"], "runs": [{**document["runs"][0], "idle_w": 3}]})
    assert not validator.is_valid({**document, "level": 0})
    assert not validator.is_valid({**document, "runs": [{**document["runs"][0], "form": "round"}]})
    both = Draft202012Validator(json_schema(Document, Kept))
    assert not both.is_valid(document)


def test_a_record_is_read_back_from_its_document() -> None:
    kept = Kept("one", np.array([1.0, math.nan]), {"a": 1.0}, Spread(2.0, (1.0, 3.0)))
    found = from_json(Kept, json.loads(json.dumps(as_json(kept))))
    assert (found.name, found.least, found.spread) == (kept.name, kept.least, kept.spread)
    np.testing.assert_array_equal(found.power_w, kept.power_w)
    older = {"name": "two", "power_w": [], "least": {}, "of_tomorrow": 1}
    assert from_json(Kept, older).spread is None
    for damage in ({"name": 1}, {"least": {"a": "b"}}, {"spread": {"value": True}}, {"spread": {"interval": [1, 2]}}):
        with pytest.raises((ValueError, TypeError, LookupError)):
            from_json(Kept, {**older, **damage})


def test_labelled_fields_are_the_figures_of_a_description() -> None:
    figures = figures_of(Run("A100", 0.25, 3), energy_j="Energy at 55 °C")
    assert [each.heading for each in figures.values()] == ["Share (%)", "Energy at 55 °C (J)"]
    assert figures["share"].text == "25 %"
    assert figures["energy_j"].text == "1.5 J (1–2)"
