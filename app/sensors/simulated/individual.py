"""One board among several of a simulated model: `a100#2`. No two boards of a model draw, or report, quite the same.

A board differs in three ways from the figures of its model, each by a normal deviate that follows from its number
alone: what its power sensor reports (NVML's gain error, up to 5 % board by board [Yang2024]), what its work draws
(silicon), and what it draws besides (leakage). The last two are assumptions of a usual size. Clocks and rates are the
model's: boards of one model take the same time at the same clock, until a limit acts.
"""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from .figures import Twin

MOST: Final = 9999  # boards of a model
GAIN: Final = 0.02  # standard deviation of what the sensor reports, relative
_MOST_GAIN: Final = 0.05
_WORK: Final = 0.01  # of the energy of work and traffic
_STATIC: Final = 0.03  # of what is drawn besides
_NUMBERED: Final = re.compile(r"(.*\S)\s*#\s*([1-9][0-9]{0,3})")


def split_number(name: str) -> tuple[str, int]:
    """'a100#2' as ('a100', 2); the number is 0 where the name has none, and means the model's own figures."""
    found = _NUMBERED.fullmatch(name.strip())
    return (found[1], int(found[2])) if found else (name.strip(), 0)


def individual(twin: Twin, number: int) -> Twin:
    """Board `number` of that model, from 1; with 0 the model itself."""
    if number == 0:
        return twin
    key = f"{twin.key}#{number}"
    drawn = random.Random(f"{number} of a model")  # of text: the same on every machine
    gain, work, static = (drawn.gauss(0.0, deviation) for deviation in (GAIN, _WORK, _STATIC))
    gain = max(-_MOST_GAIN, min(_MOST_GAIN, gain))
    energy, power = twin.energy, twin.power
    board = replace(
        twin,
        key=key,
        energy=replace(
            energy,
            eps_flop_pj=MappingProxyType({each: pj * (1 + work) for each, pj in energy.eps_flop_pj.items()}),
            eps_mem_pj_per_b=energy.eps_mem_pj_per_b * (1 + work),
            eps_onchip_pj_per_b=energy.eps_onchip_pj_per_b * (1 + work),
        ),
        power=replace(power, static_w=power.static_w * (1 + static), idle_w=power.idle_w * (1 + static)),
    )
    return with_gain(board, twin.sensors.gain * (1 + gain))


def with_gain(twin: Twin, gain: float) -> Twin:
    """The board with a power sensor that reports so many times what it draws.

    Its controller goes by the sensor, so a limit holds what is reported: where that is too much, the board slows early.
    """
    power, sensors = twin.power, twin.sensors
    share = power.limit_share * sensors.gain / gain
    return replace(twin, power=replace(power, limit_share=share), sensors=replace(sensors, gain=gain))


def noise_seed(seed: int, key: str) -> int:
    """The seed of the sensors' noise, which is another one on each board of a model."""
    number = split_number(key)[1]
    return seed if number == 0 else zlib.crc32(f"{seed} {number}".encode())
