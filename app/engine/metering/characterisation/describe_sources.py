"""A characterisation described for the terminal, the report and the window."""

from __future__ import annotations

import time
from typing import Final

from ....base.formatting import number
from ...results.description import Cell, Description, Figure, Listing
from .sensor_figures import PARTS, WORDS, Characterisation, in_ms

_GAIN: Final = "the gain of a board's sensor may be off by up to 5 %; only an external meter can show it"
_HEADER: Final = ("source", "new every ms", "averages ms", "lags ms", "settles ms", "scatter %", "a read costs µs")


def describe_characterisation(found: Characterisation, board: str) -> Description:
    """How fast and how sharp each power source of a board is, and through which one it is measured."""
    rows: list[list[Cell]] = []
    for name, each in found.sources.items():
        if each is not None:
            averages = "cumulative" if each.window_ms is None else in_ms(each.window_ms, each.window_margin_ms)
            lags = in_ms(each.lag_ms, each.lag_margin_ms)
            figures = (in_ms(each.refresh_ms), averages, lags, in_ms(each.settle_ms))
            rows.append([WORDS[name], *figures, number(each.noise_percent, 2), number(each.read_us, 3)])
    figures_of_board = [
        Figure("Measures through", found.words, important=True),
        Figure("Why", found.why or None),
        Figure("In windows of", found.measure_ms / 1e3, "s", digits=2),
    ]
    if found.counter_ratio is not None:
        ratio = f"rises by {100 * found.counter_ratio:.2f} % of the integral of {WORDS[found.chosen]}"
        figures_of_board.append(Figure("Energy counter", ratio))
    buffer = found.sources.get("buffer")
    remarks = [f"{WORDS[name]}: not available, {why}" for name, why in found.missing.items()]
    if buffer is not None and buffer.published_ms is not None:
        remarks.append(f"the buffer's samples appear together, about every {buffer.published_ms:.0f} ms")
    if found.aftereffect is not None:
        remarks.append(found.aftereffect.words)
    if found.prior:
        remarks.append("this is another GPU of the same model: measurements count with how far GPUs of a kind differ")
    elif not found.complete:
        left = ", ".join(part for part in PARTS if part not in found.parts)
        remarks.append(f"not looked at yet: {left}; wattridge characterise goes on from here")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.timestamp_s))
    simulated = ", simulated" if found.source == "simulated" else ""
    return Description(
        title=f"Power sources of {board}",
        origin=f"driver {found.driver}, {when}, {found.seconds:.0f} s under {found.load}{simulated}",
        figures=figures_of_board,
        listings=[Listing("", _HEADER, rows)],
        remarks=[*remarks, _GAIN, *found.notes],
    )
