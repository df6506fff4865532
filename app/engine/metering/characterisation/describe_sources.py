"""A characterisation described for the terminal, the report and the window."""

from __future__ import annotations

import time
from typing import Final

from ....base.formatting import number
from ...results.description import Cell, Description, Figure, Listing
from .sensor_figures import PARTS, WORDS, Characterisation, in_ms

_GAIN: Final = "the gain of a board's sensor may be off by up to 5 %; only an external meter can show it"
_HEADER: Final = ("source", "new every ms", "averages ms", "lags ms", "settles ms", "scatter %", "a read costs µs")


def describe_characterisation(known: Characterisation, board: str) -> Description:
    """Describe refresh, averaging and lag of each power source of a board, and the one that it is measured through."""
    rows: list[list[Cell]] = []
    for name, source in known.sources.items():
        if source is not None:
            averages = "cumulative" if source.window_ms is None else in_ms(source.window_ms, source.window_margin_ms)
            lags = in_ms(source.lag_ms, source.lag_margin_ms)
            figures = (in_ms(source.refresh_ms), averages, lags, in_ms(source.settle_ms))
            rows.append([WORDS[name], *figures, number(source.noise_percent, 2), number(source.read_us, 3)])
    figures_of_board = [
        Figure("Measures through", known.words, important=True),
        Figure("Why", known.why or None),
        Figure("In windows of", known.measure_ms / 1e3, "s", digits=2),
    ]
    if known.counter_ratio is not None:
        ratio = f"rises by {100 * known.counter_ratio:.2f} % of the integral of {WORDS[known.chosen]}"
        figures_of_board.append(Figure("Energy counter", ratio))
    buffer = known.sources.get("buffer")
    remarks = [f"{WORDS[name]}: not available, {why}" for name, why in known.missing.items()]
    if buffer is not None and buffer.published_ms is not None:
        remarks.append(f"the buffer's samples appear together, about every {buffer.published_ms:.0f} ms")
    if known.aftereffect is not None:
        remarks.append(known.aftereffect.words)
    if known.prior:
        remarks.append("this is another GPU of the same model: measurements count with how far GPUs of a kind differ")
    elif not known.complete:
        left = ", ".join(part for part in PARTS if part not in known.parts)
        remarks.append(f"not looked at yet: {left}; wattridge characterise goes on from here")
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(known.timestamp_s))
    simulated = ", simulated" if known.source == "simulated" else ""
    return Description(
        title=f"Power sources of {board}",
        origin=f"driver {known.driver}, {when}, {known.seconds:.0f} s under {known.load}{simulated}",
        figures=figures_of_board,
        listings=[Listing("", _HEADER, rows)],
        remarks=[*remarks, _GAIN, *known.notes],
    )
