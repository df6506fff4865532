"""`HistoryWindow`: joules over the commits that `wattridge check --commits` compared."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QWidget

from ...engine.session.check_history import Benchmark, describe_history, history_chart, history_of
from ..plots.chart_plot import ChartPlot
from ..plots.descriptions import ListingTable
from ..shared.label import PlainLabel
from ..shared.widgets import vbox


class HistoryWindow(QDialog):
    """Chart and table of one benchmark; stays beside the main window."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.resize(820, 640)
        self.named = PlainLabel(wrap=True)
        self.chart, self.table = ChartPlot(), ListingTable("Commits")
        vbox(self.named, (self.chart, 3), (self.table, 2), of=self)

    def show_history(self, benchmark: Benchmark) -> None:
        """Show what was found so far."""
        history = history_of(benchmark)
        self.setWindowTitle(f"Energy test – {history.what}")
        self.named.setText(f"{history.what} on {history.gpu}, in {benchmark.repository}")
        self.chart.show_chart(history_chart(history))
        self.table.show_listing(describe_history(history).listings[0])
        self.show()
        self.raise_()
