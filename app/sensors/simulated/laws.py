"""The equations of a simulated board: one physics for all of them, each with figures of its own.

A launch costs E = W eps_flop(V) + Q eps_mem + B eps_onchip(V) + T pi_0(f, V, temperature): the energy roofline
[Holtmann2024, eq. 5] with voltage as in [Schoonhoven2024, eq. 6.1]. What switches costs f V^2; what leaks costs V and
doubles with temperature. The time of a launch is a roofline whose roofs blend into each other.

A service of tokens gives each of its sequences the next one in a step, which cores and memory share, and neither waits
for all of the other:

T(B) = (T_core^p + T_memory^p)^(1/p),  T_core = core_s (c + (1 - c) B / B_ref) (f_ref / f)^a,
T_memory = memory_s (m_max / m)^b

with B sequences at once, so that a service gives B / T(B) tokens a second. Of the cores' part a share c is the same for
any B (the weights are unpacked once), the memory's is (they are read once). Beside pi_0 a step draws

E(B) = core_j v^2 (c + (1 - c) B / B_ref) + memory_j

This form and its figures are this project's, fitted to measurements that the twin's file names. A prompt is read before
its answer begins, and nothing else happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from ..gpu import Load, NotSupported
from .twin import Service, Twin

ROOF_BLEND: Final = 4.0  # order of the norm: the A100's measured roofline rounds its corner so (3.8 to 4.3 fit it)
_WELL_BELOW: Final = 0.05  # of the clock that is wanted: held back so far, the whole saving of a limit counts
_HOTTEST_C: Final = 150.0  # where leakage would run away, the solution is held here
_SOLVER_STEPS: Final = 60


def relative_voltage(twin: Twin, clock_mhz: float) -> float:
    """Core voltage over the voltage below the ridge, no unit."""
    above = clock_mhz - twin.voltage.ridge_mhz
    if above <= 0:
        return 1.0
    return 1.0 + twin.voltage.slope_per_mhz * above + twin.voltage.curve_per_mhz2 * above * above


def saturation(occupancy: float, full: float) -> float:
    """Share of a rate that this occupancy (0..1) reaches, where the rate is full from occupancy `full` on."""
    x = min(1.0, occupancy / full)
    return x * (2.0 - x)


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A board at one clock under one load, or under none. The leakage is apart, since it follows the temperature."""

    clock_mhz: float
    launch_s: float  # one launch, the gap to the next included; inf without work
    steady_w: float  # all power but leakage
    leakage_w: float  # at the reference temperature
    memory_w: float  # the memory's part of the power
    memory_busy: float  # share of the time in which the memory moves data, 0..1


def memory_in_force_mhz(twin: Twin, clock_mhz: float, memory_clock_mhz: int) -> int:
    """The memory clock at a graphics clock, where another was set: some boards leave the lowest above a clock."""
    clocks = twin.clocks
    left = 0 < clocks.lowest_memory_up_to_mhz < clock_mhz
    if left and memory_clock_mhz == clocks.memory_mhz[0]:
        return clocks.memory_mhz[min(1, len(clocks.memory_mhz) - 1)]
    return memory_clock_mhz


def launch_time_s(twin: Twin, load: Load, clock_mhz: float, memory_clock_mhz: int) -> tuple[float, float]:
    """Time of one launch and its memory time alone, s. Raises NotSupported for a precision the board lacks."""
    rate = twin.rate
    per_clock = rate.flop_per_clock.get(load.precision)
    if per_clock is None:
        choices = ", ".join(rate.flop_per_clock)
        raise NotSupported(f"no {load.precision} units", twin.name, f"this board has {choices}")
    hertz = clock_mhz * 1e6
    memory_clock_mhz = memory_in_force_mhz(twin, clock_mhz, memory_clock_mhz)
    # the other SMs idle: they neither compute nor have bytes on their way
    issue = load.sm_share * load.issue_efficiency * saturation(load.occupancy, rate.compute_occupancy)
    resident = load.sm_share * load.occupancy
    compute_s = load.work_flop / (per_clock * hertz * issue)
    bandwidth = rate.bandwidth_gb_s * 1e9 * rate.bandwidth_share * memory_clock_mhz / twin.clocks.memory_mhz[-1]
    bandwidth *= min(1.0, clock_mhz / rate.full_bandwidth_clock_mhz)
    memory_s = load.traffic_byte / (bandwidth * saturation(resident, rate.memory_occupancy))
    onchip_s = load.onchip_byte / (rate.onchip_byte_per_clock * hertz * load.sm_share)
    longest = max(compute_s, memory_s, onchip_s, 1e-12)
    blended = sum((roof / longest) ** ROOF_BLEND for roof in (compute_s, memory_s, onchip_s))
    return longest * max(1.0, blended) ** (1.0 / ROOF_BLEND) + rate.launch_overhead_us * 1e-6, memory_s


