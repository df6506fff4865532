"""The fitted rooflines as a table: a row per figure, a column per sweep; what is not identifiable is no number."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem, QWidget

from app.engine.models.roofline_fit import RooflineFit
from app.engine.roofline_sweeps import Sweep
from app.views import theme
from app.views.label import plain_tip
from app.views.overlay_colours import icon_of
from app.views.quantities import format_number

NOT_TOLD = "not identifiable"
_NO_FIT = "no fit"
_ENERGIES = ("eps_flop_pj", "eps_mem_pj_per_b", "pi_0_w")  # of the first three rows


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"


def _with_error(at: int, name: str) -> Callable[[RooflineFit], str]:
    def text(fit: RooflineFit) -> str:
        error = fit.relative.standard_errors[at]
        spread = f" ± {error:.2g}" if math.isfinite(error) else ""
        return format_number(float(getattr(fit.relative, name))) + spread

    return text


def _of_model(name: str, factor: float = 1.0) -> Callable[[RooflineFit], str]:
    return lambda fit: format_number(float(getattr(fit.model, name)) * factor)


def _alone(name: str) -> Callable[[RooflineFit], str]:
    return lambda fit: format_number(fit.alone.get(name, math.nan))


# head, what it is and how it was got, its text, whether it is known only where the energies are identifiable
_FIGURES: tuple[tuple[str, str, Callable[[RooflineFit], str], bool], ...] = (
    ("ε_flop (pJ/flop)", "Energy of a flop, with its standard error", _with_error(0, "eps_flop_pj"), True),
    ("ε_mem (pJ/B)", "Energy of a byte of traffic, with its standard error", _with_error(1, "eps_mem_pj_per_b"), True),
    (
        "π₀ (W)",
        "Constant power, drawn whatever the kernel does, with its standard error",
        _with_error(2, "pi_0_w"),
        True,
    ),
    (
        "η_flop (%)",
        "Share of a flop's least energy that is its own: ε_flop / (ε_flop + π₀ / peak)",
        lambda fit: f"{100 * fit.model.eta_flop:.2f}",
        True,
    ),
    ("Peak (TFLOP/s)", "Highest measured speed", _of_model("peak_flops", 1e-12), False),
    ("Bandwidth (GB/s)", "Highest measured traffic", _of_model("bandwidth", 1e-9), False),
    ("B_τ (flop/B)", "Time balance: peak over bandwidth", _of_model("time_balance"), False),
    ("B_ε (flop/B)", "Energy balance: ε_mem / ε_flop", _of_model("energy_balance"), True),
    (
        "Effective B_ε (flop/B)",
        "Intensity from which the work takes more than half of the energy, its constant power included",
        _of_model("effective_energy_balance"),
        True,
    ),
    ("R² of power", "Of the fitted points' power, not of energy per flop", lambda fit: f"{fit.r2:.5f}", False),
    ("Mean error of power", "Of the fitted points", lambda fit: _percent(fit.mean_relative_error), False),
    ("Largest error of power", "Of the fitted points", lambda fit: _percent(fit.max_relative_error), False),
    (
        "… with those left out",
        "Largest error of power over all points of full occupancy, those at a limit included",
        lambda fit: _percent(fit.max_relative_error_all),
        False,
    ),
    (
        "Condition number",
        "Of the weighted design, its columns of unit length: above 100 the three energies cannot be told apart",
        lambda fit: format_number(fit.condition_number),
        False,
    ),
    (
        "Points fitted",
        "At the peak clock, of full occupancy, held back by no limit",
        lambda fit: str(fit.points),
        False,
    ),
    ("Points left out", "Below the peak clock or at a limit", lambda fit: str(fit.throttled), False),
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
                known = sweep.fit is not None and (sweep.fit.identifiable or not energies)
                told = (
                    text(sweep.fit) if known and sweep.fit is not None else _NO_FIT if sweep.fit is None else NOT_TOLD
                )
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
