"""Machines of a pool that only compile: how one announces itself, what it is asked for, and images on their way.

A compile worker is sent the session as a board is, with what its images are for, and then rows; the images go on to the
boards. All of it is lines of JSON in bounds, like `messages`:

    {"do": "open", "session": "...", "number": 1, "specification": ..., "space": ..., "target": {...}}
    {"do": "compile", "session": "...", "number": 7, "rows": [5]}
    {"do": "close", "session": "...", "number": 8}

    {"number": 7, "answer": {"key": "...", "sha256": "...", "image": "...", "said": "..."}}

An image is named by what it was made from (`key`, which holds the compiler's version) and by the SHA-256 of its bytes,
by which it is checked wherever it arrives.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from .... import __version__
from ....errors import WattridgeError
from ....plain_text import visible
from ....sensors.device_limits import DeviceLimits
from ....sensors.remote.fields import Garbled, line_of, list_of, number_of, object_of, parse_line, text_of, whole_of
from ..kernels.given_images import GivenImage
from ..kernels.image_target import ImageTarget
from .boards import LONGEST_GREETING
from .messages import LONGEST_ANSWER, LONGEST_REQUEST, SESSION, SessionWork, parse_work, work_message

MOST_IMAGE: Final = 4 << 20  # bytes; a larger one is compiled beside the board
MOST_JOBS: Final = 1024
_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:./@#_-]{0,159}\Z")
_HASH: Final = re.compile(r"[0-9a-f]{64}\Z")
_MOST_ROW: Final = 1 << 40
_MOST_LIMIT: Final = 1 << 40
_MOST_SAID: Final = 8192
_VERBS: Final = ("open", "compile", "close")


@dataclass(frozen=True, slots=True)
class PoolCompiler:
    """A machine that compiles for the boards of a pool."""

    key: str
    host: str
    jobs: int  # images at the same time

    @property
    def label(self) -> str:
        return f"the compile worker on {self.host}"


@dataclass(frozen=True, slots=True)
class CompileRequest:
    """One thing that a compile worker is asked to do."""

    do: str
    session: str
    number: int
    row: int = 0  # of 'compile'
    work: SessionWork | None = None  # of 'open', as the target is
    target: ImageTarget | None = None


def compiler_message(compiler: PoolCompiler) -> dict[str, Any]:
    """As it announces itself."""
    return {
        "version": __version__,
        "compiler": {"key": compiler.key, "host": compiler.host, "jobs": compiler.jobs},
    }


def parse_compiler(line: bytes) -> PoolCompiler | None:
    """What a worker announced; None where it is not one that compiles.

    Raises Garbled, and WattridgeError for another version of the program.
    """
    message = parse_line(line, LONGEST_GREETING)
    if "compiler" not in message:
        return None
    announced = object_of(message["compiler"])
    key, host = announced.get("key"), text_of(announced.get("host"), 253) or "a machine without a name"
    if not isinstance(key, str) or not _KEY.match(key):
        raise Garbled("a compile worker without a key")
    version = text_of(message.get("version"), 64)
    if version != __version__:
        what = f"the worker runs Wattridge {version or 'of no version'}, this is {__version__}"
        raise WattridgeError(what, host, "install the same version on all machines of a pool")
    jobs = whole_of(announced.get("jobs"), MOST_JOBS + 1)
    if not jobs:
        raise Garbled("a compile worker that compiles nothing")
    return PoolCompiler(key, host, jobs)


# --- requests ---------------------------------------------------------------------------------------------------------


def compile_request_line(request: CompileRequest) -> bytes:
    """As it is sent."""
    message: dict[str, Any] = {"do": request.do, "session": request.session, "number": request.number}
    if request.work is not None and request.target is not None:
        message |= work_message(request.work)
        message["target"] = target_document(request.target)
    if request.do == "compile":
        message["rows"] = [request.row]
    return line_of(message)


def parse_compile_request(line: bytes) -> CompileRequest:
    """What is asked. Raises Garbled."""
    message = parse_line(line, LONGEST_REQUEST)
    do, session, number = message.get("do"), message.get("session"), whole_of(message.get("number"), 1 << 62)
    if do not in _VERBS or not isinstance(session, str) or not SESSION.match(session):
        raise Garbled("a request for what nobody does")
    if do == "open":
        target = parse_target(message.get("target"))
        if target is None:
            raise Garbled("a session without what its images are for")
        return CompileRequest(do, session, number, work=parse_work(session, message), target=target)
    if do == "close":
        return CompileRequest(do, session, number)
    (row,) = list_of(message.get("rows"), 1, exactly=True)
    return CompileRequest(do, session, number, whole_of(row, _MOST_ROW))


def target_document(target: ImageTarget | None) -> dict[str, Any] | None:
    """What a board's images are for, as its worker says it; None where nobody else can make them."""
    if target is None:
        return None
    return {
        "capability": list(target.capability),
        "limits": target.limits.as_names(),
        "shared_opt_in": target.shared_opt_in,
        "compiler": target.compiler,
    }


