"""Meters in a session: those beside the board, and the gain of its sensor that the session's windows show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...base.errors import WattridgeError
from ...base.records import as_json
from ...sensors.gpu import GpuInfo
from ..metering.external_meters import BOARD, MEDIAN, MeterChoice
from ..metering.gain import Gain, fit_gain, keep_gain, known_gain, read_gain
from ..results.description import Figure
from ..results.measurement import Measurement, State, of_sources, source_figures
from ..space.result_table import ResultTable

_METERS: Final = "meters"  # keys of a session's origin
_FROM: Final = "energy_from"
_CORRECTED: Final = "gain_corrected"
_GAIN: Final = "gain"
_NO_GAIN: Final = "no_gain"


def choice_to_origin(choice: MeterChoice, info: GpuInfo) -> dict[str, str]:
    """The meters of a session on a board as its origin keeps them; empty if there are none."""
    gain = known_gain(info) if choice.corrected else None
    return {
        **({_METERS: json.dumps(choice.selectors)} if choice.selectors else {}),
        **({_FROM: choice.energy_from} if choice.energy_from != BOARD else {}),
        **({_CORRECTED: json.dumps(as_json(gain))} if gain is not None else {}),
    }


def choice_of_origin(origin: Mapping[str, str]) -> MeterChoice:
    """The reverse of `choice_to_origin`."""
    selectors = json.loads(origin.get(_METERS, "[]"))
    return MeterChoice(tuple(map(str, selectors)), origin.get(_FROM, BOARD), _CORRECTED in origin)


def fitted_gain(measurements: Sequence[Measurement], meter: str) -> Gain:
    """The gain of the board's sensor by the windows of a session. Raises WattridgeError if they do not show it."""
    of_board, of_meter = source_figures(BOARD)[0], source_figures(meter)[0]
    both = [
        measurement.values
        for measurement in measurements
        if measurement.state is State.OK and {of_board, of_meter} <= measurement.values.keys()
    ]
    return fit_gain(meter, [values[of_board] for values in both], [values[of_meter] for values in both])


def gains_by_meter(table: ResultTable) -> dict[str, Gain | str]:
    """The gain of the board's sensor against each meter beside it, or why it is not known; empty without meters."""
    of_board = source_figures(BOARD)[0]
    found: dict[str, Gain | str] = {}
    for figure in sorted(of_sources(table.value_names) - {of_board}):
        meter = figure.removeprefix("power_").removesuffix("_w")
        if figure != source_figures(meter)[0]:
            continue  # an energy
        try:
            found[meter] = fit_gain(meter, table.values(of_board), table.values(figure))
        except WattridgeError as error:
            found[meter] = error.what
    return found


def gain_of_session(
    origin: Mapping[str, str], name: str, measurements: Sequence[Measurement], meters: Sequence[str]
) -> dict[str, str]:
    """The gain of the board's sensor against the first of these meters, for a session's origin; kept for the board.

    Empty without a meter.
    """
    if not meters:
        return {}
    try:
        gain = fitted_gain(measurements, meters[0])
    except WattridgeError as error:
        return {_NO_GAIN: str(error)}
    if "gpu" in origin:
        keep_gain(origin["gpu"], name, gain)
    return {_GAIN: json.dumps(as_json(gain))}


def gain_of_origin(origin: Mapping[str, str], key: str = _GAIN) -> Gain | None:
    """The gain that a stored session showed; None if it showed none."""
    try:
        return read_gain(json.loads(origin[key]))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def describe_gain(origin: Mapping[str, str]) -> Iterator[Figure]:
    """The gain of the board's sensor; nothing of a session without a meter."""
    label = "Gain of the sensor"
    gain = gain_of_origin(origin)
    if gain is not None:
        low_w, high_w = gain.range_w
        note = f"95 %, against {gain.meter}, {gain.windows} windows of {low_w:.0f} to {high_w:.0f} W; reported only"
        yield Figure(label, gain.words, note=note)
    elif _NO_GAIN in origin:
        yield Figure(label, None, unknown=origin[_NO_GAIN])
    taken_out = gain_of_origin(origin, _CORRECTED)
    if taken_out is not None:
        yield Figure("Corrected by", taken_out.words, note=f"the sensor's gain against {taken_out.meter}, taken out")
    if _FROM in origin:
        biased = "of the power readings: biased where these are skewed, see energy_board_j, by their mean"
        note = biased if origin[_FROM] == MEDIAN else "the other sources are kept by their names"
        yield Figure("Energy comes from", origin[_FROM], note=note)
