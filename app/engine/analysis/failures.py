"""What failed, by kind, and where in the space it lies: the parameter values that concentrate failures."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..models.arrays import Floats, Indices, Mask
from ..results.measurement import State, Value
from ..runner.replay import ONLY_TIMED
from ..space.result_table import STATES, ResultTable

_SIGNIFICANT = 0.01  # after Bonferroni over every value of every parameter
_LONGEST = 200  # characters of a message


@dataclass(frozen=True, slots=True)
class Concentration:
    """A parameter value with more failures than the rest of what was measured."""

    IN_JSON: ClassVar = ("share",)

    parameter: str
    value: Value
    failed: int
    measured: int
    elsewhere: float  # share that failed with other values
    p_value: float  # that as many fall there by chance, times the number of values tested

    @property
    def share(self) -> float:
        """Share of the measurements with this value that failed."""
        return self.failed / self.measured


@dataclass(frozen=True, slots=True)
class FailuresOf:
    """One kind of failure."""

    kind: str
    count: int
    share: float  # of everything measured
    messages: tuple[tuple[str, int], ...]  # the commonest first lines, and how often
    concentrated: tuple[Concentration, ...]  # the highest share first


def failures_of(table: ResultTable, most: int = 5) -> list[FailuresOf]:
    """Count every kind of failure that occurred, and find where in the space it lies.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    most : int, optional
        The most messages, and the most parameter values, of each kind.

    Returns
    -------
    list of FailuresOf
        The commonest kind first; empty if nothing failed.
    """
    states = table.states()[: len(table)]
    rows = table.rows()[: len(states)]
    results = []
    for code, state in enumerate(STATES):
        failed = states == code
        if state is State.OK or not failed.any():
            continue
        messages = Counter(_first_line(table.measurement(int(index)).error) for index in np.flatnonzero(failed))
        results.append(
            FailuresOf(
                kind=state.value,
                count=int(failed.sum()),
                share=float(failed.mean()),
                messages=tuple((text, count) for text, count in messages.most_common(most) if text),
                concentrated=tuple(concentrations(table, rows, failed)[:most]),
            )
        )
    return sorted(results, key=lambda one: -one.count)


def most_frequent(table: ResultTable) -> tuple[str, str, int] | None:
    """Find the state and message that most failed measurements share.

    Parameters
    ----------
    table : ResultTable
        The measurements.

    Returns
    -------
    tuple of str, str and int, or None
        The state, the first line of the message, and how many measurements have both; None if none has a message.
    """
    states = table.states()[: len(table)]
    failed = np.flatnonzero(states != STATES.index(State.OK))
    causes = Counter(
        (STATES[states[index]].value, _first_line(table.measurement(int(index)).error)) for index in failed
    )
    return next(((state, message, count) for (state, message), count in causes.most_common() if message), None)


def missing_figure(table: ResultTable, name: str) -> str:
    """Report that most configurations that were measured in full have no value of a figure.

    Parameters
    ----------
    table : ResultTable
        The measurements.
    name : str
        Name of the figure.

    Returns
    -------
    str
        How many lack it, with the commonest reason if one is recorded; empty if at least half have a value.
    """
    length = len(table)  # the engine may append meanwhile
    full = (table.states()[:length] == STATES.index(State.OK)) & ~table.timed()[:length]
    missing = np.flatnonzero(full & np.isnan(table.values(name)[:length]))
    reasons = Counter(table.measurement(int(index)).message.rpartition("; ")[2] for index in missing)
    has = int(full.sum()) - len(missing)
    lacks = len(missing) - (reasons.pop(ONLY_TIMED, 0) if has else 0)  # a recording that has it of what was measured
    if lacks <= has:
        return ""
    words = f"{name} is missing in {lacks} of {lacks + has} configurations that worked"
    return ": most often: ".join(text for text in (words, reasons.most_common(1)[0][0]) if text)


def concentrations(table: ResultTable, rows: Indices, failed: Mask) -> list[Concentration]:
    """Find the parameter values with more failures than chance puts there, by Fisher's exact test, one-sided.

    The test gives the chance of at least as many failures among the measurements with that value, drawn without
    replacement. Failures that are everywhere are nowhere concentrated.

    Parameters
    ----------
    table : ResultTable
        The measurements, n of them.
    rows : array of int, shape (n,)
        Row of the space of each measurement.
    failed : array of bool, shape (n,)
        Which measurements failed.

    Returns
    -------
    list of Concentration
        Sorted by the share that failed, highest first, then by the number.
    """
    space, total, whole = table.space, len(rows), int(failed.sum())
    looked_at = sum(size for size in space.axis_sizes if size > 1)
    results = []
    for axis, parameter in enumerate(space.parameters):
        column = space.codes[rows, axis].astype(np.int64)
        measured = np.bincount(column, minlength=len(parameter.values))
        bad = np.bincount(column[failed], minlength=len(parameter.values))
        for code in np.flatnonzero((bad > 0) & (measured < total)).tolist():
            chance = looked_at * _chance_of_at_least(int(bad[code]), total, whole, int(measured[code]))
            if chance >= _SIGNIFICANT:
                continue
            results.append(
                Concentration(
                    parameter=parameter.name,
                    value=parameter.values[code],
                    failed=int(bad[code]),
                    measured=int(measured[code]),
                    elsewhere=float((whole - bad[code]) / (total - measured[code])),
                    p_value=chance,
                )
            )
    return sorted(results, key=lambda one: (-one.share, -one.failed, one.parameter))


def _chance_of_at_least(hits: int, total: int, marked: int, drawn: int) -> float:
    """The hypergeometric tail: `hits` of the marked, or more, among those drawn without replacement."""
    from scipy.special import gammaln, logsumexp

    def ways(n: int, k: Indices | int) -> Floats:
        return np.asarray(gammaln(n + 1) - gammaln(np.asarray(k) + 1) - gammaln(n - np.asarray(k) + 1))

    low = max(hits, drawn - (total - marked))
    counts = np.arange(low, min(marked, drawn) + 1)
    if not len(counts):
        return 0.0
    return float(np.exp(logsumexp(ways(marked, counts) + ways(total - marked, drawn - counts)) - ways(total, drawn)))


def _first_line(text: str) -> str:
    lines = [part.strip() for part in text.splitlines() if part.strip()]
    line = next(iter(lines), "")
    if "warning" in line:  # a compiler's warnings come before what it refuses
        line = next((part for part in lines if "error" in part), line)
    return line[:_LONGEST]
