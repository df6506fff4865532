"""Digests of a kernel's sources: another text under the same name is another kernel.

So is another text of a file that it includes, as far as one lies beside the source or in a folder of `include`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from ...base.errors import InputError
from ...base.files import digest_of
from ..specification.model import Specification
from ..workloads.source_kernel import Build, included

_KEY: Final = "sources_sha256"
_INCLUDED: Final = "included_sha256"


def to_origin(spec: Specification) -> dict[str, str]:
    """The SHA-256 of a kernel's source files and of the files that they include, as a session keeps them; empty where
    none can be read."""
    digests = {_KEY: _digest(spec), _INCLUDED: _digest_of_included(spec)}
    return {key: digest for key, digest in digests.items() if digest}


def are_as_measured(spec: Specification, origin: Mapping[str, str]) -> bool:
    """Whether the files are those that a session of that origin measured, as far as it kept their digests."""
    if _KEY not in origin:
        return True
    # a session without the second key included nothing, or is older than that key
    return origin[_KEY] == _digest(spec) and origin.get(_INCLUDED) in (None, _digest_of_included(spec))


def require_as_measured(spec: Specification, origin: Mapping[str, str], session: int) -> None:
    """Raise InputError unless the files are those that the session measured."""
    if not are_as_measured(spec, origin):
        what = f"the kernel's source, or a file that it includes, has changed since session {session} began"
        files = ", ".join(map(str, spec.kernel.sources)) if spec.kernel is not None else str(spec.path)
        raise InputError(what, files, "put it back, or start a new session")


def _digest(spec: Specification) -> str:
    if spec.kernel is None or not spec.kernel.sources:
        return ""
    try:
        digests = "".join(digest_of(path) for path in spec.kernel.sources)
    except (OSError, InputError):
        return ""
    return hashlib.sha256(digests.encode()).hexdigest()


def _digest_of_included(spec: Specification) -> str:
    """A digest of the texts alone, in any order: include paths differ from machine to machine."""
    if spec.kernel is None or not spec.kernel.sources:
        return ""
    folders = (*spec.kernel.include, *(path.parent for path in spec.kernel.sources))
    files = included(Build("", spec.kernel.sources, folders, ()))
    digests = sorted(hashlib.sha256(text).hexdigest() for path, text in files if path not in spec.kernel.sources)
    return hashlib.sha256("".join(digests).encode()).hexdigest() if digests else ""
