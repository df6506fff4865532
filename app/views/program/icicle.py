"""`Icicle`: ranges within ranges, and below them the families that were launched in them; the width is joules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from PySide6.QtCore import QEvent, QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QHelpEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QToolTip, QWidget

from ...base.formatting import number, percent
from ..shared import theme
from ..shared.label import plain_tip
from .family_colours import FamilyColours

Stack = tuple[str, ...]


@dataclass(slots=True)
class Node:
    """What took joules under one stack of names. Its place is in J from the left end."""

    stack: Stack
    parent: Node | None = None
    joules: float = 0.0
    left: float = 0.0
    inner: list[Node] = field(default_factory=list)  # those with most joules first


def tree_of(stacks: Iterable[tuple[Stack, float]]) -> Node:
    """All stacks below one node, which is 'all'."""
    root = Node(())
    known: dict[Stack, Node] = {(): root}
    for stack, joules in stacks:
        root.joules += joules
        for depth in range(1, len(stack) + 1):
            name = stack[:depth]
            if name not in known:
                known[name] = Node(name, known[name[:-1]])
                known[name[:-1]].inner.append(known[name])
            known[name].joules += joules
    for node in known.values():  # a parent comes before what is in it
        left = node.left
        node.inner.sort(key=lambda each: -each.joules)
        for each in node.inner:
            each.left, left = left, left + each.joules
    return root


class Icicle(QWidget):
    """A click chooses, a double click and Enter zoom, Backspace zooms out; the arrows move to what is beside."""

    chosen = Signal(object)  # the stack of a node

    def __init__(self, root: Node, places: dict[str, int], grouped: dict[str, int], colours: FamilyColours) -> None:
        """`places` are those of the families, by name; `grouped` are the groups of those whose joules are not known."""
        super().__init__()
        self._root = self._top = self.node = root
        self._places, self._grouped, self._colours = places, grouped, colours
        self._lit = ""
        self._boxes: list[tuple[QRectF, Node]] = []
        self.setMinimumSize(320, 110)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Joules of ranges and families")
        self.setAccessibleDescription(
            "Arrows: to what is beside, above or below; Enter: zoom to it; Backspace: zoom out"
        )
        theme.notifier().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(800, 180)

    def light(self, family: str) -> None:
        """Pale all families but this one; '' for none."""
        self._lit = family
        self.update()

    def go(self, node: Node) -> None:
        """Choose a node, and zoom out until it is in sight."""
        self.node = node
        while self._top.stack != node.stack[: len(self._top.stack)] and self._top.parent is not None:
            self._top = self._top.parent
        self.chosen.emit(node.stack)
        self.update()

    def zoom(self, node: Node) -> None:
        """Give a node the whole width."""
        self._top = node
        self.go(node)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, font = theme.colours(), theme.number_font(-0.5)
        painter, metrics = QPainter(self), QFontMetrics(font)
        painter.setFont(font)
        painter.fillRect(self.rect(), QColor(colours.base))
        self._boxes = []
        rows = self._depth(self._top) + 1
        height = min(3.0 * metrics.height(), (self.height() - 4) / max(1, rows))
        level = [self._top]
        for row in range(rows):
            for node in level:
                self._paint(painter, metrics, node, row * height + 2, height)
            level = [each for node in level for each in node.inner if self._width(each) >= 1]
        if self.hasFocus():
            painter.setPen(QPen(QColor(colours.accent), 2))
            painter.drawRect(self.rect().adjusted(1, 1, -1, -1))

    def _paint(self, painter: QPainter, metrics: QFontMetrics, node: Node, top: float, height: float) -> None:
        left = 2 + (node.left - self._top.left) / max(1e-12, self._top.joules) * (self.width() - 4)
        box = QRectF(left, top, self._width(node), height)
        name = node.stack[-1] if node.stack else "all"
        key = self._places.get(name, -1) if not node.inner else -1
        lit = self._places.get(self._lit) if key >= 0 else None
        self._boxes.append((box, node))
        inside = box.adjusted(0, 0, -1 if box.width() > 3 else 0, -1)
        painter.fillRect(inside, self._colours.of(key, lit, ranges=key < 0))
        if node is self.node:
            painter.setPen(QPen(QColor(theme.colours().text), 2))
            painter.drawRect(box.adjusted(1, 1, -2, -2))
        if box.width() > 30 and height > metrics.height() - 2:
            text = f"{name}  {self._joules(node)}"
            painter.setPen(self._colours.ink(key, lit, ranges=key < 0))
            text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(box.width()) - 8)
            left_middle = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
            painter.drawText(box.adjusted(4, 0, -4, 0), left_middle, text)

    def _joules(self, node: Node) -> str:
        """Of a family in a group none are known: its width is its part of the group's joules by its time."""
        group = self._grouped.get(node.stack[-1]) if node.stack and not node.inner else None
        known = f"{number(node.joules)} J, {percent(node.joules / self._root.joules)}"
        return known if group is None else f"in group {group}"

    def _width(self, node: Node) -> float:
        return node.joules / max(1e-12, self._top.joules) * (self.width() - 4)

    def _depth(self, node: Node) -> int:
        return 1 + max((self._depth(each) for each in node.inner), default=-1)

    def _node_at(self, place: QPoint) -> Node | None:
        return next((node for box, node in self._boxes if box.contains(place)), None)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if (node := self._node_at(event.position().toPoint())) is not None:
            self.go(node)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if (node := self._node_at(event.position().toPoint())) is not None:
            self.zoom(self._root if node is self._top else node)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, node = Qt.Key(event.key()), self.node
        beside = node.parent.inner if node.parent is not None else [node]
        at = beside.index(node)
        moves = {
            Qt.Key.Key_Left: beside[max(0, at - 1)], Qt.Key.Key_Right: beside[min(at + 1, len(beside) - 1)],
            Qt.Key.Key_Up: node.parent or node, Qt.Key.Key_Down: node.inner[0] if node.inner else node,
        }  # fmt: skip
        if key in moves:
            self.go(moves[key])
        elif key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.zoom(node)
        elif key == Qt.Key.Key_Backspace:
            self.zoom(self._top.parent or self._top)
        else:
            super().keyPressEvent(event)

    def event(self, event: QEvent) -> bool:
        """A tip has the whole name, which may be cut off."""
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            node = self._node_at(event.pos())
            text = "" if node is None else f"{' / '.join(node.stack) or 'all'}\n{self._joules(node)}"
            QToolTip.showText(event.globalPos(), plain_tip(text), self)
            return True
        return super().event(event)
