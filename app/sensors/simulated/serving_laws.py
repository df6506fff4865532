"""The equations of a service on a simulated board: what a step takes and draws, by clocks and by what is under way.

A step gives each sequence its next token. The cores and the memory share it, and neither waits for all of the other:

T(B) = (T_core^p + T_memory^p)^(1/p),  T_core = core_s (c + (1 - c) B / B_ref) (f_ref / f)^a,
T_memory = memory_s (m_max / m)^b

with B sequences at once, so that a service gives B / T(B) tokens a second. Of the cores' part a share c is the same for
any B (the weights are unpacked once), the memory's is (they are read once). What a step draws beside pi_0 (`laws`) is

E(B) = core_j v^2 (c + (1 - c) B / B_ref) + memory_j

The form and its figures are this project's, fitted to measurements that the twin's file names. A prompt is read before
its answer begins, and nothing else happens meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..gpu import NotSupported
from . import laws
from .figures import Service, Twin
from .laws import OperatingPoint


@dataclass(frozen=True, slots=True)
class Serving:
    """What a service does at one moment: a step for so many sequences, or the prompt of one."""

    sequences: int
    prefilling: bool = False
    name: str = "service"


def service_of(twin: Twin) -> Service:
    """The twin's model. Raises NotSupported where it has none."""
    if twin.service is None:
        raise NotSupported("no service was ever measured on this board", twin.name, "choose simulated:rtx5090")
    return twin.service


def step_s(twin: Twin, sequences: float, clock_mhz: float, memory_clock_mhz: int) -> float:
    """Time of a step, s: each of so many sequences has its next token. Raises NotSupported without a model."""
    model = service_of(twin)
    held_mhz = laws.memory_in_force_mhz(twin, clock_mhz, memory_clock_mhz)
    slower = (model.reference_clock_mhz / clock_mhz) ** model.core_exponent
    core_s = model.core_s * _of_cores(model, sequences) * slower
    memory_s = model.memory_s * (twin.clocks.memory_mhz[-1] / held_mhz) ** model.memory_exponent
    longest = max(core_s, memory_s)
    blended = (core_s / longest) ** model.blend + (memory_s / longest) ** model.blend
    return float(longest * blended ** (1.0 / model.blend))


def prefill_rate(twin: Twin, clock_mhz: float) -> float:
    """Tokens of prompts a second, while nothing else is done. Raises NotSupported without a model."""
    model = service_of(twin)
    return model.prefill_tokens_per_s * clock_mhz / model.reference_clock_mhz


def under_service(twin: Twin, serving: Serving, clock_mhz: float, memory_clock_mhz: int) -> OperatingPoint:
    """The board while it serves; a launch is a step, or the reading of one token of a prompt."""
    model = service_of(twin)
    voltage = laws.relative_voltage(twin, clock_mhz)
    if serving.prefilling:
        time_s = 1.0 / prefill_rate(twin, clock_mhz)
        core_j, memory_j = model.prefill_j, 0.0
    else:
        time_s = step_s(twin, serving.sequences, clock_mhz, memory_clock_mhz)
        core_j, memory_j = model.core_j * _of_cores(model, serving.sequences), model.memory_j
    memory_s = 0.0 if serving.prefilling else min(time_s, model.memory_s)
    return OperatingPoint(
        clock_mhz=clock_mhz,
        launch_s=time_s,
        steady_w=(core_j * voltage**2 + memory_j) / time_s + laws.unleaked_w(twin, clock_mhz, memory_clock_mhz, 1.0),
        leakage_w=twin.power.static_w * twin.power.leakage_share * voltage,
        memory_w=laws.resting_memory_w(twin, clock_mhz, memory_clock_mhz) + memory_j / time_s,
        memory_busy=memory_s / time_s,
    )


def _of_cores(model: Service, sequences: float) -> float:
    """The cores' part of a step over that of a step for the reference number of sequences."""
    return model.core_fixed_share + (1.0 - model.core_fixed_share) * sequences / model.reference_sequences
