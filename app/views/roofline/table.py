"""The fitted rooflines as a table: a row per figure, a column per sweep; what is not identifiable is no number."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from ...engine.models.roofline.energy_roofline import EnergyRoofline
from ...engine.models.roofline.fit import RooflineFit
from ...engine.tuning_methods.roofline_points import shares_of_peak, word_byte
from ...engine.tuning_methods.roofline_sweeps import Sweep
from ...numbers import UNKNOWN
from ..plots import theme
from ..plots.overlay_list import icon_of
from ..plots.quantities import format_number
from ..shell.label import plain_tip

NOT_TOLD = "not identifiable"
_NO_FIT = "no fit"
_ENERGIES = ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w")  # of the first three rows


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _with_error(at: int, name: str) -> Callable[[Sweep], str]:
    def text(sweep: Sweep) -> str:
        error = sweep.fit.relative.standard_errors[at] if sweep.fit is not None else math.nan
        spread = f" ± {error:.2g}" if math.isfinite(error) else ""
        return format_number(float(getattr(_model(sweep), name))) + spread

    return text


def _of_model(name: str, factor: float = 1.0) -> Callable[[Sweep], str]:
    return lambda sweep: format_number(float(getattr(_model(sweep), name)) * factor)


def _of_fit(text: Callable[[RooflineFit], str]) -> Callable[[Sweep], str]:
    """A figure that needs measured points."""
    return lambda sweep: UNKNOWN if sweep.fit is None else text(sweep.fit)


def _alone(name: str) -> Callable[[Sweep], str]:
    return _of_fit(lambda fit: format_number(fit.alone.get(name, math.nan)))


def _share(name: str) -> Callable[[Sweep], str]:
    def text(fit: RooflineFit) -> str:
        share = shares_of_peak(fit).get(name)
        return UNKNOWN if share is None else _percent(share)

    return _of_fit(text)


def _model(sweep: Sweep) -> EnergyRoofline:
    """Its lines; of a fit that is not identifiable too, whose speeds count all the same."""
    model = sweep.model if sweep.fit is None else sweep.fit.model
    assert model is not None
    return model


# head, what it is and how it was got, its text, whether it is known only where the energies are identifiable
_FIGURES: tuple[tuple[str, str, Callable[[Sweep], str], bool], ...] = (
    ("ε_flop (pJ/flop)", "Energy of a flop, with its standard error", _with_error(0, "eps_flop_pj"), True),
    ("ε_mem (pJ/B)", "Energy of a byte of traffic, with its standard error", _with_error(1, "eps_mem_pj_per_b"), True),
    (
        "π₀ (W)",
        "Constant power, drawn whatever the kernel does, with its standard error",
        _with_error(2, "pi_0_w"),
        True,
    ),
    (
        "ε_mop (pJ/word)",
        "Energy to move one word of this precision: ε_mem times its bytes",
        lambda sweep: format_number(_model(sweep).eps_mop_pj(word_byte(sweep.points.precision))),
        True,
    ),
    ("π_flop (W)", "Power of the flops alone at peak speed: ε_flop × peak", _of_model("pi_flop_w"), True),
    ("π_mem (W)", "Power of the traffic alone at full bandwidth: ε_mem × bandwidth", _of_model("pi_mem_w"), True),
    (
        "η_flop (%)",
        "Share of a flop's least energy that is its own: ε_flop / (ε_flop + π₀ / peak)",
        lambda sweep: f"{100 * _model(sweep).eta_flop:.2f}",
        True,
    ),
    (
        "Peak (TFLOP/s)",
        "Highest measured speed; of a published line the board's",
        _of_model("peak_flops", 1e-12),
        False,
    ),
    (
        "Bandwidth (GB/s)",
        "Highest measured traffic; of a published line the board's",
        _of_model("bandwidth", 1e-9),
        False,
    ),
    ("B_τ (flop/B)", "Time balance: peak over bandwidth", _of_model("time_balance"), False),
    ("B_ε (flop/B)", "Energy balance: ε_mem / ε_flop", _of_model("energy_balance"), True),
    (
        "Effective B_ε (flop/B)",
        "Intensity from which the work takes more than half of the energy, its constant power included",
        _of_model("effective_energy_balance"),
        True,
    ),
    ("Of peak, flop kernel", "Speed of the flop kernel over the board's theoretical peak", _share("flop"), False),
    (
        "Of peak, roofline",
        "Highest speed of the roofline kernel over the theoretical peak",
        _share("roofline_flop"),
        False,
    ),
    ("Of bandwidth, copy", "Traffic of the copy kernel over the board's theoretical bandwidth", _share("copy"), False),
    (
        "Of bandwidth, roofline",
        "Highest traffic of the roofline kernel over the theoretical bandwidth",
        _share("roofline_mem"),
        False,
    ),
    (
        "R² of power",
        "Of the fitted points' power, not of energy per flop",
        _of_fit(lambda fit: f"{fit.r2:.5f}"),
        False,
    ),
    (
        "… throttled too",
        "R² of power of a fit to all points of full occupancy, those below the peak clock or at a limit included",
        _of_fit(lambda fit: f"{fit.r2_with_throttled:.5f}"),
        False,
    ),
    ("Mean error of power", "Of the fitted points", _of_fit(lambda fit: _percent(fit.mean_relative_error)), False),
    ("Largest error of power", "Of the fitted points", _of_fit(lambda fit: _percent(fit.max_relative_error)), False),
    (
        "… with those left out",
        "Largest error of power over all points of full occupancy, those at a limit included",
        _of_fit(lambda fit: _percent(fit.max_relative_error_all)),
        False,
    ),
    (
        "Condition number",
        "Of the weighted design, its columns of unit length: above 100 the three energies cannot be told apart",
        _of_fit(lambda fit: format_number(fit.condition_number)),
        False,
    ),
    (
        "Points fitted",
        "At the peak clock, of full occupancy, held back by no limit",
        _of_fit(lambda fit: str(fit.points)),
        False,
    ),
    ("Points left out", "Below the peak clock or at a limit", _of_fit(lambda fit: str(fit.throttled)), False),
    (
        "ε_flop, flop kernel",
        "pJ/flop, of that kernel alone: its power above the baseline's, per flop; a check of the fit",
        _alone("eps_flop_pj"),
        False,
    ),
    (
        "ε_mem, copy kernel",
        "pJ/B, of that kernel alone: its power above the baseline's, per byte; a check of the fit",
        _alone("eps_mem_pj_per_b"),
        False,
    ),
    ("π₀, baseline", "W: the mean power of the baseline kernel; a check of the fit", _alone("pi_0_w"), False),
)


class RooflineTable(QTableWidget):
    """Columns carry the colours of the plot, so that their heads are its legend too."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(len(_FIGURES), 0, parent)
        self._shown: Sequence[tuple[int, Sweep]] = ()
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAccessibleName("Fitted energies and balances")
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        header = self.verticalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        header.setDefaultSectionSize(self.fontMetrics().height() + 5)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        for row, (text, tip, *_) in enumerate(_FIGURES):
            head = QTableWidgetItem(text)
            head.setToolTip(tip)
            self.setVerticalHeaderItem(row, head)
        theme.notifier().changed.connect(self._refresh)

    def show_sweeps(self, shown: Sequence[tuple[int, Sweep]]) -> None:
        """Fill the table."""
        self._shown = shown
        self._refresh()

    @Slot()
    def _refresh(self) -> None:
        self.setColumnCount(len(self._shown))
        for column, (place, sweep) in enumerate(self._shown):
            head = QTableWidgetItem(icon_of(place), in_two_lines(sweep))
            head.setToolTip(plain_tip(f"{sweep.label}, {sweep.origin}"))
            self.setHorizontalHeaderItem(column, head)
            for row, (_, tip, text, energies) in enumerate(_FIGURES):
                known = sweep.model is not None or (sweep.fit is not None and not energies)
                told = text(sweep) if known else _NO_FIT if sweep.fit is None else NOT_TOLD
                item = QTableWidgetItem(told)
                item.setTextAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
                item.setToolTip(_tip(tip, row, sweep.fit) if known else "\n".join(sweep.reasons))
                if not known:
                    item.setForeground(QColor(theme.colours().muted))
                self.setItem(row, column, item)


def _tip(tip: str, row: int, fit: RooflineFit | None) -> str:
    """What a figure is; beside an energy what least squares of energy per work or per byte would make of it."""
    if fit is None or row >= len(_ENERGIES):
        return tip
    others = (("per flop (S4 eq 6)", fit.per_flop), ("per byte (S4 eq 7)", fit.per_byte))
    lines = [
        f"Ordinary least squares of energy {way}: {format_number(float(getattr(estimate, _ENERGIES[row])))}"
        for way, estimate in others
        if estimate is not None
    ]
    return "\n".join((tip, *lines))


def in_two_lines(sweep: Sweep) -> str:
    """The board above its precision: heads are narrow."""
    return sweep.label.replace(" · ", "\n")


def reasons_as_html(sweep: Sweep) -> str:
    """What a person should know of the sweep in focus, in words."""
    if not sweep.reasons:
        return ""
    verdict = "" if sweep.model is not None else f" — {_NO_FIT if sweep.fit is None else NOT_TOLD}"
    return f"<b>{html.escape(sweep.label)}{verdict}</b>: " + html.escape("; ".join(sweep.reasons))
