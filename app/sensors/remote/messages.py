"""What two Wattridges say to each other through ssh: one JSON object a line, in bounds, and nothing else.

The end with the board begins:

    {"hello": {"protocol": 1, "version": "0.9", "info": {...}, "channels": {...}, "graphics_clocks_mhz": [...], ...}}
    {"reading": [time_ns, value, ...]}                    values of the channels that are available; null if unknown
    {"samples": [[time_ns, watt], ...]}                   what was new in the driver's buffer of power samples
    {"trouble": "one line"}                               it cannot be read just now
    {"id": 3, "at_ns": ..., "answer": {...}}              or "error": {"kind", "what", "where", "remedy"}

The other end asks, once a second at least, since an end that hears nothing gives up:

    {"id": 3, "do": "ping"}

What comes from another machine is not trusted: a line is at most `LONGEST_LINE` long, every field has its type and its
range, texts are cut and hold no control characters, and what is none of these ends the connection with one line.

Lines of JSON from other machines, and the fields in them: bounded, typed, and never more than data.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, get_args

from ...base.text import one_line, shortened
from ..channel import CHANNELS, Channel, PowerSample, Reading, channel
from ..gpu import LIVE, GpuInfo, GpuLost, GpuProcess, NoPermission, NotSupported, PowerLimit, SensorError, Source, Use
from ..power_profiles import MOST_PROFILES

LONGEST_LINE: Final = 1 << 18
LONGEST_TEXT: Final = 400


class Garbled(SensorError):
    """A line from the other end that is not what it should be."""


def line_of(message: Mapping[str, Any]) -> bytes:
    """A message as it is sent. Raises ValueError if it holds what JSON has no word for."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"


def parse_line(line: bytes, most: int = LONGEST_LINE) -> dict[str, Any]:
    """One line of at most so many bytes as an object. Raises Garbled."""
    if len(line) > most or not line.endswith(b"\n"):
        raise Garbled("a line without end")
    try:
        message = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise Garbled(f"not a line of ours: {shortened(line.decode('ascii', 'replace'))}") from None  # ours are ASCII
    if not isinstance(message, dict):
        raise Garbled("not a line of ours")
    return message


def _no_constant(name: str) -> float:
    raise ValueError(name)


def object_of(value: Any, most: int = 256) -> dict[str, Any]:
    """An object of at most so many members. Raises Garbled."""
    if not isinstance(value, dict) or len(value) > most:
        raise Garbled("a field has another type than it should")
    return value


def list_of(value: Any, most: int, *, exactly: bool = False) -> list[Any]:
    """A list of at most, or exactly, so many. Raises Garbled."""
    if not isinstance(value, list) or len(value) > most or (exactly and len(value) != most):
        raise Garbled("a list has another length than it should")
    return value


def text_of(value: Any, most: int = LONGEST_TEXT) -> str:
    """A text on one line, cut and without control characters; empty if it is none."""
    return shortened(one_line(value), most) if isinstance(value, str) else ""


def number_of(value: Any) -> float:
    """A finite number. Raises Garbled."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise Garbled("a value is no number")
    return float(value)


def number_or_none(value: Any) -> float | None:
    """A finite number, or null. Raises Garbled."""
    return None if value is None else number_of(value)


def whole_of(value: Any, most: int) -> int:
    """A whole number from 0 to below `most`. Raises Garbled."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < most:
        raise Garbled("a number is out of its range")
    return value


PROTOCOL: Final = 1
_MOST_CLOCKS: Final = 4096
_MOST_SAMPLES: Final = 4096
_MOST_PROCESSES: Final = 512
_MOST_NS: Final = 1 << 62
_MOST_MHZ: Final = 100_000
_SOURCES: Final = get_args(Source)
_USES: Final = get_args(Use)
_KINDS: Final[Mapping[str, type[SensorError]]] = {
    "not_supported": NotSupported,
    "no_permission": NoPermission,
    "lost": GpuLost,
    "failed": SensorError,
}