def parse_target(sent: Any) -> ImageTarget | None:
    """What images are for. Raises Garbled."""
    if sent is None:
        return None
    document = object_of(sent)
    major, minor = (whole_of(each, 1000) for each in list_of(document.get("capability"), 2, exactly=True))
    limits, described = dict[str, Any](), object_of(document.get("limits"))
    for each in fields(DeviceLimits):
        value = number_of(described.get(each.name))
        if not 0 <= value < _MOST_LIMIT:
            raise Garbled("a limit of the board is out of its range")
        limits[each.name] = value if each.name == "compute_capability" else int(value)
    shared = whole_of(document.get("shared_opt_in"), _MOST_LIMIT)
    compiler = text_of(document.get("compiler"))
    if not compiler:
        raise Garbled("images without a compiler")
    return ImageTarget((major, minor), DeviceLimits(**limits), shared, compiler)


# --- images -----------------------------------------------------------------------------------------------------------


def image_document(key: str, image: bytes, said: str) -> dict[str, Any]:
    """An image as it is sent."""
    return {
        "key": key,
        "sha256": hashlib.sha256(image).hexdigest(),
        "image": base64.b64encode(image).decode("ascii"),
        "said": said[:_MOST_SAID],
    }


def parse_image(document: Mapping[str, Any], maker: str) -> GivenImage:
    """An image that arrived. Raises Garbled, also where its bytes are not those that it is named by."""
    key, named, text, said = (document.get(name) for name in ("key", "sha256", "image", "said"))
    if not isinstance(key, str) or not _HASH.match(key) or not isinstance(named, str) or not isinstance(text, str):
        raise Garbled("an image without a name")
    if len(text) > MOST_IMAGE * 4 // 3 + 4:
        raise Garbled("an image that is too large")
    try:
        image = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Garbled("an image that is none") from None
    if not image or hashlib.sha256(image).hexdigest() != named:
        raise Garbled("an image that is another one than it says")
    if not isinstance(said, str):
        raise Garbled("an image without what was said of it")
    return GivenImage(key, maker, image, "\n".join(visible(line) for line in said[:_MOST_SAID].splitlines()))


def given_line(session: str, given: GivenImage) -> bytes:
    """An image on its way to a board."""
    return line_of({"session": session, "maker": given.maker, **image_document(given.key, given.image, given.said)})


def parse_given(line: bytes) -> tuple[str, GivenImage]:
    """The session that an image is for, and the image. Raises Garbled."""
    message = parse_line(line, LONGEST_ANSWER)
    session, maker = message.get("session"), text_of(message.get("maker"), 253)
    if not isinstance(session, str) or not SESSION.match(session) or not maker:
        raise Garbled("an image for no session")
    return session, parse_image(message, maker)
