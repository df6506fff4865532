"""The header of a recording: one JSON object, the first line of both forms, and the facts that it states.

Nothing in it names the board: no UUID, serial number or bus address.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from ...base.errors import InputError
from ...base.text import json_or_none
from ..channel import CHANNELS, Channel, channel
from ..gpu import Gpu, GpuInfo, PowerLimit

FORMAT: Final = "wattridge-recording"
TEXT_FORM, COLUMNS_FORM = 1, 2  # versions
MAX_HEADER: Final = 1 << 20  # characters
LARGEST: Final = 1e15  # no figure of a GPU is beyond it
REMEDY: Final = "record it again with `wattridge monitor --record FILE`"
_MAX_CLOCKS = 10_000
_LONGEST_MARK = 200


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A named instant of a recording, ns after its beginning."""

    time_ns: int
    text: str


def mark_text(text: str) -> str:
    """One line without control characters, as it is kept. Raises InputError if it is empty or too long."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: 4 * _LONGEST_MARK]).split())
    if not line or len(line) > _LONGEST_MARK:
        raise InputError("a mark needs a text", "mark", f"one line of at most {_LONGEST_MARK} characters")
    return line


@dataclass(frozen=True, slots=True)
class Facts:
    """What a recording states of its board and of itself."""

    title: str
    info: GpuInfo  # of the recorded board, without its UUID
    recorded_from: str
    graphics_clocks_mhz: tuple[int, ...]
    memory_clocks_mhz: tuple[int, ...]
    channels: tuple[Channel, ...]
    began_s: float = math.nan  # since the epoch; NaN if that is not known
    log: dict[str, Any] = field(default_factory=dict)  # of another tool's log: tool, notes, assumed step


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording(Facts):
    """A recording, read. Times are ns after its beginning, rising; `values` has a column per channel, NaN unknown."""

    time_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]  # (readings, channels)
    sample_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    sample_w: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0, np.float64))
    selector: str = ""  # what opens it again behind 'recorded:', from any folder; empty if a reader was asked itself
    zoned: bool = True  # of a log whose dates name no zone `began_s` takes them as of this machine's
    marks: tuple[Mark, ...] = ()

    @property
    def by_name(self) -> dict[str, npt.NDArray[np.float64]]:
        """The values of each channel."""
        return {described.name: self.values[:, place] for place, described in enumerate(self.channels)}


def recording_of(
    facts: Facts,
    time_ns: npt.NDArray[np.int64],
    values: npt.NDArray[np.float64],
    sample_ns: npt.NDArray[np.int64],
    sample_w: npt.NDArray[np.float64],
    marks: Sequence[Mark],
) -> Recording:
    """The recording with these facts."""
    stated: dict[str, Any] = {each.name: getattr(facts, each.name) for each in fields(Facts)}
    return Recording(
        **stated, time_ns=time_ns, values=values, sample_ns=sample_ns, sample_w=sample_w, marks=tuple(sorted(marks))
    )


def recorded_info(name: str, power_limit: PowerLimit, power_source: str, driver: str = "", **facts: Any) -> GpuInfo:
    """Facts of a recorded board, which a file holds without its UUID."""
    return GpuInfo(0, "", name, "recorded", driver, power_limit, power_source=power_source, **facts)


def facts_of(gpu: Gpu, title: str, began_s: float) -> Facts:
    """The facts of a board that is being recorded."""
    clocks = tuple(gpu.graphics_clocks_mhz()), tuple(gpu.memory_clocks_mhz())
    return Facts(title, gpu.info, gpu.info.source, *clocks, tuple(gpu.channels), began_s)


def header_line(facts: Facts, version: int, **more: Any) -> str:
    """The first line of a file."""
    info, limit = facts.info, facts.info.power_limit
    header = {
        "format": FORMAT,
        "version": version,
        "name": info.name,
        "driver": info.driver,
        "recorded_from": facts.recorded_from,
        "power_limit_w": {
            "min": limit.minimum_w, "max": limit.maximum_w, "default": limit.default_w, "current": limit.current_w,
        },
        "compute_capability": info.compute_capability,
        "multiprocessors": info.multiprocessors,
        "memory_mib": info.memory_mib,
        "power_source": info.power_source,
        "graphics_clocks_mhz": list(facts.graphics_clocks_mhz),
        "memory_clocks_mhz": list(facts.memory_clocks_mhz),
        "channels": {described.name: described.unavailable for described in facts.channels},
    }  # fmt: skip
    if math.isfinite(facts.began_s):
        header["began_s"] = round(facts.began_s, 6)
    return json.dumps(header | more, ensure_ascii=False) + "\n"


class Header:
    """Reads the first line of a file; `where` names it in errors."""

    def __init__(self, line: str, where: str, title: str, version: int) -> None:
        self._where = where
        if len(line) > MAX_HEADER:
            self._refuse("the first line is too long for a recording's header")
        self.document = self._document(line, version)
        capability = self._fact("compute_capability", _CAPABILITY)
        multiprocessors = self._fact("multiprocessors", _NUMBER)
        graphics_mhz, memory_mhz = (tuple(self._fact(f"{kind}_clocks_mhz", _COUNTS, [])) for kind in _CLOCKS)
        log = self.document.get("log")
        self.facts = Facts(
            title=self._fact("title", _TEXT, "") or title,
            info=recorded_info(
                self._fact("name", _TEXT, "") or "GPU",
                self._power_limit(self.document.get("power_limit_w")),
                self._fact("power_source", _TEXT, ""),
                driver=self._fact("driver", _TEXT, ""),
                compute_capability=tuple(capability) if capability else None,
                multiprocessors=None if multiprocessors is None else int(multiprocessors),
                memory_mib=_float(self._fact("memory_mib", _NUMBER)),
            ),
            recorded_from=self._fact("recorded_from", _TEXT, ""),
            graphics_clocks_mhz=graphics_mhz,
            memory_clocks_mhz=memory_mhz,
            channels=self._channels(self.document.get("channels")),
            began_s=float(self._fact("began_s", _NUMBER, math.nan)),
            log=log if isinstance(log, dict) else {},
        )

    def _refuse(self, what: str) -> NoReturn:
        raise InputError(what, f"{self._where}, line 1", REMEDY)

    def _document(self, line: str, version: int) -> dict[str, Any]:
        header = json_or_none(line)
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            self._refuse("this is no recording of a GPU")
        if header.get("version") != version:
            self._refuse(f"the recording is of version {str(header.get('version'))[:20]}, this program reads {version}")
        return header

    def _channels(self, reasons: object) -> tuple[Channel, ...]:
        if not isinstance(reasons, dict) or not reasons:
            self._refuse("'channels' must name every channel, with null or the reason why it is not available")
        for name, reason in reasons.items():
            if name not in CHANNELS or not (reason is None or isinstance(reason, str)):
                self._refuse(f"'{str(name)[:40]}' is no channel, or its reason is no text")
        return tuple(channel(name, reason) for name, reason in reasons.items())

    def _fact(self, key: str, kind: str, otherwise: Any = None, facts: dict[str, Any] | None = None) -> Any:
        """A value of the header; `otherwise` if it is missing."""
        value = (self.document if facts is None else facts).get(key, otherwise)
        if value is not otherwise and value != otherwise and not _KINDS[kind](value):
            self._refuse(f"'{key}' must be {kind}")
        return value

    def _power_limit(self, limits: object) -> PowerLimit:
        facts = limits if isinstance(limits, dict) else {}
        numbers = (self._fact(key, _NUMBER, facts=facts) for key in ("min", "max", "default", "current"))
        return PowerLimit(*map(_float, numbers))


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < LARGEST


def _is_counts(value: object) -> bool:
    return isinstance(value, list) and len(value) <= _MAX_CLOCKS and all(map(_is_count, value))


# what a value of the header must be, as an error names it
_CLOCKS: Sequence[str] = ("graphics", "memory")
_TEXT, _NUMBER, _CAPABILITY, _COUNTS = "text", "a number", "[major, minor]", "a list of whole numbers"
_KINDS: dict[str, Callable[[Any], bool]] = {
    _TEXT: lambda value: isinstance(value, str),
    _NUMBER: lambda value: type(value) in (int, float) and abs(value) < LARGEST,
    _CAPABILITY: lambda value: _is_counts(value) and len(value) == 2,
    _COUNTS: _is_counts,
}
