"""Images that another machine made: used in place of compiling, once one of that machine's was found equal to our own.

The same compiler gives the same bytes for the same text. A machine of which an image differs from what is compiled
here has other headers, or does not say the truth: none of its images is used from then on.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from .image_maker import Compiled
from .image_target import ImageTarget

MOST_BYTES: Final = 256 << 20  # of images that are kept; those that came first go first
_MOST_OWN: Final = 4096  # images made here that are remembered, by their hashes
DIFFERS: Final = "an image of theirs differs from what is compiled beside the board"


@dataclass(frozen=True, slots=True)
class GivenImage:
    """An image that came from elsewhere."""

    key: str  # of what it was made from: `Compiler.key` there
    maker: str  # the machine that made it
    image: bytes
    said: str = ""  # by the compiler


class GivenImages:
    """Those of a session. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.used = 0
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, GivenImage] = OrderedDict()
        self._bytes = 0
        self._own: OrderedDict[str, bytes] = OrderedDict()  # hashes of what was made here, by its key
        self._trusted: set[str] = set()
        self._refused: dict[str, str] = {}

    @property
    def refused(self) -> Mapping[str, str]:
        """The machines whose images are not used, and why."""
        with self._lock:
            return dict(self._refused)

    def give(self, given: GivenImage) -> None:
        """Take an image that came from elsewhere."""
        with self._lock:
            own = self._own.get(given.key)
            if own is not None:
                self._judge(given, own)
                return  # what was made here is on this machine's disk
            if given.maker in self._refused or given.key in self._kept:
                return
            self._kept[given.key] = given
            self._bytes += len(given.image)
            while self._bytes > self._most_bytes:
                _, oldest = self._kept.popitem(last=False)
                self._bytes -= len(oldest.image)

    def find(self, key: str) -> Compiled | None:
        """What was given under that key by a machine whose images are known to equal ours."""
        with self._lock:
            given = self._kept.get(key)
            if given is None or given.maker not in self._trusted:
                return None
            self.used += 1
            return Compiled(given.image, given.said, given.maker)

    def compare(self, key: str, own: Compiled) -> None:
        """Something was compiled here: whoever gave the same is judged by it."""
        made = _hash(own.image)
        with self._lock:
            self._own[key] = made
            while len(self._own) > _MOST_OWN:
                self._own.popitem(last=False)
            given = self._kept.get(key)
            if given is not None:
                self._judge(given, made)

    def _judge(self, given: GivenImage, own: bytes) -> None:
        if _hash(given.image) == own:
            if given.maker not in self._refused:
                self._trusted.add(given.maker)
            return
        self._trusted.discard(given.maker)
        self._refused[given.maker] = DIFFERS
        for key in [key for key, each in self._kept.items() if each.maker == given.maker]:
            self._bytes -= len(self._kept.pop(key).image)


@runtime_checkable
class TakesImages(Protocol):
    """A runner that compiles, and can use what another machine compiled instead."""

    def take_images_from(self, root: Path) -> ImageTarget | None:
        """From now on images may be given, made of the same files below another folder than `root`; what they are
        made for. None where no other machine can make them."""
        ...

    def give_image(self, given: GivenImage) -> None:
        """Use that image in place of compiling, where it is the same. Of any thread; returns at once."""
        ...

    @property
    def given(self) -> GivenImages | None:
        """What was given; None where nothing can be."""
        ...


def _hash(image: bytes) -> bytes:
    return hashlib.sha256(image).digest()