def with_locked_memory(twin: Twin) -> Twin:
    """The board while its memory clock is locked: at the same reported clocks its kernels may run slower."""
    speed, rate = twin.clocks.memory_lock_speed, twin.rate
    slowed = replace(
        rate,
        flop_per_clock={precision: flop * speed for precision, flop in rate.flop_per_clock.items()},
        bandwidth_gb_s=rate.bandwidth_gb_s * speed,
        onchip_byte_per_clock=rate.onchip_byte_per_clock * speed,
    )
    return replace(twin, rate=slowed)


def under_load(twin: Twin, load: Load, clock_mhz: float, memory_clock_mhz: int) -> OperatingPoint:
    """The board running `load` back to back. Raises NotSupported for a precision the board lacks."""
    launch_s, memory_s = launch_time_s(twin, load, clock_mhz, memory_clock_mhz)
    energy, power = twin.energy, twin.power
    voltage = relative_voltage(twin, clock_mhz)
    switching = (voltage / relative_voltage(twin, energy.reference_clock_mhz)) ** 2
    core_j = load.work_flop * energy.eps_flop_pj[load.precision] + load.onchip_byte * energy.eps_onchip_pj_per_b
    memory_w = load.traffic_byte * energy.eps_mem_pj_per_b * 1e-12 / launch_s
    return OperatingPoint(
        clock_mhz=clock_mhz,
        launch_s=launch_s,
        steady_w=core_j * 1e-12 * switching / launch_s
        + memory_w
        + unleaked_w(twin, clock_mhz, memory_clock_mhz, load.sm_share * load.occupancy),
        leakage_w=power.static_w * power.leakage_share * voltage,
        memory_w=resting_memory_w(twin, clock_mhz, memory_clock_mhz) + memory_w,
        memory_busy=min(1.0, memory_s / launch_s),
    )


def held_back(twin: Twin, point: OperatingPoint, wanted_mhz: float) -> OperatingPoint:
    """The point where a limit holds the clock below the one wanted: cores draw less than at the same clock locked.

    Seen at equal clocks [Schoonhoven2024, section 6.5.3]. The saving grows with the distance, so that power rises
    without a jump up to the clock that is wanted.
    """
    share = twin.power.limited_saving * min(1.0, (1.0 - point.clock_mhz / wanted_mhz) / _WELL_BELOW)
    return replace(point, steady_w=point.steady_w - share * (point.steady_w - point.memory_w))


def waiting(twin: Twin, clock_mhz: float, memory_clock_mhz: int) -> OperatingPoint:
    """No work, but the clocks still up."""
    power = twin.power
    return OperatingPoint(
        clock_mhz,
        float("inf"),
        unleaked_w(twin, clock_mhz, memory_clock_mhz, 0.0),
        power.static_w * power.leakage_share * relative_voltage(twin, clock_mhz),
        resting_memory_w(twin, clock_mhz, memory_clock_mhz),
        0.0,
    )


def idle(twin: Twin, memory_clock_mhz: int | None = None) -> OperatingPoint:
    """Clocks down, the memory's too unless it is locked. The file's figure holds where the temperature settles then."""
    power = twin.power
    leakage_w = power.static_w * power.leakage_share
    settled_c = twin.thermal.ambient_c + twin.thermal.resistance_c_per_w * power.idle_w
    above_mhz = 0 if memory_clock_mhz is None else memory_clock_mhz - twin.clocks.idle_memory_mhz
    above_w = power.memory_clock_w_per_mhz * above_mhz
    steady_w = power.idle_w - leakage_w * leakage_growth(twin, settled_c) + above_w
    return OperatingPoint(twin.clocks.idle_mhz, float("inf"), steady_w, leakage_w, power.memory_idle_w + above_w, 0.0)


def leakage_growth(twin: Twin, temperature_c: float) -> float:
    """Leakage over leakage at the reference temperature."""
    power = twin.power
    growth: float = 2.0 ** ((min(temperature_c, _HOTTEST_C) - power.leakage_reference_c) / power.leakage_doubling_c)
    return growth


