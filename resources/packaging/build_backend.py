"""Hatchling's builds, and the editable install that it refuses: the folder `app` is the package `wattridge`.

A path in a .pth file cannot give a folder another name, so the editable wheel brings the redirection of `editables`.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from editables import EditableProject
from hatchling.build import build_sdist, build_wheel, get_requires_for_build_sdist, get_requires_for_build_wheel

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
]
_QUIET = '"""PYTEST_DONT_REWRITE: it is imported before pytest could."""\n'  # else every run of pytest warns of it
get_requires_for_build_editable = get_requires_for_build_wheel


def build_editable(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build the wheel of an editable install: the metadata of the whole one, and the redirection; its name."""
    project = EditableProject("wattridge", Path(__file__).resolve().parents[2])
    project.map("wattridge", "app")
    needs = "".join(f"Requires-Dist: {name}\n" for name in project.dependencies()).encode()
    with TemporaryDirectory() as folder:
        name = build_wheel(folder)
        with ZipFile(Path(folder, name)) as whole:
            files = {each: whole.read(each) for each in whole.namelist() if ".dist-info/" in each}
    files |= {each: (_QUIET * each.endswith(".py") + text).encode() for each, text in project.files()}
    (metadata,) = (each for each in files if each.endswith(".dist-info/METADATA"))
    files[metadata] = files[metadata].replace(b"\nName: ", b"\n" + needs + b"Name: ", 1)
    (record,) = (each for each in files if each.endswith(".dist-info/RECORD"))
    lines = [f"{each},sha256={_digest(data)},{len(data)}" for each, data in files.items() if each != record]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    with ZipFile(Path(wheel_directory, name), "w", ZIP_DEFLATED) as wheel:
        for each, data in files.items():
            wheel.writestr(each, data)
    return name


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