@dataclass(frozen=True, slots=True)
class Hello:
    """What the end with the board says first."""

    version: str
    info: GpuInfo
    channels: tuple[Channel, ...]
    graphics_clocks_mhz: tuple[int, ...]
    memory_clocks_mhz: tuple[int, ...]
    buffered: bool  # the board has a buffer of power samples
    lists_processes: bool
    cannot_set: Mapping[str, str]  # setting -> why the board would refuse it
    power_profiles: Mapping[int, str] = field(default_factory=dict)  # workload power profiles, number -> name


# --- hello ------------------------------------------------------------------------------------------------------------


def hello_message(hello: Hello) -> dict[str, Any]:
    """As it is sent."""
    info = hello.info
    limit = info.power_limit
    return {
        "hello": {
            "protocol": PROTOCOL,
            "version": hello.version,
            "info": {
                "index": info.index,
                "uuid": info.uuid,
                "name": info.name,
                "source": info.source,
                "driver": info.driver,
                "power_limit_w": [limit.minimum_w, limit.maximum_w, limit.default_w, limit.current_w],
                "compute_capability": list(info.compute_capability) if info.compute_capability else None,
                "multiprocessors": info.multiprocessors,
                "memory_mib": info.memory_mib,
                "power_source": info.power_source,
            },
            "channels": {item.name: item.unavailable for item in hello.channels},
            "graphics_clocks_mhz": list(hello.graphics_clocks_mhz),
            "memory_clocks_mhz": list(hello.memory_clocks_mhz),
            "buffered": hello.buffered,
            "lists_processes": hello.lists_processes,
            "cannot_set": dict(hello.cannot_set),
            "power_profiles": [[number, name] for number, name in hello.power_profiles.items()],
        }
    }


def parse_hello(message: Mapping[str, Any], machine: str) -> Hello:
    """The first line; `machine` is where it came from. Raises Garbled, and SensorError for another protocol."""
    hello = message.get("hello")
    if not isinstance(hello, dict):
        raise Garbled("the first line is no greeting")
    version = text_of(hello.get("version"))
    if hello.get("protocol") != PROTOCOL:
        remedy = "install the same version of Wattridge on both machines"
        raise SensorError(f"Wattridge {version} there speaks another protocol", machine, remedy)
    info = object_of(hello.get("info"))
    limit = [number_or_none(value) for value in list_of(info.get("power_limit_w"), 4)]
    if len(limit) != 4 or info.get("source") not in _SOURCES:
        raise Garbled("the board is not described")
    capability = info.get("compute_capability")
    multiprocessors = info.get("multiprocessors")
    return Hello(
        version=version,
        info=GpuInfo(
            index=whole_of(info.get("index"), 1 << 16),
            uuid=_uuid(text_of(info.get("uuid")), info["source"], machine),
            name=text_of(info.get("name")) or "a board without a name",
            source=info["source"],
            driver=text_of(info.get("driver")),
            power_limit=PowerLimit(*limit),
            compute_capability=_capability(capability) if capability is not None else None,
            multiprocessors=whole_of(multiprocessors, 1 << 20) if multiprocessors is not None else None,
            memory_mib=number_or_none(info.get("memory_mib")),
            power_source=text_of(info.get("power_source")),
            host=machine,
        ),
        channels=_channels(object_of(hello.get("channels"))),
        graphics_clocks_mhz=_clocks(hello.get("graphics_clocks_mhz")),
        memory_clocks_mhz=_clocks(hello.get("memory_clocks_mhz")),
        buffered=hello.get("buffered") is True,
        lists_processes=hello.get("lists_processes") is True,
        cannot_set={text_of(name): text_of(why) for name, why in object_of(hello.get("cannot_set")).items()},
        power_profiles=_power_profiles(hello.get("power_profiles", [])),  # an older version does not name any
    )


def _uuid(uuid: str, source: Source, machine: str) -> str:
    """A real board's own; what is simulated there is another board than the one that is simulated here."""
    return uuid if source in LIVE else f"{uuid} on {machine}"


def _channels(reasons: Mapping[str, Any]) -> tuple[Channel, ...]:
    """The catalogue's channels, in its order: a newer end may know more of them, an older one fewer."""
    channels = {}
    for name, why in reasons.items():
        if name in CHANNELS:
            channels[name] = channel(name, None if why is None else text_of(why) or "not reported")
    return tuple(channels.get(name) or channel(name, "the other end does not know this channel") for name in CHANNELS)