def power_w(twin: Twin, point: OperatingPoint, temperature_c: float) -> float:
    """Power of the board at that point and temperature."""
    return point.steady_w + point.leakage_w * leakage_growth(twin, temperature_c)


def settled(twin: Twin, point: OperatingPoint) -> tuple[float, float]:
    """(power W, temperature °C) once the temperature stands still."""
    thermal = twin.thermal
    temperature = thermal.ambient_c
    for _ in range(_SOLVER_STEPS):
        temperature = thermal.ambient_c + thermal.resistance_c_per_w * power_w(twin, point, temperature)
        temperature = min(temperature, _HOTTEST_C)
    return power_w(twin, point, temperature), temperature


def settled_under_limits(
    twin: Twin,
    load: Any,
    clock_mhz: float,
    memory_clock_mhz: int,
    limit_w: float,
    law: Callable[[Twin, Any, float, int], OperatingPoint] = under_load,
) -> tuple[OperatingPoint, float, bool]:
    """(point, power W, whether a power or thermal limit acts) of a load at a requested clock, thermally steady.

    At a limit the clock alternates between supported ones; the point is at their mean. `law` gives the point of what
    runs at a clock: of a load of another kind than a kernel's it is another.
    """
    setpoint_w = limit_w * twin.power.limit_share

    def fits(clock: float) -> tuple[OperatingPoint, float, bool]:
        point = held_back(twin, law(twin, load, clock, memory_clock_mhz), clock_mhz)
        drawn_w, temperature = settled(twin, point)
        return point, drawn_w, drawn_w <= setpoint_w and temperature <= twin.thermal.slowdown_c

    point, drawn_w, within = fits(clock_mhz)
    if within:
        return point, drawn_w, False
    low, high = float(twin.clocks.graphics_mhz[0]), clock_mhz
    point, drawn_w, within = fits(low)
    if not within:  # even the lowest clock draws more
        return point, drawn_w, True
    while high - low > 1e-3:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle)[2] else (low, middle)
    point, drawn_w, _ = fits(low)
    return point, drawn_w, True


def unleaked_w(twin: Twin, clock_mhz: float, memory_clock_mhz: int, occupancy: float) -> float:
    """pi_0 without its leakage: static power, the memory's clock, and the clock tree as resident threads keep it up."""
    power, voltage = twin.power, relative_voltage(twin, clock_mhz)
    running = 1.0 - power.gated_share * (1.0 - occupancy)
    tree_w = power.clock_tree_w_per_mhz * clock_mhz * voltage * voltage * running
    memory_w = power.memory_clock_w_per_mhz * memory_in_force_mhz(twin, clock_mhz, memory_clock_mhz)
    return power.static_w * (1.0 - power.leakage_share) + memory_w + tree_w


def resting_memory_w(twin: Twin, clock_mhz: float, memory_clock_mhz: int) -> float:
    """The memory's part of the power without traffic."""
    power = twin.power
    clock_w = power.memory_clock_w_per_mhz * memory_in_force_mhz(twin, clock_mhz, memory_clock_mhz)
    return power.memory_idle_w + clock_w


@dataclass(frozen=True, slots=True)
class Serving:
    """What a service does at one moment: a step for so many sequences, or the prompt of one."""

    sequences: int
    prefilling: bool = False
    name: str = "service"


def service_of(twin: Twin) -> Service:
    """The twin's model. Raises NotSupported if it has none."""
    if twin.service is None:
        raise NotSupported("no service was ever measured on this board", twin.name, "choose simulated:rtx5090")
    return twin.service


def step_s(twin: Twin, sequences: float, clock_mhz: float, memory_clock_mhz: int) -> float:
    """Time of a step, s: each of so many sequences has its next token. Raises NotSupported without a model."""
    model = service_of(twin)
    held_mhz = memory_in_force_mhz(twin, clock_mhz, memory_clock_mhz)
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
    voltage = relative_voltage(twin, clock_mhz)
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
        steady_w=(core_j * voltage**2 + memory_j) / time_s + unleaked_w(twin, clock_mhz, memory_clock_mhz, 1.0),
        leakage_w=twin.power.static_w * twin.power.leakage_share * voltage,
        memory_w=resting_memory_w(twin, clock_mhz, memory_clock_mhz) + memory_j / time_s,
        memory_busy=memory_s / time_s,
    )


def _of_cores(model: Service, sequences: float) -> float:
    """The cores' part of a step over that of a step for the reference number of sequences."""
    return model.core_fixed_share + (1.0 - model.core_fixed_share) * sequences / model.reference_sequences
