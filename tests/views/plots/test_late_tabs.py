"""Tabs whose pages are made when they are needed."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.views.understand.model_panel import LateTabs


def test_a_page_is_made_once_when_it_is_first_shown_or_asked_for(qtbot: QtBot) -> None:
    tabs, made, announced = LateTabs(), list[str](), list[QWidget]()
    qtbot.addWidget(tabs)
    tabs.made.connect(announced.append)

    def maker(name: str) -> QWidget:
        made.append(name)
        return QWidget()

    for name in ("A", "B", "C"):
        tabs.add(name, lambda name=name: maker(name))  # type: ignore[misc]
    tabs.show()
    assert made == ["A"]
    qtbot.keyClick(tabs.tabBar(), Qt.Key.Key_Right)
    assert (tabs.currentIndex(), made) == (1, ["A", "B"])
    assert tabs.currentWidget() is tabs.page(1)
    assert tabs.currentWidget().isVisible()
    last = tabs.page(2)
    assert tabs.currentIndex() == 1, "what is shown stays"
    assert made == ["A", "B", "C"]
    tabs.setCurrentWidget(last)
    tabs.setCurrentIndex(0)
    assert [tabs.tabText(index) for index in range(3)] == made == ["A", "B", "C"]
    assert announced == [tabs.page(index) for index in range(3)]