# --- readings ---------------------------------------------------------------------------------------------------------


def reading_message(reading: Reading, channels: Sequence[Channel]) -> dict[str, Any]:
    """As it is sent: only what is available, in the order of the channels."""
    values = [
        None if math.isnan(value) else value
        for item, value in zip(channels, reading.values, strict=True)
        if item.available
    ]
    return {"reading": [reading.time_ns, *values]}


def parse_reading(figures: Any, order: Sequence[int], count: int) -> Reading:
    """A reading of `count` channels; `order` has the place of each value that is sent. Raises Garbled."""
    if not isinstance(figures, list) or len(figures) != len(order) + 1:
        raise Garbled("a reading of other channels")
    values = [math.nan] * count
    for place, value in zip(order, figures[1:], strict=True):
        if value is not None:
            values[place] = number_of(value)
    return Reading(whole_of(figures[0], _MOST_NS), tuple(values))


def samples_message(samples: Sequence[PowerSample]) -> dict[str, Any]:
    """As it is sent."""
    return {"samples": [[sample.time_ns, sample.power_w] for sample in samples]}


def parse_samples(pairs: Any) -> list[PowerSample]:
    """Samples of the driver's buffer. Raises Garbled."""
    samples = []
    for pair in list_of(pairs, _MOST_SAMPLES):
        time_ns, power_w = list_of(pair, 2, exactly=True)
        samples.append(PowerSample(whole_of(time_ns, _MOST_NS), number_of(power_w)))
    return samples


def process_document(process: GpuProcess) -> dict[str, Any]:
    """As it is sent."""
    share = None if math.isnan(process.share_percent) else process.share_percent
    memory = None if math.isnan(process.memory_mib) else process.memory_mib
    return {"pid": process.pid, "name": process.name, "memory_mib": memory, "use": process.use, "share_percent": share}


def parse_processes(processes: Any) -> list[GpuProcess]:
    """What runs on the board. Raises Garbled."""
    results = []
    for value in list_of(processes, _MOST_PROCESSES):
        one = object_of(value)
        use: Use | None = next((known for known in _USES if known == one.get("use")), None)
        if use is None:
            raise Garbled("a process without its use")
        memory, share = (number_or_none(one.get(name)) for name in ("memory_mib", "share_percent"))
        results.append(
            GpuProcess(
                whole_of(one.get("pid"), 1 << 32),
                text_of(one.get("name")),
                math.nan if memory is None else memory,
                use,
                math.nan if share is None else share,
            )
        )
    return results


# --- errors -----------------------------------------------------------------------------------------------------------


def error_document(error: Exception) -> dict[str, str]:
    """An error as an answer holds it."""
    kind = next((name for name, known in _KINDS.items() if isinstance(error, known)), "refused")
    return {
        "kind": kind,
        "what": str(getattr(error, "what", "") or error or type(error).__name__),
        "remedy": str(getattr(error, "remedy", "")),
    }


def parse_error(document: Any) -> tuple[str, str, str]:
    """(kind, what, remedy) of an error that was answered; `kind` is "refused" if it is none of a sensor's."""
    error = object_of(document)
    kind = next((known for known in _KINDS if known == error.get("kind")), "refused")
    return kind, text_of(error.get("what")) or "it failed", text_of(error.get("remedy"))


def sensor_error(kind: str, what: str, where: str, remedy: str) -> SensorError:
    """The error of a sensor, of its kind."""
    return _KINDS.get(kind, SensorError)(what, where, remedy)


# --- pieces -----------------------------------------------------------------------------------------------------------


def _clocks(listed: Any) -> tuple[int, ...]:
    return tuple(sorted({whole_of(value, _MOST_MHZ) for value in list_of(listed, _MOST_CLOCKS)} - {0}))


def _power_profiles(listed: Any) -> dict[int, str]:
    pairs = [list_of(value, 2, exactly=True) for value in list_of(listed, MOST_PROFILES)]
    return {whole_of(number, MOST_PROFILES - 1): text_of(name) for number, name in pairs}


def _capability(pair: Any) -> tuple[int, int]:
    major, minor = (whole_of(value, 1000) for value in list_of(pair, 2, exactly=True))
    return major, minor
