"""Reading a specification from its file, TOML or T1."""

from __future__ import annotations

from pathlib import Path

from app.engine.formats.t1 import is_json, read_t1
from app.engine.specification import Specification
from app.engine.specification_checks import specification_of
from app.engine.toml_section import read_toml


def load_specification(path: Path) -> Specification:
    """Read and check a specification, TOML or T1. Raises InputError with file, key and remedy for anything wrong."""
    return read_t1(path) if is_json(path) else specification_of(read_toml(path), path)
