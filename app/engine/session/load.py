"""Reading a specification from its file, TOML or T1."""

from __future__ import annotations

from pathlib import Path

from ..formats.t1 import is_json, read_t1
from ..specification.check import specification_of
from ..specification.model import Specification
from ..specification.toml_section import read_toml
from ..strategies.base import option_names


def load_specification(path: Path) -> Specification:
    """Read and check a specification, TOML or T1. Raises InputError with file, key and remedy for anything wrong."""
    return read_t1(path, option_names()) if is_json(path) else specification_of(read_toml(path), path)
