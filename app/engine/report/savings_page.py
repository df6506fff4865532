"""What `wattridge savings` found, as a page by itself."""

from __future__ import annotations

from pathlib import Path

from ..session.savings import Savings
from .html import figure, section, titled
from .page import whole_page, write_page
from .svg import drawn


def write_savings(found: Savings, path: Path) -> None:
    """Write the table and the points in the front. Raises WattridgeError where it cannot be written."""
    chart = found.chart()
    parts = section(found.target, titled([found.describe()]), figure(drawn(chart), chart.caption))
    write_page(whole_page(f"What {found.target} can save", "", found.board, parts), path)
