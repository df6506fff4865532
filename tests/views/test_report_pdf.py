"""The report on paper: pages, figures, and what it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import QByteArray
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from app.cli import main
from app.commands.sources import open_session
from app.engine.report.content import ReportContent, gather
from app.engine.report.page import report_html
from app.engine.store import Store
from app.errors import WattridgeError
from app.paths import resources
from app.views.analysis.report_pdf import _heading_alone, _paper, _taken_apart, _with_headings_kept, write_pdf


@pytest.fixture
def content(capsys: pytest.CaptureFixture[str]) -> ReportContent:
    """A short session of a simulated board."""
    words = ["tune", str(resources() / "examples" / "gemm.toml"), "--gpu", "simulated:a100", "--max-evaluations", "40"]
    assert main([*words, "--json"]) == 0
    opened = open_session(str(json.loads(capsys.readouterr().out)["session"]))
    with Store() as store:
        return gather(opened.plan, opened.table, opened.objective, store, record=opened.record)


def test_figures_are_drawn_without_a_browser(content: ReportContent, qapp: object) -> None:
    _, figures = _taken_apart(report_html(content))
    assert len(figures) >= 7
    for svg in figures:
        assert "var(" not in svg
        renderer = QSvgRenderer(QByteArray(svg.encode()))
        assert renderer.isValid()
        image = QImage(380, 250, QImage.Format.Format_RGB32)
        image.fill(QColor("white"))
        painter = QPainter(image)
        renderer.render(painter)
        painter.end()
        pixels = np.frombuffer(image.constBits(), dtype=np.uint8).reshape(250, 380, 4)[:, :, :3]
        assert (pixels.max(axis=2) - pixels.min(axis=2) > 60).sum() > 30, "something coloured is drawn"


def test_the_pdf_is_written_whole(content: ReportContent, tmp_path: Path, qapp: object) -> None:
    file = tmp_path / "report.pdf"
    assert write_pdf(content, file) == file
    told = file.read_bytes()
    assert told.startswith(b"%PDF-")
    assert b"%%EOF" in told[-32:]
    assert 4 <= told.count(b"/Type /Page\n") <= 12
    write_pdf(content, file)  # an older report is replaced
    other = tmp_path / "other.pdf"
    other.write_bytes(b"%PDF-1.4 somebody's")
    with pytest.raises(WattridgeError, match="another origin"):
        write_pdf(content, other)
    with pytest.raises(WattridgeError, match="folder"):
        write_pdf(content, tmp_path / "nowhere" / "report.pdf")


def test_every_paragraph_has_its_place(content: ReportContent, tmp_path: Path, qapp: object) -> None:
    html, figures = _taken_apart(report_html(content))
    writer = _paper(tmp_path / "x.pdf")
    document, handler = _with_headings_kept(html, figures, writer)
    layout, block, texts = document.documentLayout(), document.begin(), []
    while block.isValid():
        if block.text().strip():
            assert layout.blockBoundingRect(block).height() > 0, block.text()
            texts.append(block.text())
        block = block.next()
    assert texts.count("\N{OBJECT REPLACEMENT CHARACTER}") == len(figures)
    assert {"The question", "Speed against energy", "Over the session", "How to reproduce it"} <= set(texts)
    assert _heading_alone(document) == ""
    del document, handler, writer


def test_the_command_needs_no_display(content: ReportContent, tmp_path: Path, own_data_folder: Path) -> None:
    file = tmp_path / "report.pdf"
    environment = {"PATH": "/usr/bin:/bin", "WATTRIDGE_DATA": str(own_data_folder), "HOME": str(tmp_path)}
    words = [sys.executable, "-m", "app", "report", "--out", str(file), "--json"]
    done = subprocess.run(
        words, env=environment, capture_output=True, text=True, timeout=60, cwd=Path(__file__).resolve().parents[2]
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["files"] == [str(file)]
    assert file.read_bytes().startswith(b"%PDF-")
