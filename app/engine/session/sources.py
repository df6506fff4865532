"""The source of a kernel, as a session measured it: another text under the same name is another kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from ...errors import InputError
from ...files import digest_of
from ..specification.model import Specification

_KEY: Final = "sources_sha256"


def to_origin(spec: Specification) -> dict[str, str]:
    """What a session keeps of its kernel's source files: their SHA-256; nothing where there are none to be read.

    Files that a source includes are not looked at.
    """
    digest = _digest(spec)
    return {_KEY: digest} if digest else {}


def are_as_measured(spec: Specification, origin: Mapping[str, str]) -> bool:
    """Whether the source files are what a session of that origin measured, as far as it kept that."""
    return _KEY not in origin or origin[_KEY] == _digest(spec)


def require_as_measured(spec: Specification, origin: Mapping[str, str], session: int) -> None:
    """Raises InputError unless they are."""
    if not are_as_measured(spec, origin):
        what = f"the kernel's source has changed since session {session} began"
        files = ", ".join(map(str, spec.kernel.sources)) if spec.kernel is not None else str(spec.path)
        raise InputError(what, files, "put it back, or start a new session")


def _digest(spec: Specification) -> str:
    if spec.kernel is None or not spec.kernel.sources:
        return ""
    try:
        each = "".join(digest_of(path) for path in spec.kernel.sources)
    except (OSError, InputError):
        return ""
    return hashlib.sha256(each.encode()).hexdigest()
