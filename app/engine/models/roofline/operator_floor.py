"""The floor of an operator on a board: the time and energy below which no kernel is expected to go.

Its work runs at the board's peak speed and its least bytes at the full bandwidth, each at its energy in the board's
energy roofline [Holtmann2024, eq. 5].
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from ....base.errors import InputError
from ....base.records import Values, as_json, figure, from_json
from ...specification.operator_kernels import metrics_of
from ...specification.operator_shapes import Operator
from ...specification.plan import SessionFacts
from ...store.database import Store
from .energy_roofline import FIXED, EnergyRoofline, board_named
from .points import KERNEL, Sweep, precision_words, published_sweeps, recorded_sweeps, sweeps_of_store

_KEY: Final = "roofline_floor"  # of a session's origin


@dataclass(frozen=True, slots=True)
class OperatorFloor:
    """Time and energy of one launch; or why they are not known."""

    values: Values = field(default_factory=dict)  # time_s, energy_j, power_w and the operator's metrics
    bound_by: str = field(default="", metadata=figure(nullable=True))  # what the time is of: 'work' or 'traffic'
    roofline: str = field(default="", metadata=figure(nullable=True))  # where the energies are from, in words
    why_not: str = field(default="", metadata=figure(nullable=True))

    def to_origin(self) -> dict[str, str]:
        """As a session keeps it."""
        return {_KEY: json.dumps(as_json(self))}

    @classmethod
    def of_origin(cls, origin: Mapping[str, str]) -> OperatorFloor | None:
        """Read the floor that a session keeps.

        Parameters
        ----------
        origin : mapping
            The session's origin, to which `to_origin` contributed.

        Returns
        -------
        OperatorFloor or None
            None if the session keeps none.

        Raises
        ------
        InputError
            If what it keeps is damaged.
        """
        if _KEY not in origin:
            return None
        try:
            return from_json(cls, json.loads(origin[_KEY]))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            what = "what the session keeps of the roofline's floor is damaged"
            raise InputError(what, _KEY, "open the session again once the board's roofline is measured") from None


def floor_on(operator: Operator, facts: SessionFacts, store: Store) -> OperatorFloor:
    """The floor of an operator on the board of a session, by the best roofline that is known of the board.

    That is the newest that was measured here, else one that comes with the program, else one that was published.

    Parameters
    ----------
    operator : Operator
        The operator; its arithmetic decides the precision of the roofline.
    facts : SessionFacts
        The board's name and the source of its measurements.
    store : Store
        The stored sessions, among them sweeps of the board.

    Returns
    -------
    OperatorFloor
        Without values, and with `why_not`, if no roofline of the board in that precision is known.
    """
    precision = operator.arithmetic
    named = ((sweep.model, sweep) for sweep in known_sweeps(facts, precision, store))
    model, sweep = next(((model, sweep) for model, sweep in named if model is not None), (None, None))
    if model is None or sweep is None:
        what = f"no energy roofline of {facts.gpu} in {precision_words(precision)} is known"
        return OperatorFloor(why_not=f"{what}: wattridge roofline --gpu ... --precision {precision}")
    limit_w = sweep.limit_w if model.law != FIXED else None  # without a law a limit makes energies too high
    return floor_of(operator, model, facts.gpu, f"{sweep.label}, {sweep.origin}", limit_w)


def floor_of(
    operator: Operator, model: EnergyRoofline, gpu: str, roofline: str = "", limit_w: float | None = None
) -> OperatorFloor:
    """The floor of an operator by a roofline's energies.

    The roofline's speeds are those that microbenchmarks reached, which a kernel may exceed: where the data sheet's are
    known and higher, they count.

    Parameters
    ----------
    operator : Operator
        The operator, of known work and least traffic.
    model : EnergyRoofline
        The board's roofline in the precision of the operator's arithmetic.
    gpu : str
        Name of the board, for its data sheet.
    roofline : str, optional
        Where the energies are from, in words.
    limit_w : float or None, optional
        The power limit, W, within which the least is taken; None for none.

    Returns
    -------
    OperatorFloor
        Time in seconds, energy in joules and power in W of one launch, and the operator's metrics at these.
    """
    board = board_named(gpu)
    if board is not None:
        peak_flops = max(model.peak_flops, 1e9 * board.gflops.get(operator.arithmetic, 0.0))
        model = replace(model, peak_flops=peak_flops, bandwidth=max(model.bandwidth, 1e9 * board.bandwidth_gb_s))
    work, traffic = float(operator.work_flop), float(operator.least_byte)
    time_s, energy_j, power_w = model.predict(work, traffic, limit_w)
    bound_by = "work" if work / model.peak_flops >= traffic / model.bandwidth else "traffic"
    values = {"time_s": time_s, "energy_j": energy_j, "power_w": power_w, **metrics_of(operator, time_s, energy_j)}
    return OperatorFloor(values, bound_by, roofline)


def known_sweeps(facts: SessionFacts, precision: str, store: Store | None) -> Iterator[Sweep]:
    """Find the rooflines of a session's board. Those of a simulated board count for no real one.

    Parameters
    ----------
    facts : SessionFacts
        The board's name and the source of its measurements.
    precision : str
        The precision of the rooflines.
    store : Store or None
        The stored sessions; None for no more than what comes with the program.

    Yields
    ------
    Sweep
        The best source first: measured here, coming with the program, published.
    """
    stored = [
        record
        for record in (store.sessions() if store is not None else ())
        if (record.title, record.gpu, record.source) == (KERNEL + precision, facts.gpu, facts.source)
    ]
    for record in stored:
        if record.evaluated and store is not None:
            try:
                yield from sweeps_of_store(store, record.id)
            except InputError:  # nothing in it succeeded, or it is damaged
                continue
    board = board_named(facts.gpu)
    for sweep in (*recorded_sweeps(precision), *published_sweeps()):
        same = board is not None and board_named(sweep.points.gpu) == board
        if sweep.points.precision == precision and (same or sweep.points.gpu == facts.gpu):
            yield sweep
