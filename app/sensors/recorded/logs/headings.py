"""What a column of a log holds, by its heading: a time, a board, or a channel and the unit it is written in."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SCALES: Final = {  # unit in a heading or a cell -> (channel's unit, factor)
    "w": ("W", 1.0), "watt": ("W", 1.0), "watts": ("W", 1.0), "mw": ("W", 1e-3), "kw": ("W", 1e3),
    "j": ("J", 1.0), "joule": ("J", 1.0), "joules": ("J", 1.0), "mj": ("J", 1e-3), "kj": ("J", 1e3),
    "wh": ("J", 3600.0),
    "hz": ("MHz", 1e-6), "khz": ("MHz", 1e-3), "mhz": ("MHz", 1.0), "ghz": ("MHz", 1e3),
    "v": ("mV", 1e3), "mv": ("mV", 1.0), "%": ("%", 1.0), "c": ("°C", 1.0), "°c": ("°C", 1.0),
    "mib": ("MiB", 1.0), "mb": ("MiB", 1.0), "gib": ("MiB", 1024.0), "mb/s": ("MB/s", 1.0),
}  # fmt: skip
_TIME_SCALES: Final = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_BRACKETED: Final = re.compile(r"\s*[\[(]([^\[\]()]*)[\])]\s*$")
_LAST_WORD: Final = re.compile(
    r"[ _](mw|w|watts?|kw|mj|j|joules?|wh|mhz|ghz|khz|mv|mib|ms|us|ns|s|sec|seconds|c|percent)$"
)
_NUMBERED: Final = re.compile(r"\b(?:gpu|device|card)[ _]?(\d{1,3})\b")

# the words of a heading, units and punctuation aside -> the channel; the first that fits counts
_CHANNELS: Final = [
    (re.compile(pattern), channel)
    for pattern, channel in (
        (r"(gpu )?power (draw )?(avg|average)|gpu average|average power", "power_average_w"),
        (r"(gpu )?power (draw )?(inst|instant|instantaneous)|gpu instant|instant power|powinst", "power_instant_w"),
        (r"(.*\b)?(power (cap|limit)|enforced power limit|pmlmt|eplmt)|power management limit", "power_limit_w"),
        (r"(mem|memory|vram|mvddc) power.*", "memory_power_w"),
        (r"power|pwr|(gpu |device )power", "power_average_w"),  # as NVML gives it where nothing else is asked for
        (r"(board )?power draw|((gpu|board|total|device) )?(power|watts?|power usage|power watts)", "power_instant_w"),
        (r"(average )?socket power", "power_average_w"),
        (r"totec|total energy consumption|energy counter|energy( consumption)?", "energy_j"),
        (r"clockspeed gpu|clocks (current )?(gr|graphics)|pclk", "graphics_clock_mhz"),
        (r"(gpu|graphics|core) (clock|freq)", "graphics_clock_mhz"),
        (r"clocks (current )?sm|sm (clock|freq)|smclk|smfreq", "sm_clock_mhz"),
        (r"clocks (current )?mem(ory)?|(mem|memory|vram) (clock|freq)|clockspeed vram|mm?clk", "memory_clock_mhz"),
        (r"clocks (current )?video|video clock", "video_clock_mhz"),
        (r"clockspeed gpu target", "requested_graphics_clock_mhz"),
        (r"temperature gpu|(gpu )?temp(erature)?|temp (gpu|edge)|gtemp|gpu temperature|tmptr", "temperature_c"),
        (r"temperature memory|temp (vram|mem)|(memory|mem|vram) temp(erature)?|mtemp|mmtmp", "memory_temperature_c"),
        (r"utilization gpu|(gpu )?(usage|util(i[sz]ation)?|load|busy)|sm|gputl", "utilisation_percent"),
        (r"utilization memory|memory (controller load|utili[sz]ation)|mem|mcutl", "memory_utilisation_percent"),
        (r"memory used|vram used|mem used|fb|fbusd", "memory_used_mib"),
        (r"fan speed|fan|fansp", "fan_percent"),
        (r"pstate|pstat|performance state", "performance_state"),
        (r"gpu voltage|core voltage|voltage", "core_voltage_mv"),
        (r"clocks (event|throttle) reasons active", "event_reasons"),
        (r"rxpci", "pcie_rx_mb_per_s"),
        (r"txpci", "pcie_tx_mb_per_s"),
    )
]  # fmt: skip
_BOARDS: Final = {  # what tells boards apart, the best first
    "gpu uuid": "uuid", "uuid": "uuid", "gpu bus id": "bus", "pci bus id": "bus", "index": "index", "gpu": "index",
    "gpu id": "index", "gpu index": "index", "device": "index", "device id": "index", "entity": "index", "idx": "index",
    **dict.fromkeys(("gpu idx", "gpu no", "gpu num", "gpu number", "card", "card id", "board", "board id"), "index"),
    **dict.fromkeys(("minor number", "rank", "local rank", "device index", "device idx", "host", "hostname"), "index"),
    "serial": "uuid", "gpu serial": "uuid", "bus id": "bus", "pci bus": "bus",
}  # fmt: skip
_NAMES: Final = frozenset(("name", "gpu name", "device name"))
_TIMES: Final = re.compile(
    r"(time ?stamp|date ?time|ts|time|date|elapsed|elapsed time|seconds|t)( (s|sec|seconds|ms|us|ns|utc|local))?"
)
_UNIT_OF: Final = {"percent": "%"}


@dataclass(frozen=True, slots=True)
class Heading:
    """One column. `role` is time, day, board, name, driver, channel or '' for what is not read."""

    text: str
    role: str
    channel: str = ""
    scale: float | None = None  # to the channel's unit, of times to s; None where the heading names no unit
    board: str = (
        ""  # the number of the board in the heading, where a row holds several: 'GPU1'; or what tells boards apart
    )


def heading(text: str, unit: str = "") -> Heading:
    """What a heading says; `unit` is that of a second line, as dmon writes it."""
    text = " ".join(text.split())
    bracketed = _BRACKETED.search(text)
    lower = (_BRACKETED.sub("", text) if bracketed and _is_unit(bracketed[1]) else text).lower()
    unit = (unit or (bracketed[1] if bracketed and _is_unit(bracketed[1]) else "")).strip().lower()
    words = re.sub(r"[^a-z0-9%µ]+", " ", lower).strip()
    if words in ("date", "time", "day") and not unit:
        return Heading(text, "day" if words != "time" else "time")
    if _TIMES.fullmatch(words):
        last = unit or words.rpartition(" ")[2]
        return Heading(text, "time", scale=_TIME_SCALES.get(last))
    if words in _BOARDS:
        return Heading(text, "board", board=_BOARDS[words])
    if words in _NAMES:
        return Heading(text, "name")
    if words == "driver version":
        return Heading(text, "driver")
    last_word = _LAST_WORD.search(words)
    if last_word and not unit:
        unit, words = _UNIT_OF.get(last_word[1], last_word[1]), words[: last_word.start()]
    numbered = _NUMBERED.search(words)
    board = numbered[1] if numbered else ""
    if numbered:
        words = _NUMBERED.sub(" ", words)
        words = " ".join(words.split()) or "power"
    if lower == "power.draw":  # of nvidia-smi; LACT's 'Power Draw' is another one
        return Heading(text, "channel", "power_average_w", scale_of(unit), board)
    for pattern, channel in _CHANNELS:
        if pattern.fullmatch(words):
            return Heading(text, "channel", channel, scale_of(unit), board)
    return Heading(text, "")


def scale_of(unit: str) -> float | None:
    """The factor from a unit to that of its channel; None for an unknown one."""
    known = _SCALES.get(unit.strip().lower())
    return None if known is None else known[1]


def _is_unit(text: str) -> bool:
    lower = text.strip().lower()
    return lower in _SCALES or lower in _TIME_SCALES or lower in ("", "rpm", "% tdp", "℃")
