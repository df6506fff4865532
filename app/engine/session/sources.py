"""The source of a kernel, as a session measured it: another text under the same name is another kernel.

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
    """What a session keeps of its kernel's source files, and of those which they include: their SHA-256; nothing where
    there are none to be read."""
    found = {_KEY: _digest(spec), _INCLUDED: _digest_of_included(spec)}
    return {key: digest for key, digest in found.items() if digest}


def are_as_measured(spec: Specification, origin: Mapping[str, str]) -> bool:
    """Whether the files are what a session of that origin measured, as far as it kept that."""
    if _KEY not in origin:
        return True
    # a session without the second key included nothing, or is older than that key
    return origin[_KEY] == _digest(spec) and origin.get(_INCLUDED) in (None, _digest_of_included(spec))


def require_as_measured(spec: Specification, origin: Mapping[str, str], session: int) -> None:
    """Raises InputError unless they are."""
    if not are_as_measured(spec, origin):
        what = f"the kernel's source, or a file that it includes, has changed since session {session} began"
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


def _digest_of_included(spec: Specification) -> str:
    """Of the texts alone, whatever their order: an include path may be another one on another machine."""
    if spec.kernel is None or not spec.kernel.sources:
        return ""
    own = set(spec.kernel.sources)
    folders = (*spec.kernel.include, *(path.parent for path in spec.kernel.sources))
    files = included(Build("", spec.kernel.sources, folders, ()))
    each = sorted(hashlib.sha256(text).hexdigest() for path, text in files if path not in own)
    return hashlib.sha256("".join(each).encode()).hexdigest() if each else ""
