"""A specification with the files that it needs, as data: packed where the session is, unpacked beside a board."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from ....errors import InputError, WattridgeError
from ....input_files import open_input
from ....paths import resources
from ....sensors.remote.fields import Garbled, object_of
from ...specification.model import ARRAY_FILES, Specification
from ...workloads.included_files import included
from ...workloads.source_kernel import Build

MOST_BYTES: Final = 32 << 20  # of all files together
_MOST_FILES: Final = 2048
_PART: Final = re.compile(r"[^/\\:*?\"<>|\x00-\x1f\x7f]{1,200}\Z")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Files by their names relative to one folder, '/' between the parts; `specification` is the name of one."""

    specification: str
    files: Mapping[str, bytes]

    def unpack(self, folder: Path) -> Path:
        """Write the files into an empty folder; the path of the specification. Raises OSError."""
        for name, content in self.files.items():
            path = folder.joinpath(*PurePosixPath(name).parts)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(content)
        return folder.joinpath(*PurePosixPath(self.specification).parts)


def bundle_of(spec: Specification) -> Bundle:
    """A specification's file, its sources and what they include, references and arrays.

    What comes with Wattridge is where it arrives, and travels with its own examples alone, which name it from there.

    Raises InputError where that is too large, and WattridgeError where a file cannot be read.
    """
    own = os.path.realpath(resources())
    paths = dict.fromkeys(Path(os.path.realpath(path)) for path in (spec.path, *_files_of(spec)))
    named = Path(os.path.realpath(spec.path))
    wanted = [path for path in paths if named.is_relative_to(own) or not path.is_relative_to(own)]
    top = Path(os.path.commonpath([path.parent for path in wanted]))
    files: dict[str, bytes] = {}
    for path in wanted:
        try:
            with open_input(path) as file:
                files[path.relative_to(top).as_posix()] = file.read(MOST_BYTES + 1)
        except OSError as error:
            raise WattridgeError(error.strerror or str(error), str(path), "check the file") from None
        if sum(map(len, files.values())) > MOST_BYTES or len(files) > _MOST_FILES:
            what = f"its files are too many or too large for a pool ({_MOST_FILES} files, {MOST_BYTES >> 20} MB)"
            raise InputError(what, str(spec.path), "fill arrays by an expression instead of from files")
    return Bundle(named.relative_to(top).as_posix(), files)


def bundle_message(bundle: Bundle) -> dict[str, Any]:
    """As it is sent."""
    files = {name: base64.b64encode(content).decode("ascii") for name, content in bundle.files.items()}
    return {"specification": bundle.specification, "files": files}


def parse_bundle(sent: Any) -> Bundle:
    """Files that were sent. Raises Garbled for names that lead out of a folder, and for what is too large."""
    message = object_of(sent)
    files: dict[str, bytes] = {}
    total = 0
    for name, text in object_of(message.get("files"), _MOST_FILES).items():
        if not _is_relative(name) or not isinstance(text, str):
            raise Garbled("a file with a name that is none")
        total += len(text) * 3 // 4
        if total > MOST_BYTES + 3 * _MOST_FILES:
            raise Garbled("files that are too large")
        try:
            files[name] = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise Garbled("a file that is not one") from None
    named = message.get("specification")
    if not isinstance(named, str) or named not in files:
        raise Garbled("no specification among the files")
    if any(str(parent) in files for name in files for parent in PurePosixPath(name).parents):
        raise Garbled("a file that is a folder too")
    return Bundle(named, files)


def _is_relative(name: str) -> bool:
    parts = name.split("/")
    return len(name) <= 1000 and all(_PART.match(part) and part not in (".", "..") for part in parts)


def _files_of(spec: Specification) -> Iterator[Path]:
    """The files that running a specification reads besides its own."""
    kernel, folder = spec.kernel, spec.path.parent
    if kernel is None:
        return
    folders = tuple(dict.fromkeys((*kernel.include, *(path.parent for path in kernel.sources))))
    for path, _ in included(Build("", kernel.sources, folders, ())):
        yield path
    for argument in kernel.arguments:
        if argument.fill.endswith(ARRAY_FILES):
            yield folder / argument.fill
    if kernel.verify is not None:
        for reference in (kernel.verify.reference, *kernel.verify.references.values()):
            if reference and len(reference) < 1000 and (folder / reference).is_file():
                yield folder / reference
